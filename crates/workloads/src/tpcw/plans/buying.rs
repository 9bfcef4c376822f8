//! Interaction 10, Buy Confirm: a cart becomes an order, and what is left of each item less.

use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure};
use muesli::{arg, column};
use serde::{Deserialize, Serialize};

use super::carts::CartContents;
use crate::tpcw::tables::{
    ADDRESSES, CART_LINES, CARTS, CHARGES, CUSTOMERS, CardCharge, DETAILS, ItemOrder,
    ItemOrderLine, ORDER_LINES, ORDERS, OrderSums, PostalAddress, STOCKS, Shopper,
};

/// Why an order is refused whose cart is another one by now.
pub(in crate::tpcw) const CHANGED: &str = "the cart has changed";
/// Why one is refused that has no lines.
pub(in crate::tpcw) const EMPTY: &str = "the cart is empty";

/// A cart that is bought, as it was read before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct ConfirmedCart {
    pub customer: u64,
    pub cart: CartContents,
    /// Where else it is sent to: none or one, with its number.
    pub sent_to: Vec<(u64, PostalAddress)>,
    pub ship_type: u8,
    pub date: u64,
    pub card: (u8, u64),
    pub country: u8,
}

/// An order that was entered: its number, and what it comes to.
pub(in crate::tpcw) type EnteredSums = (u32, OrderSums);

/// Buys a cart.
pub(in crate::tpcw) struct ConfirmOrder;

impl PlannedProcedure for ConfirmOrder {
    const NAME: &'static str = "tpcw-confirm-order";
    type Arguments = ConfirmedCart;
    type Answer = EnteredSums;

    fn plan(plan: &mut PlanBuilder<ConfirmedCart>) -> PlanValue<EnteredSums> {
        let (customer, lines) = (arg!(plan, customer), arg!(plan, cart.lines));
        let changes = plan.shared(CARTS, (customer,));
        plan.refuse_unless(CHANGED, changes, |bought, changes| {
            changes.unwrap_or(0) == bought.cart.changes
        });
        plan.refuse_unless(EMPTY, (), |bought, ()| !bought.cart.lines.is_empty());
        let known = plan.shared(CUSTOMERS, (customer,));
        plan.refuse_unless("there is no such customer", known, |_, row| row.is_some());
        // What is written goes by what its holder reads, and not by what others are told.
        let shopper = plan.read(CUSTOMERS, (customer,));
        let number =
            plan.field(shopper, "next order", |row| row.as_ref().map_or(1, |row| row.orders + 1));
        let prices = plan.map(lines, |plan, line| {
            let item = column!(plan, line.item, item);
            let details = plan.read(DETAILS, (item,));
            plan.update(STOCKS, (item,), line.item, |bought, stock, line| {
                let others = bought.cart.lines.iter().map(|it| it.item);
                let others = others.filter(|it| *it != line.item);
                stock.map(|stock| stock.take(line.quantity, others))
            });
            let place = plan.field(line.place, "number", |place| *place as u16 + 1);
            let key = (customer, number, place);
            plan.insert(ORDER_LINES, key, (line.item, details), |_, (line, details)| {
                let cost = details.as_ref().as_ref().map_or(0, |details| details.cost);
                let (item, quantity) = (line.item, line.quantity);
                ItemOrderLine { item, quantity, cost, comments: String::new() }
            });
            plan.delete(CART_LINES, (customer, item));
            plan.compute("price", (line.item, details), |_, (line, details)| {
                let cost = details.as_ref().as_ref().map_or(0, |details| details.cost);
                cost * i64::from(line.quantity)
            })
        });
        let sums = plan.compute("sums", (shopper, prices), |bought, (shopper, prices)| {
            let pieces = bought.cart.lines.iter().map(|line| i64::from(line.quantity)).sum();
            let discount = shopper.as_ref().as_ref().map_or(0, |row| row.discount);
            OrderSums::of(prices.iter().map(|price| **price).sum(), pieces, discount)
        });
        enter(plan, customer, (number, shopper, sums));
        plan.compute("entered", (number, sums), |_, (number, sums)| (*number, *sums))
    }
}

/// Enters the order, and empties the cart.
fn enter(
    plan: &mut PlanBuilder<ConfirmedCart>,
    customer: PlanValue<u64>,
    (number, shopper, sums): (PlanValue<u32>, PlanValue<Option<Shopper>>, PlanValue<OrderSums>),
) {
    plan.insert(ORDERS, (customer, number), (shopper, sums), |bought, (shopper, sums)| {
        let (home, discount) =
            shopper.as_ref().as_ref().map_or((0, 0), |row| (row.address, row.discount));
        ItemOrder {
            date: bought.date,
            sums: *sums,
            ship_type: bought.ship_type,
            status: 2,
            billed_to: home,
            shipped_to: bought.sent_to.first().map_or(home, |it| it.0),
            discount,
        }
    });
    plan.insert(CHARGES, (customer, number), sums, |bought, sums| {
        let ((kind, number), country) = (bought.card, bought.country);
        CardCharge { kind, number, amount: sums.total, country }
    });
    let sent_to = arg!(plan, sent_to);
    plan.each(sent_to, |plan, address| {
        let number = plan.field(address.item, "number", |it| it.0);
        plan.update(ADDRESSES, (customer, number), address.item, |_, row, it| {
            row.or_else(|| Some(it.1.clone()))
        });
    });
    plan.update(CUSTOMERS, (customer,), (), |_, row, ()| {
        row.map(|row| Shopper { orders: row.orders + 1, ..row })
    });
    plan.update(CARTS, (customer,), (), |_, changes, ()| Some(changes.unwrap_or(0) + 1));
}
