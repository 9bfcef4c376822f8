//! Writing what is there at first; what is there already is left alone.

use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure};
use muesli::{arg, column};
use serde::{Deserialize, Serialize};

use crate::tpcw::tables::{
    ADDRESSES, AUTHORS, Author, BEST_SELLERS, BestSellers, CARTS, CHARGES, COUNTRIES, CUSTOMERS,
    CardCharge, Country, DETAILS, ITEMS, ItemDetails, ItemFacts, ItemOrder, ItemOrderLine,
    ItemStock, ORDER_LINES, ORDERS, PostalAddress, SEARCHES, STOCKS, Shopper,
};

/// What is everywhere beside items: each with its number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct ReferenceRows {
    pub countries: Vec<(u8, Country)>,
    pub authors: Vec<(u32, Author)>,
    pub subjects: Vec<u8>,
}

/// Loads what is everywhere beside items.
pub(in crate::tpcw) struct LoadReference;

impl PlannedProcedure for LoadReference {
    const NAME: &'static str = "tpcw-load-reference";
    type Arguments = ReferenceRows;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<ReferenceRows>) -> PlanValue<()> {
        let (countries, authors) = (arg!(plan, countries), arg!(plan, authors));
        plan.each(countries, |plan, country| {
            let number = plan.field(country.item, "country", |it| it.0);
            plan.update(COUNTRIES, (number,), country.item, |_, row, it| {
                row.or_else(|| Some(it.1.clone()))
            });
        });
        plan.each(authors, |plan, author| {
            let number = plan.field(author.item, "author", |it| it.0);
            plan.update(AUTHORS, (number,), author.item, |_, row, it| {
                row.or_else(|| Some(it.1.clone()))
            });
        });
        let subjects = arg!(plan, subjects);
        plan.each(subjects, |plan, subject| {
            plan.update(BEST_SELLERS, (subject.item,), (), |_, row, ()| {
                row.or_else(|| Some(BestSellers::default()))
            });
        });
        plan.nothing()
    }
}

/// An item as it is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct LoadedItem {
    pub item: u32,
    pub facts: ItemFacts,
    pub details: ItemDetails,
}

/// Items, and what they are found by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct LoadedItems {
    pub items: Vec<LoadedItem>,
    pub searches: Vec<(u8, String, u32)>,
}

/// Loads what is everywhere of items.
pub(in crate::tpcw) struct LoadItems;

impl PlannedProcedure for LoadItems {
    const NAME: &'static str = "tpcw-load-items";
    type Arguments = LoadedItems;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<LoadedItems>) -> PlanValue<()> {
        let (items, searches) = (arg!(plan, items), arg!(plan, searches));
        plan.each(items, |plan, item| {
            let number = column!(plan, item.item, item);
            plan.update(ITEMS, (number,), item.item, |_, row, it| {
                row.or_else(|| Some(it.facts.clone()))
            });
            plan.update(DETAILS, (number,), item.item, |_, row, it| {
                row.or_else(|| Some(it.details.clone()))
            });
        });
        plan.each(searches, |plan, search| {
            let key = (
                plan.field(search.item, "kind", |it| it.0),
                plan.field(search.item, "text", |it| it.1.clone()),
                plan.field(search.item, "item", |it| it.2),
            );
            plan.update(SEARCHES, key, (), |_, _, ()| Some(()));
        });
        plan.nothing()
    }
}

/// What is left of an item at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct LoadedStock {
    pub item: u32,
    pub stock: ItemStock,
}

/// Loads what is left of an item.
pub(in crate::tpcw) struct LoadStock;

impl PlannedProcedure for LoadStock {
    const NAME: &'static str = "tpcw-load-stock";
    type Arguments = LoadedStock;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<LoadedStock>) -> PlanValue<()> {
        let item = arg!(plan, item);
        plan.update(STOCKS, (item,), (), |loaded, row, ()| {
            row.or_else(|| Some(loaded.stock.clone()))
        });
        plan.nothing()
    }
}

/// An order as it is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct LoadedOrder {
    pub order: ItemOrder,
    pub lines: Vec<ItemOrderLine>,
    pub charge: CardCharge,
}

/// A customer as it is loaded, with an order or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct LoadedCustomer {
    pub customer: u64,
    pub shopper: Shopper,
    pub address: PostalAddress,
    pub order: Vec<LoadedOrder>,
}

/// Loads all rows of a customer.
pub(in crate::tpcw) struct LoadCustomer;

impl PlannedProcedure for LoadCustomer {
    const NAME: &'static str = "tpcw-load-customer";
    type Arguments = LoadedCustomer;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<LoadedCustomer>) -> PlanValue<()> {
        let (customer, address) = (arg!(plan, customer), arg!(plan, shopper.address));
        plan.update(CUSTOMERS, (customer,), (), |loaded, row, ()| {
            row.or_else(|| Some(loaded.shopper.clone()))
        });
        plan.update(ADDRESSES, (customer, address), (), |loaded, row, ()| {
            row.or_else(|| Some(loaded.address.clone()))
        });
        plan.update(CARTS, (customer,), (), |_, row, ()| row.or(Some(0)));
        let (orders, number) = (arg!(plan, order), plan.constant(1_u32));
        plan.each(orders, |plan, loaded| {
            plan.update(ORDERS, (customer, number), loaded.item, |_, row, it| {
                row.or_else(|| Some(it.order.clone()))
            });
            plan.update(CHARGES, (customer, number), loaded.item, |_, row, it| {
                row.or_else(|| Some(it.charge.clone()))
            });
            let lines = column!(plan, loaded.item, lines);
            plan.each(lines, |plan, line| {
                let place = plan.field(line.place, "number", |place| *place as u16 + 1);
                plan.update(ORDER_LINES, (customer, number, place), line.item, |_, row, it| {
                    row.or_else(|| Some((*it).clone()))
                });
            });
        });
        plan.nothing()
    }
}
