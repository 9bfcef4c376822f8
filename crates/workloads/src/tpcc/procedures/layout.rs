//! Which spaces the procedures work on, and how they find rows in them.
//!
//! A procedure sees the keys of its own repository and no others. Two things of other warehouses
//! are needed at home: S_DIST_xx of stock that another warehouse supplies, for the order line, and
//! the number of a customer of another warehouse that is known by its last name, for the history.
//! Neither ever changes, so each warehouse has a copy of its own, as it has of the items (H-Store's
//! partitioning, which the Granola thesis takes over in section 6.7).

use muesli::procedures::Keys;
use muesli::{Db, Error, Key, Range, SmallBytes, Space, Stop, TypedSpace};
use serde::{Deserialize, Serialize};

use crate::tpcc::ids::{CustomerName, DistrictId, ItemId, StockId};
use crate::tpcc::rows::{StockCount, StockInfo};
use crate::tpcc::tables::Tables;
use crate::tpcc::terminal::{Who, middle};

/// The spaces; each call carries their numbers, so that no procedure looks for names.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::tpcc) struct Layout {
    pub tables: Tables,
    /// Names of other warehouses' customers: of (holder, name).
    pub name_copies: TypedSpace<(u32, CustomerName), ()>,
    /// What does not change of every warehouse's stock: of (holder, stock).
    pub stock_infos: TypedSpace<(u32, StockId), StockInfo>,
    /// Whether W_YTD, D_YTD and D_NEXT_O_ID lie in their rows.
    pub rows: bool,
}

pub(super) const NAME_COPIES: &str = "customer-name-copy";
pub(super) const STOCK_INFOS: &str = "stock-info";

impl Layout {
    /// That of a database that has the spaces.
    ///
    /// # Errors
    /// It does not have them.
    pub fn of(db: &Db, rows: bool) -> Result<Layout, Error> {
        let tables = Tables::of(db)?;
        let name_copies = db.space(NAME_COPIES)?.typed();
        let stock_infos = db.space(STOCK_INFOS)?.typed();
        Ok(Layout { tables, name_copies, stock_infos, rows })
    }

    /// What changes of stock.
    pub fn stock(&self) -> TypedSpace<StockId, StockCount> {
        self.tables.stock.raw().typed()
    }
}

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
