//! TPC-C as stored procedures: each transaction one round, at one repository or at several that
//! decide alike.
//!
//! Warehouses are dealt to repositories by ranges. Whatever a transaction needs of a warehouse
//! other than those that it changes never changes, and each warehouse has a copy of it
//! ([`layout`](super::layout)). So a New-Order with lines that others supply, and a Payment by a
//! customer of
//! another warehouse, run at two or more repositories as *independent* transactions: nothing is
//! voted on but the time. All others run at one repository. ([`orders`], [`payments`],
//! [`deliveries`], [`reading`]; [`client`] draws what is asked, as the interactive workload does.)
//!
//! The rows, what is loaded, and all that is checked afterwards are those of
//! [the workload on the interactive API](super), but that a row of stock is cut in two: what
//! changes of it, and what does not.
//!
//! Source: Granola thesis, section 6.7; H-Store's partitioning.

mod client;
mod deliveries;
mod hot;
mod lines;
mod lookup;
mod orders;
mod payments;
mod reading;
mod survey;
#[cfg(test)]
mod tests;

use muesli::procedures::with;
use muesli::{Db, Error, Index, Procedures, SpaceOptions};

use super::layout::{self, Layout};
use super::ledger::TpccLedger;
use super::mix::Profile;
use super::terminal::Terminal;
use super::{Placement, Settings, Tpcc, load, tables};
use crate::check::Check;
use crate::nesting::NestingPlan;
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::tally::Ended;
use crate::workload::{Seat, Workload};

/// What TPC-C as procedures takes: as on the interactive API, but for how rows are placed.
pub const PARAMETERS: &[Parameter] = &{
    let columns = Parameter::new(
        "columns",
        "apart",
        ParameterKind::Choice(&["apart", "rows"]),
        "Whether W_YTD, D_YTD and D_NEXT_O_ID lie apart, or in the rows of warehouse and district.",
    );
    let mut all = [columns; super::PARAMETERS_OF_BOTH.len() + 1];
    let mut at = 0;
    while at < super::PARAMETERS_OF_BOTH.len() {
        all[at] = super::PARAMETERS_OF_BOTH[at];
        at += 1;
    }
    all
};

/// The procedures that it calls.
pub fn procedures() -> Procedures {
    let orders = with::<orders::Supply>(with::<orders::NewOrder>(Procedures::default()));
    let payments = with::<payments::PayElsewhere>(with::<payments::PaymentCall>(orders));
    let reading = with::<reading::StockLevel>(with::<reading::OrderStatus>(payments));
    with::<deliveries::Deliver>(reading)
}

/// TPC-C as procedures, with its parameters.
#[derive(Debug)]
pub struct TpccProcedures {
    tpcc: Tpcc,
    /// Whether the hot columns lie in their rows.
    rows: bool,
}

/// A client: its terminal, and the spaces that it names in calls.
#[derive(Debug)]
pub struct Desk {
    terminal: Terminal,
    layout: Layout,
}

impl TpccProcedures {
    /// TPC-C with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(values: &Values, clients: u32) -> Result<TpccProcedures, ParameterError> {
        let settings = Settings {
            item_copies: true,
            delayed: false,
            placement: Placement::Warehouse,
            balance_apart: false,
            names: 0,
            reads_each: false,
        };
        let rows = values.word("columns") == "rows";
        let tpcc = Tpcc::with_settings(values, clients, settings, NestingPlan::flat())?;
        Ok(TpccProcedures { tpcc, rows })
    }
}

impl Workload for TpccProcedures {
    type Memory = Desk;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let partitioning = self.tpcc.scale.by_ranges(repositories);
        let mut spaces = tables::spaces(&partitioning, &partitioning, true);
        for name in [layout::NAME_COPIES, layout::STOCK_INFOS] {
            spaces.push((
                name,
                SpaceOptions { index: Index::Ordered, partitioning: partitioning.clone() },
            ));
        }
        spaces
    }

    fn is_one_round(&self) -> bool {
        true
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        load::load_with_copies(db, &self.tpcc.scale, Layout::of(db, self.rows)?).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<Desk, Error> {
        self.ledger(seat).begin_incarnation();
        let layout = Layout::of(&seat.db, self.rows)?;
        let terminal = Terminal::begin(&self.tpcc, seat, layout.tables)?;
        Ok(Desk { terminal, layout })
    }

    async fn transact(&self, seat: &mut Seat, desk: &mut Desk) -> (Ended, u32) {
        let profile = desk.terminal.next_profile(&self.tpcc.mix, &mut seat.chance);
        let (ended, attempts) = match profile {
            Profile::NewOrder => self.new_order(seat, desk).await,
            Profile::Payment => self.payment(seat, desk).await,
            Profile::OrderStatus => self.order_status(seat, desk).await,
            Profile::Delivery => self.delivery(seat, desk).await,
            Profile::StockLevel => self.stock_level(seat, desk).await,
        };
        self.ledger(seat).settle(profile, &ended);
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        survey::check(&self.tpcc, db, self.rows).await
    }
}

impl TpccProcedures {
    fn ledger(&self, seat: &Seat) -> std::sync::MutexGuard<'_, TpccLedger> {
        self.tpcc.ledgers.of(seat.client)
    }
}
