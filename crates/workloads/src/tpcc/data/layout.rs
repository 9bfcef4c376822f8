//! Which spaces the procedures work on.
//!
//! A procedure sees the keys of its own repository and no others. Two things of other warehouses
//! are needed at home: S_DIST_xx of stock that another warehouse supplies, for the order line, and
//! the number of a customer of another warehouse that is known by its last name, for the history.
//! Neither ever changes, so each warehouse has a copy of its own, as it has of the items (H-Store's
//! partitioning, which the Granola thesis takes over in section 6.7).

use muesli::{Db, Error, TypedSpace};
use serde::{Deserialize, Serialize};

use crate::tpcc::ids::{CustomerName, StockId};
use crate::tpcc::rows::{StockCount, StockInfo};
use crate::tpcc::tables::Tables;

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

pub(in crate::tpcc) const NAME_COPIES: &str = "customer-name-copy";
pub(in crate::tpcc) const STOCK_INFOS: &str = "stock-info";

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
