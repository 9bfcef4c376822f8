//! New-Order as a plan (clause 2.4).
//!
//! An order with an item that there is not is refused: as items are everywhere, by all
//! participants alike.

use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure};
use muesli::{arg, column};

use super::layout::{
    CUSTOMER_ORDERS, CUSTOMERS, DISTRICTS, ITEMS, NEW_ORDERS, NEXT_ORDER, ORDER_LINES, ORDERS,
    STOCK, STOCK_HALVES, WAREHOUSES,
};
use crate::tpcc::new_order::{NewOrderInput, UNUSED, Wanted, total};
use crate::tpcc::rows::{Item, OrderLine, StockInfo, district_info};

/// Enters an order; the total that the terminal shows, in cents.
pub(in crate::tpcc) struct PlannedOrder;

impl PlannedProcedure for PlannedOrder {
    const NAME: &'static str = "tpcc-planned-order";
    type Arguments = NewOrderInput;
    type Answer = i64;

    fn plan(plan: &mut PlanBuilder<NewOrderInput>) -> PlanValue<i64> {
        let (warehouse, district) =
            (arg!(plan, customer.district.warehouse), arg!(plan, customer.district.number));
        let (customer, lines) = (arg!(plan, customer.number), arg!(plan, lines));
        let next = plan.read(NEXT_ORDER, (warehouse, district));
        let number = plan.field(next, "number", |next| next.unwrap_or(1));
        let copy = plan.constant(0_u32);
        let amounts = plan.map(lines, |plan, line| {
            let item = column!(plan, line.item, item);
            let row = plan.read(ITEMS, (copy, item));
            plan.refuse_unless(UNUSED, row, |_, row| row.is_some());
            let supplier = column!(plan, line.item, supplier);
            plan.update(STOCK, (supplier, item), line.item, |order, stock, line| {
                let mut stock = stock?;
                stock.take(line.quantity, line.supplier != order.customer.district.warehouse);
                Some(stock)
            });
            let info = plan.read(STOCK_HALVES, (supplier, item));
            let place = plan.field(line.place, "number", |place| *place as u8 + 1);
            let key = (warehouse, district, number, place);
            plan.insert(ORDER_LINES, key, (line.item, row, info), |order, (line, row, info)| {
                entered(order, *line, row.as_ref().as_ref(), info.as_ref().as_ref())
            });
            plan.compute("amount", (line.item, row), |_, (line, row)| {
                amount(*line, row.as_ref().as_ref())
            })
        });
        plan.insert(ORDERS, (warehouse, district, number), (), |order, ()| order.order());
        plan.insert(NEW_ORDERS, (warehouse, district, number), (), |_, ()| ());
        let by_customer = (warehouse, district, customer, number);
        plan.insert(CUSTOMER_ORDERS, by_customer, (), |_, ()| ());
        plan.update(NEXT_ORDER, (warehouse, district), (), |_, next, ()| Some(next? + 1));
        let taxes = (
            plan.read(WAREHOUSES, (warehouse,)),
            plan.read(DISTRICTS, (warehouse, district)),
            plan.read(CUSTOMERS, (warehouse, district, customer)),
            amounts,
        );
        plan.compute("total", taxes, |_, (warehouse, district, customer, amounts)| {
            let taxes = [
                warehouse.as_ref().as_ref().map_or(0, |row| row.tax),
                district.as_ref().as_ref().map_or(0, |row| row.tax),
            ];
            let discount = customer.as_ref().as_ref().map_or(0, |row| row.discount);
            total(amounts.iter().map(|amount| **amount).sum(), discount, taxes)
        })
    }
}

/// What a line costs.
fn amount(line: Wanted, item: Option<&Item>) -> i64 {
    i64::from(line.quantity) * item.map_or(0, |item| item.price)
}

/// A line as it is entered.
fn entered(
    order: &NewOrderInput,
    line: Wanted,
    item: Option<&Item>,
    info: Option<&StockInfo>,
) -> OrderLine {
    let Wanted { item: number, supplier, quantity } = line;
    let infos = info.map_or("", |info| &info.district_infos);
    let district_info = district_info(infos, order.customer.district.number).to_owned();
    let amount = amount(line, item);
    OrderLine { item: number, supplier, delivered: None, quantity, amount, district_info }
}
