//! Delivery as a procedure: the oldest new order of each district of a warehouse (clause 2.7).

use muesli::procedures::{Keys, StoredProcedure};
use muesli::{Key, KeyRange, Range, Refuses, Stop};
use serde::{Deserialize, Serialize};

use super::lines::LineRow;
use super::lookup::missing;
use super::payments::credit;
use crate::tpcc::delivery::DeliveryInput;
use crate::tpcc::ids::{DistrictId, OrderId};
use crate::tpcc::layout::Layout;

/// A delivery of a warehouse.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DeliveryRound {
    pub layout: Layout,
    pub warehouse: u32,
    /// How many districts it has.
    pub districts: u8,
    pub input: DeliveryInput,
}

/// Delivers; the districts that had something.
pub(super) struct Deliver;

impl StoredProcedure for Deliver {
    const NAME: &'static str = "tpcc-delivery";
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = DeliveryRound;
    type Answer = Vec<u8>;

    fn run(keys: &mut Keys<'_>, it: DeliveryRound) -> Result<Vec<u8>, Stop> {
        let mut delivered = Vec::with_capacity(it.districts.into());
        for number in 1..=it.districts {
            let district = DistrictId { warehouse: it.warehouse, number };
            if deliver(keys, &it.layout, district, it.input)? {
                delivered.push(number);
            }
        }
        Ok(delivered)
    }
}

/// Delivers the oldest new order of a district; false where there is none.
fn deliver(
    keys: &mut Keys<'_>,
    layout: &Layout,
    district: DistrictId,
    input: DeliveryInput,
) -> Result<bool, Stop> {
    let tables = &layout.tables;
    let oldest = KeyRange::prefix(&district).limit(1);
    let oldest = keys.rows(tables.new_orders, oldest)?;
    let Some(&(id, ())) = oldest.first() else { return Ok(false) };
    keys.remove(tables.new_orders, &id)?;
    let mut order = keys.read(tables.orders, &id)?.ok_or_else(|| missing("an order"))?;
    order.carrier = Some(input.carrier);
    keys.write(tables.orders, &id, &order)?;
    let sum = deliver_lines(keys, layout, id, input.date)?;
    credit(keys, layout, (district, order.customer), sum)?;
    Ok(true)
}

/// Marks the lines of an order as delivered; what they cost.
fn deliver_lines(
    keys: &mut Keys<'_>,
    layout: &Layout,
    order: OrderId,
    date: u64,
) -> Result<i64, Stop> {
    let (space, mut sum) = (layout.tables.order_lines.raw(), 0);
    for (key, value) in keys.scan(space, Range::prefix(order.encoded()))? {
        let mut line: LineRow<'_> = Keys::decode(&value)?;
        sum += line.amount;
        line.delivered = Some(date);
        let value = keys.encode(&line)?;
        keys.put(space, key, value)?;
    }
    Ok(sum)
}
