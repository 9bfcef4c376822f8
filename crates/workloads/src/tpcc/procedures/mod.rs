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
//! With `procedures=plans` the calls are of [plans](super::plans) instead.
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

use std::sync::Arc;

use muesli::procedures::with;
use muesli::{Db, Error, Index, Procedures, SpaceOptions};

use super::layout::{self, Layout};
use super::ledger::TpccLedger;
use super::load::ConstantRows;
use super::mix::Profile;
use super::tables::Tables;
use super::terminal::Terminal;
use super::{Placement, Settings, Tpcc, load, plans, tables};
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
    let written = Parameter::new(
        "procedures",
        "written",
        ParameterKind::Choice(&["written", "plans"]),
        "Whether what procedures declare is written by hand, with copies at each warehouse, or \
         derived of plans, with tables that are everywhere, which not all protocols keep.",
    );
    let mut all = [columns; super::PARAMETERS_OF_BOTH.len() + 2];
    all[super::PARAMETERS_OF_BOTH.len()] = written;
    let mut at = 0;
    while at < super::PARAMETERS_OF_BOTH.len() {
        all[at] = super::PARAMETERS_OF_BOTH[at];
        at += 1;
    }
    all
};

/// The procedures that it calls.
pub fn procedures() -> Procedures {
    let planned = plans::procedures().expect("each of TPC-C's plans is of one round");
    let orders = with::<orders::Supply>(with::<orders::NewOrder>(Procedures::default()));
    let payments = with::<payments::PayElsewhere>(with::<payments::PaymentCall>(orders));
    let reading = with::<reading::StockLevel>(with::<reading::OrderStatus>(payments));
    with::<deliveries::Deliver>(reading).and(&planned)
}

/// TPC-C as procedures, with its parameters.
#[derive(Debug)]
pub struct TpccProcedures {
    pub(in crate::tpcc) tpcc: Tpcc,
    /// Whether the hot columns lie in their rows.
    rows: bool,
    /// Whether procedures are plans.
    planned: bool,
}

/// A client: its terminal, and the spaces that it names in calls, where those are no plans.
#[derive(Debug)]
pub struct Desk {
    terminal: Terminal,
    layout: Option<Layout>,
}

impl TpccProcedures {
    /// TPC-C with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(values: &Values, clients: u32) -> Result<TpccProcedures, ParameterError> {
        let (planned, rows) =
            (values.word("procedures") == "plans", values.word("columns") == "rows");
        if planned && rows {
            let text = "plans have the hot columns apart: `columns=rows` is for `written` ones";
            return Err(ParameterError::Incompatible(text.to_owned()));
        }
        let settings = Settings {
            item_copies: !planned,
            delayed: false,
            placement: Placement::Warehouse,
            balance_apart: false,
            names: 0,
            reads_each: false,
        };
        let tpcc = Tpcc::with_settings(values, clients, settings, NestingPlan::flat())?;
        Ok(TpccProcedures { tpcc, rows, planned })
    }
}

impl Workload for TpccProcedures {
    type Memory = Desk;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        if self.planned {
            return plans::layout::spaces(&Arc::new(self.tpcc.scale.by_units(repositories)));
        }
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
        let copies = match self.planned {
            true => ConstantRows::Everywhere(plans::layout::stock_halves(db)?),
            false => ConstantRows::OfEach(Layout::of(db, self.rows)?),
        };
        load::load_with_copies(db, &self.tpcc.scale, copies).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<Desk, Error> {
        self.ledger(seat).begin_incarnation();
        let of_calls = || Layout::of(&seat.db, self.rows);
        let layout = (!self.planned).then(of_calls).transpose()?;
        let tables = Tables::of(&seat.db)?;
        let terminal = Terminal::begin(&self.tpcc, seat, tables)?;
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
        match self.planned {
            true => survey::check_planned(&self.tpcc, db).await,
            false => survey::check(&self.tpcc, db, self.rows).await,
        }
    }
}

impl TpccProcedures {
    fn ledger(&self, seat: &Seat) -> std::sync::MutexGuard<'_, TpccLedger> {
        self.tpcc.ledgers.of(seat.client)
    }
}
