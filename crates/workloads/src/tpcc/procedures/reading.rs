//! The profiles that only read, as procedures: Order-Status (clause 2.6) and Stock-Level (2.8).

use muesli::procedures::{Keys, StoredProcedure};
use muesli::{Key, Range, Refuses, Stop};
use serde::{Deserialize, Serialize};

use super::hot::next_number;
use super::lookup::{customer_number, missing, needed};
use crate::tpcc::ids::{CustomerOrder, DistrictId, LineId, StockId};
use crate::tpcc::layout::Layout;
use crate::tpcc::order_status::StatusAsked;
use crate::tpcc::stock_level::{ORDERS, StockLevelAsked};
use crate::tpcc::terminal::Who;

/// A question after a customer's newest order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OrderAsked {
    pub layout: Layout,
    pub district: DistrictId,
    pub who: Who,
}

/// Tells what has become of a customer's newest order.
pub(super) struct OrderStatus;

impl StoredProcedure for OrderStatus {
    const NAME: &'static str = "tpcc-order-status";
    const READ_ONLY: bool = true;
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = OrderAsked;
    type Answer = StatusAsked;

    fn run(
        keys: &mut Keys<'_>,
        OrderAsked { layout, district, who }: OrderAsked,
    ) -> Result<StatusAsked, Stop> {
        let tables = &layout.tables;
        let number = customer_number(keys, &layout, district.warehouse, district, &who)?;
        let key = keys.encoded(&district.customer(number));
        let row = needed(keys, tables.customers.raw(), &key, "a customer")?;
        // C_DISCOUNT and C_BALANCE come first in the row.
        let (_, balance): (u16, i64) = Keys::decode(&row)?;
        let newest =
            keys.scan(tables.customer_orders.raw(), Range::prefix(key).reverse().limit(1))?;
        let Some((key, _)) = newest.first() else {
            return Ok(StatusAsked { balance, newest: None });
        };
        let undecodable = |error: muesli::Error| Stop::Faulty(error.to_string());
        let found = CustomerOrder::decoded(key.as_slice()).map_err(undecodable)?;
        let id = district.order(found.order);
        let order = keys.read(tables.orders, &id)?.ok_or_else(|| missing("an order"))?;
        let lines = keys.scan(tables.order_lines.raw(), Range::prefix(id.encoded()))?;
        let lines = lines.iter().map(|(_, line)| Keys::decode(line)).collect::<Result<_, _>>()?;
        Ok(StatusAsked { balance, newest: Some((id.number, order, lines)) })
    }
}

/// A question after what runs short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Looked {
    pub layout: Layout,
    pub district: DistrictId,
    pub threshold: u8,
}

/// Counts the items of a district's newest orders of which there is too little.
pub(super) struct StockLevel;

impl StoredProcedure for StockLevel {
    const NAME: &'static str = "tpcc-stock-level";
    const READ_ONLY: bool = true;
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = Looked;
    type Answer = StockLevelAsked;

    fn run(keys: &mut Keys<'_>, it: Looked) -> Result<StockLevelAsked, Stop> {
        let (tables, district) = (&it.layout.tables, it.district);
        let next = next_number(keys, &it.layout, district)?;
        let line = |order| LineId { order: district.order(order), number: 0 }.encoded();
        let range = Range::of(line(next.saturating_sub(ORDERS))..line(next));
        let lines = keys.scan(tables.order_lines.raw(), range)?;
        let (mut orders, mut last) = (0, None);
        let mut items = Vec::with_capacity(lines.len());
        for (key, row) in &lines {
            // All of a line's key but its last byte is its order's.
            let order = key.as_slice().split_last().map(|(_, order)| order);
            orders += u32::from(order != last);
            last = order;
            // OL_I_ID comes first in the row.
            items.push(Keys::decode::<u32>(row)?);
        }
        items.sort_unstable();
        items.dedup();
        let mut short = 0;
        for item in items {
            let key = keys.encoded(&StockId { warehouse: district.warehouse, item });
            let row = needed(keys, it.layout.stock().raw(), &key, "stock")?;
            // S_QUANTITY comes first in the row.
            short += u32::from(Keys::decode::<u8>(&row)? < it.threshold);
        }
        Ok(StockLevelAsked { next, orders, lines: lines.len() as u32, short })
    }
}
