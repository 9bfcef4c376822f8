//! Interaction 7, Shopping Cart, and the round that reads a cart before it is bought.

use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use muesli::{arg, column};
use serde::{Deserialize, Serialize};

use super::browsing::promoted;
use crate::tpcw::tables::{CART_LINES, CARTS, DETAILS};

/// So many of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::tpcw) struct CartLine {
    pub item: u32,
    pub quantity: u32,
}

/// A cart as it was read: how often it was changed, and what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct CartContents {
    pub changes: u64,
    pub lines: Vec<CartLine>,
}

/// A customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct OfCustomer {
    pub customer: u64,
}

/// What is in a cart.
fn lines_of<A: 'static>(
    plan: &mut PlanBuilder<A>,
    customer: PlanValue<u64>,
) -> PlanValue<Vec<CartLine>> {
    let rows = plan.scan(CART_LINES, (customer,), RowRange::ALL);
    plan.field(rows, "lines", |rows| {
        let line = |((_, item), quantity): &((u64, u32), u32)| CartLine {
            item: *item,
            quantity: *quantity,
        };
        rows.iter().map(line).collect()
    })
}

/// What all of a cart costs, in cents, as it is.
pub(super) fn price_of_cart<A: 'static>(
    plan: &mut PlanBuilder<A>,
    customer: PlanValue<u64>,
) -> (PlanValue<Vec<CartLine>>, PlanValue<i64>) {
    let lines = lines_of(plan, customer);
    let prices = plan.map(lines, |plan, line| {
        let item = column!(plan, line.item, item);
        let details = plan.read(DETAILS, (item,));
        plan.compute("price", (line.item, details), |_, (line, details)| {
            let cost = details.as_ref().as_ref().map_or(0, |details| details.cost);
            cost * i64::from(line.quantity)
        })
    });
    let sum = plan.field(prices, "sum", |prices| prices.iter().map(|price| **price).sum());
    (lines, sum)
}

/// Reads a cart.
pub(in crate::tpcw) struct ReadCart;

impl PlannedProcedure for ReadCart {
    const NAME: &'static str = "tpcw-read-cart";
    type Arguments = OfCustomer;
    type Answer = CartContents;

    fn plan(plan: &mut PlanBuilder<OfCustomer>) -> PlanValue<CartContents> {
        let customer = arg!(plan, customer);
        let changes = plan.read(CARTS, (customer,));
        let lines = lines_of(plan, customer);
        plan.compute("cart", (changes, lines), |_, (changes, lines)| CartContents {
            changes: changes.unwrap_or(0),
            lines: lines.to_vec(),
        })
    }
}

/// A change of a cart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct CartChange {
    pub customer: u64,
    /// An item that is added, or none.
    pub added: Vec<u32>,
    /// New quantities of items; 0 takes one out.
    pub refreshed: Vec<CartLine>,
    /// What an empty cart gets something related to; it is promoted, too.
    pub promoted: u32,
}

/// A cart after a change, and what it costs.
pub(in crate::tpcw) type ChangedCart = (CartContents, i64);

/// Interaction 7, Shopping Cart: an item more, new quantities, and never an empty cart.
pub(in crate::tpcw) struct ChangeCart;

impl PlannedProcedure for ChangeCart {
    const NAME: &'static str = "tpcw-change-cart";
    type Arguments = CartChange;
    type Answer = ChangedCart;

    fn plan(plan: &mut PlanBuilder<CartChange>) -> PlanValue<ChangedCart> {
        let (customer, item) = (arg!(plan, customer), arg!(plan, promoted));
        let (added, refreshed) = (arg!(plan, added), arg!(plan, refreshed));
        promoted(plan, item);
        let before = plan.read(CARTS, (customer,));
        plan.each(added, |plan, added| {
            let key = (customer, added.item);
            plan.update(CART_LINES, key, (), |_, quantity, ()| Some(quantity.unwrap_or(0) + 1));
        });
        plan.each(refreshed, |plan, line| {
            let key = (customer, column!(plan, line.item, item));
            plan.update(CART_LINES, key, line.item, |_, quantity, line| {
                quantity.and((line.quantity > 0).then_some(line.quantity))
            });
        });
        let left = plan.scan(CART_LINES, (customer,), RowRange::first(1));
        plan.when(
            left,
            |_, left| left.is_empty(),
            |plan| {
                let details = plan.read(DETAILS, (item,));
                let related = plan.field(details, "related one", |details| {
                    details.as_ref().map_or(1, |details| details.related[0])
                });
                plan.update(CART_LINES, (customer, related), (), |_, quantity, ()| {
                    Some(quantity.unwrap_or(0) + 1)
                });
            },
        );
        plan.update(CARTS, (customer,), (), |_, changes, ()| Some(changes.unwrap_or(0) + 1));
        let (lines, price) = price_of_cart(plan, customer);
        plan.compute("cart", (before, lines, price), |_, (before, lines, price)| {
            let changes = before.unwrap_or(0) + 1;
            (CartContents { changes, lines: lines.to_vec() }, *price)
        })
    }
}
