//! Traces of workloads whose procedures are plans, to find placements by: a simulated run on one
//! node, of which each row that a plan touches is noted, with the rows that it needed.

use std::sync::Arc;

use muesli::plans::{TableUnit, TracedRow, TracedRun, TracedRuns, traced};
use muesli_core::{UnitPart, Units};
use muesli_placement::scheme::{PlacedUnit, PlacementShares, RowPlaces, shares};
use muesli_placement::suggestion::BothShares;
use muesli_placement::trace::{ACCESSES_MAX, TracedAccess, TracedTable, TracedTransaction};
use muesli_placement::{AccessTrace, Scheme, TablePlacement};
use thiserror::Error;

use crate::auctionmark;
use crate::available::{self, UnknownWorkload};
use crate::embedded::Length;
use crate::epinions;
use crate::parameters::ParameterError;
use crate::retwis;
use crate::simulated::{self, Simulated, SimulationError};
use crate::tally::Tallies;
use crate::tpcc::plans::layout as tpcc;
use crate::tpcw;

/// A table: by what plans have its rows placed, what the values of its key's columns are, and how
/// many of these are named by all that touches it.
pub type DescribedTable = (&'static str, TableUnit, &'static [&'static str], u16);

/// A workload whose procedures are plans.
#[derive(Debug)]
pub struct PlannedWorkload {
    /// Its name.
    pub name: &'static str,
    /// With which parameters it is one, and one client stands for all.
    pub parameters: &'static [&'static str],
    /// Its tables.
    pub tables: &'static [DescribedTable],
    /// Whether the scheme that is usual for it has everything everywhere; else it is that of its
    /// plans.
    pub usually_everywhere: bool,
    /// Procedures that are no transactions of its mix, and are not traced: those that load it, and
    /// rounds that read for another one.
    pub apart: &'static [&'static str],
}

/// All of them.
pub static PLANNED: &[PlannedWorkload] = &[
    PlannedWorkload {
        name: "tpcc-procedures",
        parameters: &["procedures=plans", "home=any"],
        tables: tpcc::COLUMNS,
        usually_everywhere: false,
        apart: &[],
    },
    PlannedWorkload {
        name: "epinions",
        parameters: &[],
        tables: epinions::tables::COLUMNS,
        usually_everywhere: true,
        apart: epinions::plans::APART,
    },
    PlannedWorkload {
        name: "retwis",
        parameters: &[],
        tables: retwis::tables::COLUMNS,
        usually_everywhere: false,
        apart: retwis::plans::APART,
    },
    PlannedWorkload {
        name: "tpcw",
        parameters: &[],
        tables: tpcw::tables::COLUMNS,
        usually_everywhere: false,
        apart: tpcw::plans::APART,
    },
    PlannedWorkload {
        name: "auctionmark",
        parameters: &[],
        tables: auctionmark::tables::COLUMNS,
        usually_everywhere: false,
        apart: auctionmark::plans::APART,
    },
];

/// Why there is no trace.
#[derive(Debug, Error)]
pub enum RecordError {
    /// There is no such workload.
    #[error(transparent)]
    Unknown(#[from] UnknownWorkload),
    /// Its procedures are no plans.
    #[error("the procedures of `{0}` are no plans; those of these are: {names}", names = names())]
    NoPlans(String),
    /// Its parameters are wrong.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// It cannot be run.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// A check of it does not hold.
    #[error("the run that was traced is wrong: {0}")]
    Wrong(String),
    /// It touches too many rows.
    #[error(
        "{transactions} transactions of `{workload}` touch more than {ACCESSES_MAX} rows, the most \
         that a trace may have: trace about {fewer}"
    )]
    Large {
        /// The workload.
        workload: &'static str,
        /// How many were asked for.
        transactions: u64,
        /// So many could be traced.
        fewer: u64,
    },
    /// A transaction touches too many rows.
    #[error(
        "a transaction of `{procedure}` needs a row behind the first {}, and a trace numbers no \
         more of one transaction", usize::from(u16::MAX) + 1
    )]
    Long {
        /// The procedure.
        procedure: String,
    },
}

fn names() -> String {
    PLANNED.iter().map(|it| it.name).collect::<Vec<_>>().join(", ")
}

/// The workload called so, if its procedures are plans.
///
/// # Errors
/// There is no such workload, or they are not.
pub fn planned(name: &str) -> Result<&'static PlannedWorkload, RecordError> {
    available::find(name)?;
    let found = PLANNED.iter().find(|planned| planned.name == name);
    found.ok_or_else(|| RecordError::NoPlans(name.to_owned()))
}

/// What a trace is recorded of.
#[derive(Clone, Debug)]
pub struct TraceRequest {
    /// Parameters of the workload (`name=value`).
    pub parameters: Vec<String>,
    /// So many transactions.
    pub transactions: u64,
    /// Where chance comes from.
    pub seed: u64,
}

impl PlannedWorkload {
    /// Records what so many of its transactions touch.
    ///
    /// # Errors
    /// It cannot be run, or a check of it does not hold.
    pub fn record(&self, recording: &TraceRequest) -> Result<AccessTrace, RecordError> {
        let own = self.parameters.iter().map(|text| (*text).to_owned());
        let name = |text: &String| text.split('=').next().map(str::to_owned);
        let given: Vec<_> = recording.parameters.iter().map(name).collect();
        let own = own.filter(|text| !given.contains(&name(text)));
        let parameters: Vec<String> = own.chain(recording.parameters.iter().cloned()).collect();
        let workload = available::find(self.name)?.build(&parameters, 1)?;
        let length = Length::Transactions(recording.transactions);
        let plan = Simulated::calm("granola", 1, recording.seed, length);
        let tallies = Arc::new(Tallies::new(1));
        let run = || simulated::run(&workload, &plan, &tallies);
        let (outcome, TracedRuns { runs, left_out, .. }) = traced(ACCESSES_MAX, self.apart, run);
        if let Some(wrong) = outcome?.checks.into_iter().find(|check| !check.ok) {
            return Err(RecordError::Wrong(format!("{}: {}", wrong.name, wrong.details)));
        }
        if left_out > 0 {
            let (workload, transactions) = (self.name, recording.transactions);
            let fewer = transactions * runs.len() as u64 / (runs.len() as u64 + left_out);
            return Err(RecordError::Large { workload, transactions, fewer });
        }
        self.trace(runs)
    }

    /// The trace of these runs.
    fn trace(&self, runs: Vec<TracedRun>) -> Result<AccessTrace, RecordError> {
        let mut trace = AccessTrace::default();
        for (name, _, columns, named) in self.tables {
            let columns = columns.iter().map(|column| numbered(&mut trace.domains, column));
            let columns = columns.collect();
            let (name, named) = ((*name).to_owned(), *named);
            trace.tables.push(TracedTable { name, columns, named, row_bytes: 0 });
        }
        for run in runs {
            let procedure = numbered(&mut trace.procedures, &run.procedure);
            let accesses: Option<_> = run.rows.iter().map(|row| self.access(row)).collect();
            let long = || RecordError::Long { procedure: run.procedure.clone() };
            let accesses = accesses.ok_or_else(long)?;
            trace.transactions.push(TracedTransaction { procedure, accesses });
        }
        Ok(trace)
    }

    /// A row as a trace has it; `None`: it needs one behind those that can be numbered.
    fn access(&self, row: &TracedRow) -> Option<TracedAccess> {
        let table = self.tables.iter().position(|(name, ..)| *name == row.table);
        let table = table.expect("all tables of a workload's plans are listed");
        let (name, _, _, named) = self.tables[table];
        assert!(row.named >= usize::from(named), "{name} is asked by {} columns", row.named);
        let key = columns(row.parts, row.key.as_slice());
        assert!(key.len() >= row.named, "{name}: a key of {} columns", key.len());
        let needs: Result<_, _> = row.needs.iter().map(|need| u16::try_from(*need)).collect();
        Some(TracedAccess {
            table: table as u16,
            writes: row.writes,
            key,
            by_arguments: row.by_arguments,
            needs: needs.ok()?,
        })
    }

    /// The scheme that is usual for it.
    pub fn manual(&self) -> Scheme {
        let placed = |unit: &TableUnit| match unit {
            _ if self.usually_everywhere => TablePlacement::Everywhere,
            TableUnit::Everywhere => TablePlacement::Everywhere,
            // By all of the key, which is one column here.
            TableUnit::Key | TableUnit::Unit { .. } => TablePlacement::Column(0),
        };
        Scheme { tables: self.tables.iter().map(|(_, unit, ..)| placed(unit)).collect() }
    }

    /// What the usual scheme is worth on these transactions, with units dealt in turn.
    pub fn manual_shares(
        &self,
        trace: &AccessTrace,
        transactions: &[TracedTransaction],
        partitions: u32,
    ) -> PlacementShares {
        shares(trace, transactions, &self.manual(), &RoundRobin(partitions))
    }

    /// The same of both parts of a trace.
    pub fn manual_both(&self, trace: &AccessTrace, partitions: u32) -> BothShares {
        BothShares::of(trace, |of| self.manual_shares(trace, of, partitions))
    }
}

/// Units in turn: the way to deal those that are numbered.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin(pub u32);

impl RowPlaces for RoundRobin {
    fn partition(&self, unit: PlacedUnit) -> u32 {
        (unit.value % u64::from(self.0.max(1))) as u32
    }

    fn partitions(&self) -> u32 {
        self.0
    }
}

/// The number of a name, which is new perhaps.
fn numbered(names: &mut Vec<String>, name: &str) -> u16 {
    let known = names.iter().position(|known| known == name);
    let number = known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    number as u16
}

/// The columns of a key, or of the first of it as far as there are whole ones: numbers as they are,
/// others as hashes.
fn columns(parts: &[UnitPart], key: &[u8]) -> Vec<u64> {
    let (mut all, mut from) = (Vec::with_capacity(parts.len()), 0);
    for last in 0..parts.len() {
        let to = Units::new("", &parts[..=last]).unit_of(key).len();
        let bytes = &key[std::mem::replace(&mut from, to)..to];
        let is_whole = match parts[last] {
            UnitPart::Fixed(width) => bytes.len() == usize::from(width),
            UnitPart::Text => !bytes.is_empty(),
        };
        if !is_whole {
            break;
        }
        all.push(match (parts[last], bytes.len()) {
            (UnitPart::Fixed(_), 0..=8) => {
                bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
            _ => hash(bytes),
        });
    }
    all
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use muesli::Key;

    use super::*;

    #[test]
    fn keys_are_taken_apart_into_their_columns() {
        let parts = [UnitPart::Fixed(4), UnitPart::Fixed(1), UnitPart::Text, UnitPart::Fixed(4)];
        let key = (7_u32, 9_u8, "BARBARBAR".to_owned(), 300_u32).encoded();
        let found = columns(&parts, key.as_slice());
        assert_eq!((found[0], found[1], found[3]), (7, 9, 300));
        let other = (7_u32, 9_u8, "BARBAROUGHT".to_owned(), 300_u32).encoded();
        assert_ne!(columns(&parts, other.as_slice())[2], found[2]);
        // Of an empty range there is what it was asked by.
        assert_eq!(columns(&parts, (7_u32, 9_u8).encoded().as_slice()), [7, 9]);
        let name = (7_u32, 9_u8, "BARBARBAR".to_owned()).encoded();
        assert_eq!(columns(&parts, name.as_slice()), found[..3]);
        assert!(columns(&parts, &[]).is_empty());
    }

    #[test]
    fn rows_that_a_trace_cannot_number_are_refused() {
        let row = |needs: &[usize]| TracedRow {
            table: epinions::tables::COLUMNS[0].0,
            unit: epinions::tables::COLUMNS[0].1,
            parts: &[UnitPart::Fixed(8)],
            key: (7_u64,).encoded(),
            named: 1,
            by_arguments: 1,
            writes: false,
            needs: needs.to_vec(),
        };
        // Found in the table itself: who asks by name has all workloads compiled once more.
        let planned = PLANNED.iter().find(|it| it.name == "epinions").unwrap();
        let of = |needs: &[usize]| {
            let run = TracedRun { procedure: "long".to_owned(), rows: vec![row(needs)] };
            planned.trace(vec![run])
        };
        let trace = of(&[usize::from(u16::MAX)]).unwrap();
        assert_eq!(trace.transactions[0].accesses[0].needs, [u16::MAX]);
        let error = of(&[3, 65_536]).unwrap_err().to_string();
        assert!(error.contains("`long`") && error.contains("65536"), "{error}");
    }
}
