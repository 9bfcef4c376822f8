//! Delivery as a plan: the oldest new order of each district of a warehouse (clause 2.7).

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use serde::{Deserialize, Serialize};

use super::layout::{CUSTOMERS, NEW_ORDERS, ORDER_LINES, ORDERS};
use crate::tpcc::delivery::DeliveryInput;

/// A delivery of a warehouse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct DeliveryOrder {
    pub warehouse: u32,
    /// The districts that it has.
    pub districts: Vec<u8>,
    pub input: DeliveryInput,
}

/// Delivers; the districts that had something.
pub(in crate::tpcc) struct PlannedDelivery;

impl PlannedProcedure for PlannedDelivery {
    const NAME: &'static str = "tpcc-planned-delivery";
    type Arguments = DeliveryOrder;
    type Answer = Vec<u8>;

    fn plan(plan: &mut PlanBuilder<DeliveryOrder>) -> PlanValue<Vec<u8>> {
        let (warehouse, districts) = (arg!(plan, warehouse), arg!(plan, districts));
        let delivered = plan.map(districts, |plan, district| {
            let district = district.item;
            let oldest = plan.scan(NEW_ORDERS, (warehouse, district), RowRange::first(1));
            let oldest = plan.field(oldest, "oldest", |found| found.first().map(|(key, ())| key.2));
            plan.when_some(
                oldest,
                |_, oldest| oldest.is_some(),
                |plan| {
                    let number = plan.field(oldest, "number", |oldest| oldest.unwrap_or(0));
                    deliver(plan, warehouse, (district, number));
                    district
                },
            )
        });
        plan.compute("delivered", delivered, |_, delivered| {
            delivered
                .iter()
                .filter_map(|district| district.as_ref().as_ref())
                .map(|it| **it)
                .collect()
        })
    }
}

/// Delivers an order of a district.
fn deliver(
    plan: &mut PlanBuilder<DeliveryOrder>,
    warehouse: PlanValue<u32>,
    (district, number): (PlanValue<u8>, PlanValue<u32>),
) {
    let key = (warehouse, district, number);
    plan.delete(NEW_ORDERS, key);
    let order = plan.read(ORDERS, key);
    plan.update(ORDERS, key, (), |delivery, order, ()| {
        let mut order = order?;
        order.carrier = Some(delivery.input.carrier);
        Some(order)
    });
    let lines = plan.scan(ORDER_LINES, key, RowRange::ALL);
    plan.each(lines, |plan, line| {
        let place = plan.field(line.item, "line", |(key, _)| key.3);
        let key = (warehouse, district, number, place);
        plan.update(ORDER_LINES, key, (), |delivery, line, ()| {
            let mut line = line?;
            line.delivered = Some(delivery.input.date);
            Some(line)
        });
    });
    let customer =
        plan.field(order, "customer", |order| order.as_ref().map_or(0, |it| it.customer));
    plan.update(CUSTOMERS, (warehouse, district, customer), lines, |_, row, lines| {
        let mut row = row?;
        row.balance += lines.iter().map(|(_, line)| line.amount).sum::<i64>();
        row.deliveries += 1;
        Some(row)
    });
}
