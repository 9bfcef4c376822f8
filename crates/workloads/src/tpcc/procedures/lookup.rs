//! How procedures find rows that must be there, prices, and customers by their names.

use muesli::procedures::Keys;
use muesli::{Error, Key, Range, SmallBytes, Space, Stop};

use crate::tpcc::ids::{CustomerName, DistrictId, ItemId};
use crate::tpcc::layout::Layout;
use crate::tpcc::terminal::{Who, middle};

/// A row that must be there.
pub(super) fn needed(
    keys: &mut Keys<'_>,
    space: Space,
    key: &SmallBytes,
    what: &str,
) -> Result<SmallBytes, Stop> {
    keys.get(space, key)?.ok_or_else(|| missing(what))
}

pub(super) fn missing(what: &str) -> Stop {
    Stop::Faulty(format!("{what} is missing"))
}

/// The price of an item as a warehouse's copy has it; `None`: there is no such item.
pub(super) fn price(keys: &mut Keys<'_>, layout: &Layout, id: ItemId) -> Result<Option<i64>, Stop> {
    let key = keys.encoded(&id);
    let row = keys.get(layout.tables.items.raw(), &key)?;
    // I_PRICE comes first in the row.
    row.map(|row| Keys::decode(&row)).transpose()
}

/// The number of the customer that is looked for, as `holder` knows it: of those with one last
/// name, the middle one by their first names (clause 2.5.2.2).
pub(super) fn customer_number(
    keys: &mut Keys<'_>,
    layout: &Layout,
    holder: u32,
    district: DistrictId,
    who: &Who,
) -> Result<u32, Stop> {
    let last = match who {
        Who::Number(number) => return Ok(*number),
        Who::LastName(last) => last,
    };
    let is_own = holder == district.warehouse;
    let (space, prefix) = match is_own {
        true => (layout.tables.customer_names.raw(), (district, last.clone()).encoded()),
        false => (layout.name_copies.raw(), (holder, district, last.clone()).encoded()),
    };
    let named = keys.scan(space, Range::prefix(prefix))?;
    let (key, _) = named.get(middle(named.len())).ok_or_else(|| missing("a customer's name"))?;
    let undecodable = |error: Error| Stop::Faulty(error.to_string());
    let bytes = key.as_slice();
    let name = match is_own {
        true => CustomerName::decoded(bytes),
        false => <(u32, CustomerName)>::decoded(bytes).map(|(_, name)| name),
    };
    Ok(name.map_err(undecodable)?.customer)
}
