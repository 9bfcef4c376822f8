//! New-Order as procedures: one where the customer is at home, and one at each other warehouse
//! that supplies a line (clause 2.4).
//!
//! An order with an item that there is not is refused. Every participant has all items, looks for
//! all of the order's, and so decides like the others, without being asked: the transaction is
//! independent.

use muesli::procedures::{Keys, StoredProcedure};
use muesli::{Refuses, Stop};
use serde::{Deserialize, Serialize};

use super::hot;
use super::lines::LineRow;
use super::lookup::{needed, price};
use crate::tpcc::ids::{CustomerOrder, ItemId, LineId};
use crate::tpcc::layout::Layout;
use crate::tpcc::new_order::{NewOrderInput, UNUSED, Wanted, total};
use crate::tpcc::rows::{StockCount, district_info};

/// An order, at the warehouse that it is entered at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EnteredOrder {
    pub layout: Layout,
    pub input: NewOrderInput,
}

/// The same order, at a warehouse that supplies some of its lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Supplied {
    pub layout: Layout,
    /// The supplier.
    pub warehouse: u32,
    /// All lines.
    pub lines: Vec<Wanted>,
}

/// Enters an order; the total that the terminal shows, in cents.
pub(super) struct NewOrder;

impl StoredProcedure for NewOrder {
    const NAME: &'static str = "tpcc-new-order";
    const REFUSES: Refuses = Refuses::Alike;
    type Arguments = EnteredOrder;
    type Answer = i64;

    fn run(keys: &mut Keys<'_>, EnteredOrder { layout, input }: EnteredOrder) -> Result<i64, Stop> {
        let district = input.customer.district;
        let prices = prices(keys, &layout, district.warehouse, &input.lines)?;
        let number = hot::take_number(keys, &layout, district)?;
        let order = district.order(number);
        let mut sum = 0;
        for ((line, price), place) in input.lines.iter().zip(prices).zip(1..) {
            if line.supplier == district.warehouse {
                supply(keys, &layout, line, false)?;
            }
            let id = LineId { order, number: place };
            sum += put_line(keys, &layout, id, line, price)?;
        }
        let id = CustomerOrder { customer: input.customer, order: number };
        keys.write(layout.tables.orders, &order, &input.order())?;
        keys.write(layout.tables.new_orders, &order, &())?;
        keys.write(layout.tables.customer_orders, &id, &())?;
        show_total(keys, &layout, &input, sum)
    }
}

/// Takes an order's lines from the stock of a warehouse that is not its own.
pub(super) struct Supply;

impl StoredProcedure for Supply {
    const NAME: &'static str = "tpcc-supply";
    const REFUSES: Refuses = Refuses::Alike;
    type Arguments = Supplied;
    type Answer = ();

    fn run(keys: &mut Keys<'_>, it: Supplied) -> Result<(), Stop> {
        prices(keys, &it.layout, it.warehouse, &it.lines)?;
        for line in it.lines.iter().filter(|line| line.supplier == it.warehouse) {
            supply(keys, &it.layout, line, true)?;
        }
        Ok(())
    }
}

/// The price of each line's item; refuses where one is none, before anything is written.
fn prices(
    keys: &mut Keys<'_>,
    layout: &Layout,
    warehouse: u32,
    lines: &[Wanted],
) -> Result<Vec<i64>, Stop> {
    let mut prices = Vec::with_capacity(lines.len());
    for line in lines {
        let id = ItemId { warehouse, item: line.item };
        prices.push(price(keys, layout, id)?.ok_or_else(|| Stop::Refused(UNUSED.into()))?);
    }
    Ok(prices)
}

/// Takes a line from stock.
fn supply(
    keys: &mut Keys<'_>,
    layout: &Layout,
    line: &Wanted,
    is_remote: bool,
) -> Result<(), Stop> {
    let space = layout.stock().raw();
    let key = keys.encoded(&line.stock());
    let mut row: StockCount = Keys::decode(&needed(keys, space, &key, "stock")?)?;
    row.take(line.quantity, is_remote);
    let value = keys.encode(&row)?;
    keys.put(space, key, value)
}

/// Writes an order line; what it costs.
fn put_line(
    keys: &mut Keys<'_>,
    layout: &Layout,
    id: LineId,
    line: &Wanted,
    price: i64,
) -> Result<i64, Stop> {
    let district = id.order.district;
    let key = keys.encoded(&(district.warehouse, line.stock()));
    let info = needed(keys, layout.stock_infos.raw(), &key, "a copy of stock")?;
    let Wanted { item, supplier, quantity } = *line;
    let amount = i64::from(quantity) * price;
    // S_DIST_xx come first in the row.
    let district_info = district_info(Keys::decode(&info)?, district.number);
    let row = LineRow { item, supplier, delivered: None, quantity, amount, district_info };
    let (key, value) = (keys.encoded(&id), keys.encode(&row)?);
    keys.put(layout.tables.order_lines.raw(), key, value)?;
    Ok(amount)
}

fn show_total(
    keys: &mut Keys<'_>,
    layout: &Layout,
    input: &NewOrderInput,
    sum: i64,
) -> Result<i64, Stop> {
    let (warehouse, district) = hot::rows_of(keys, layout, input.customer.district)?;
    let key = keys.encoded(&input.customer);
    let customer = needed(keys, layout.tables.customers.raw(), &key, "a customer")?;
    // W_TAX, D_TAX and C_DISCOUNT come first in their rows, or behind the hot columns.
    let taxes = [hot::warehouse(layout, &warehouse)?, hot::district(layout, &district)?];
    Ok(total(sum, Keys::decode(&customer)?, taxes))
}
