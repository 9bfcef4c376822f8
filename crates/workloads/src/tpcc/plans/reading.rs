//! The profiles that only read, as plans: Order-Status (clause 2.6) and Stock-Level (2.8).

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use serde::{Deserialize, Serialize};

use super::layout::{CUSTOMER_ORDERS, CUSTOMERS, NEXT_ORDER, ORDER_LINES, ORDERS, STOCK};
use super::payments::{WithCustomer, customer_of};
use crate::tpcc::ids::DistrictId;
use crate::tpcc::order_status::{ShownLine, StatusAsked};
use crate::tpcc::stock_level::{ORDERS as LOOKED_AT, StockLevelAsked};
use crate::tpcc::terminal::Who;

/// A question after a customer's newest order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct OrderQuestion {
    pub district: DistrictId,
    pub who: Who,
}

impl WithCustomer for OrderQuestion {
    fn who(&self) -> &Who {
        &self.who
    }
}

/// Tells what has become of a customer's newest order.
pub(in crate::tpcc) struct PlannedOrderStatus;

impl PlannedProcedure for PlannedOrderStatus {
    const NAME: &'static str = "tpcc-planned-order-status";
    type Arguments = OrderQuestion;
    type Answer = StatusAsked;

    fn plan(plan: &mut PlanBuilder<OrderQuestion>) -> PlanValue<StatusAsked> {
        let (warehouse, district) = (arg!(plan, district.warehouse), arg!(plan, district.number));
        let customer = customer_of(plan, (warehouse, district));
        let row = plan.read(CUSTOMERS, (warehouse, district, customer));
        let by_customer = (warehouse, district, customer);
        let newest = plan.scan(CUSTOMER_ORDERS, by_customer, RowRange::last(1));
        let newest = plan.field(newest, "newest", |found| found.first().map(|(key, ())| key.3));
        let shown = plan.when_some(
            newest,
            |_, newest| newest.is_some(),
            |plan| {
                let number = plan.field(newest, "number", |newest| newest.unwrap_or(0));
                let order = plan.read(ORDERS, (warehouse, district, number));
                let lines = plan.scan(ORDER_LINES, (warehouse, district, number), RowRange::ALL);
                plan.compute("shown", (number, order, lines), |_, (number, order, lines)| {
                    let lines = lines.iter().map(|(_, line)| ShownLine::of(line)).collect();
                    order.as_ref().clone().map(|order| (*number, order, lines))
                })
            },
        );
        plan.compute("status", (row, shown), |_, (row, shown)| StatusAsked {
            balance: row.as_ref().as_ref().map_or(0, |row| row.balance),
            newest: shown.as_ref().as_ref().and_then(|shown| (**shown).clone()),
        })
    }
}

/// A question after what runs short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct LevelQuestion {
    pub district: DistrictId,
    pub threshold: u8,
}

/// Counts the items of a district's newest orders of which there is too little.
pub(in crate::tpcc) struct PlannedStockLevel;

impl PlannedProcedure for PlannedStockLevel {
    const NAME: &'static str = "tpcc-planned-stock-level";
    type Arguments = LevelQuestion;
    type Answer = StockLevelAsked;

    fn plan(plan: &mut PlanBuilder<LevelQuestion>) -> PlanValue<StockLevelAsked> {
        let (warehouse, district) = (arg!(plan, district.warehouse), arg!(plan, district.number));
        let next = plan.read(NEXT_ORDER, (warehouse, district));
        let next = plan.field(next, "number", |next| next.unwrap_or(1));
        let from = plan.field(next, "oldest", |next| next.saturating_sub(LOOKED_AT));
        let of_district = (warehouse, district);
        let lines = plan.scan_between(ORDER_LINES, of_district, (from, next), RowRange::ALL);
        let items = plan.field(lines, "items", |lines| {
            let mut items: Vec<u32> = lines.iter().map(|(_, line)| line.item).collect();
            items.sort_unstable();
            items.dedup();
            items
        });
        let left = plan.map(items, |plan, item| {
            let stock = plan.read(STOCK, (warehouse, item.item));
            plan.field(stock, "quantity", |stock| stock.map_or(0, |stock| stock.quantity))
        });
        plan.compute("level", (next, lines, left), |asked, (next, lines, left)| {
            let mut orders: Vec<u32> = lines.iter().map(|((.., order, _), _)| *order).collect();
            orders.dedup();
            let short = left.iter().filter(|left| ***left < asked.threshold).count();
            let (orders, lines) = (orders.len() as u32, lines.len() as u32);
            StockLevelAsked { next: *next, orders, lines, short: short as u32 }
        })
    }
}
