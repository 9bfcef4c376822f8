//! The interactions about a customer: Customer Registration (8), Order Inquiry (11), Buy Request
//! (9) of customers who are known and of new ones, and Order Display (12).

use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use muesli::{arg, column};
use serde::{Deserialize, Serialize};

use super::carts::{OfCustomer, price_of_cart};
use crate::tpcw::tables::{
    ADDRESSES, CARTS, CHARGES, COUNTRIES, CUSTOMERS, ITEMS, ORDER_LINES, ORDERS, PostalAddress,
    Shopper,
};

/// Why a customer is refused who gives another password.
pub(in crate::tpcw) const WRONG_PASSWORD: &str = "the password is wrong";

/// Why a customer is refused who is new, and is known.
pub(in crate::tpcw) const KNOWN: &str = "the customer is known";

/// The name of a customer, for a form.
pub(in crate::tpcw) struct ReadCustomer;

impl PlannedProcedure for ReadCustomer {
    const NAME: &'static str = "tpcw-customer-name";
    type Arguments = OfCustomer;
    type Answer = Option<String>;

    fn plan(plan: &mut PlanBuilder<OfCustomer>) -> PlanValue<Option<String>> {
        let customer = arg!(plan, customer);
        let row = plan.read(CUSTOMERS, (customer,));
        plan.field(row, "name", |row| row.as_ref().map(|row| row.name.clone()))
    }
}

/// A customer who is new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct NewShopper {
    pub customer: u64,
    pub shopper: Shopper,
    pub address: PostalAddress,
}

/// Interaction 9 of a new customer: registers it; what its cart costs.
pub(in crate::tpcw) struct RegisterCustomer;

impl PlannedProcedure for RegisterCustomer {
    const NAME: &'static str = "tpcw-register-customer";
    type Arguments = NewShopper;
    type Answer = i64;

    fn plan(plan: &mut PlanBuilder<NewShopper>) -> PlanValue<i64> {
        let (customer, address) = (arg!(plan, customer), arg!(plan, shopper.address));
        let row = plan.read(CUSTOMERS, (customer,));
        plan.refuse_unless(KNOWN, row, |_, row| row.is_none());
        plan.insert(CUSTOMERS, (customer,), (), |new, ()| new.shopper.clone());
        plan.update(ADDRESSES, (customer, address), (), |new, row, ()| {
            row.or_else(|| Some(new.address.clone()))
        });
        plan.update(CARTS, (customer,), (), |_, changes, ()| changes.or(Some(0)));
        price_of_cart(plan, customer).1
    }
}

/// A customer who comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct ReturningShopper {
    pub customer: u64,
    pub password: String,
    pub now: u64,
}

fn has_password(row: &Option<Shopper>, password: &str) -> bool {
    row.as_ref().is_some_and(|row| row.password == password)
}

/// Interaction 9 of a customer who is known; how often it has come back, and what its cart costs.
pub(in crate::tpcw) struct LogIn;

impl PlannedProcedure for LogIn {
    const NAME: &'static str = "tpcw-log-in";
    type Arguments = ReturningShopper;
    type Answer = (u64, i64);

    fn plan(plan: &mut PlanBuilder<ReturningShopper>) -> PlanValue<(u64, i64)> {
        let customer = arg!(plan, customer);
        let row = plan.read(CUSTOMERS, (customer,));
        plan.refuse_unless(WRONG_PASSWORD, row, |asked, row| has_password(&row, &asked.password));
        let address = plan.field(row, "address", |row| row.as_ref().map_or(0, |row| row.address));
        plan.read(ADDRESSES, (customer, address));
        plan.update(CUSTOMERS, (customer,), (), |asked, row, ()| {
            let (login, expiration) = (asked.now, asked.now + 2 * 60 * 60 * 1_000_000_000);
            row.map(|row| Shopper { login, expiration, logins: row.logins + 1, ..row })
        });
        let price = price_of_cart(plan, customer).1;
        plan.compute("login", (row, price), |_, (row, price)| {
            (row.as_ref().as_ref().map_or(0, |row| row.logins + 1), *price)
        })
    }
}

/// A question after a customer's newest order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct OrderAskedFor {
    pub customer: u64,
    pub password: String,
}

/// A customer's newest order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct DisplayedOrder {
    pub number: u32,
    pub total: i64,
    pub charged: Option<i64>,
    /// How many lines it has, and of how many there is an item.
    pub lines: (usize, usize),
    /// How many of its two addresses are there, with their countries.
    pub addresses: usize,
}

/// Interaction 12, Order Display.
pub(in crate::tpcw) struct DisplayOrder;

impl PlannedProcedure for DisplayOrder {
    const NAME: &'static str = "tpcw-display-order";
    type Arguments = OrderAskedFor;
    type Answer = Option<DisplayedOrder>;

    fn plan(plan: &mut PlanBuilder<OrderAskedFor>) -> PlanValue<Option<DisplayedOrder>> {
        let customer = arg!(plan, customer);
        let row = plan.read(CUSTOMERS, (customer,));
        plan.refuse_unless(WRONG_PASSWORD, row, |asked, row| has_password(&row, &asked.password));
        let newest = plan.scan(ORDERS, (customer,), RowRange::last(1));
        let shown = plan.map(newest, |plan, order| {
            let number = plan.field(order.item, "number", |((_, number), _)| *number);
            let charge = plan.read(CHARGES, (customer, number));
            let lines = plan.scan(ORDER_LINES, (customer, number), RowRange::ALL);
            let items = plan.map(lines, |plan, line| {
                let item = plan.field(line.item, "item", |(_, line)| line.item);
                plan.read(ITEMS, (item,))
            });
            let to = plan.field(order.item, "addresses", |(_, order)| {
                vec![order.billed_to, order.shipped_to]
            });
            let addresses = plan.map(to, |plan, address| {
                let row = plan.read(ADDRESSES, (customer, address.item));
                let country = column_of_country(plan, row);
                plan.read(COUNTRIES, (country,))
            });
            let found = (order.item, charge, items, addresses);
            plan.compute("displayed", found, |_, (order, charge, items, addresses)| {
                let ((_, number), order) = &*order;
                DisplayedOrder {
                    number: *number,
                    total: order.sums.total,
                    charged: charge.as_ref().as_ref().map(|charge| charge.amount),
                    lines: (items.len(), items.iter().filter(|it| it.is_some()).count()),
                    addresses: addresses.iter().filter(|it| it.is_some()).count(),
                }
            })
        });
        plan.field(shown, "newest", |shown| shown.first().map(|shown| (**shown).clone()))
    }
}

fn column_of_country<A: 'static>(
    plan: &mut PlanBuilder<A>,
    row: PlanValue<Option<PostalAddress>>,
) -> PlanValue<u8> {
    let row = plan.field(row, "or none", |row| {
        let none = || PostalAddress {
            street: String::new(),
            city: String::new(),
            zip: String::new(),
            country: 0,
        };
        row.clone().unwrap_or_else(none)
    });
    column!(plan, row, country)
}
