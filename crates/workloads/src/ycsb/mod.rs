//! YCSB, and transactions over several of its records.
//!
//! Workloads `a` to `f` are the core ones of Yahoo's benchmark, each operation a transaction:
//!
//! | | read | update | insert | scan | read-modify-write | keys |
//! |---|---|---|---|---|---|---|
//! | a | 50 % | 50 % | | | | scrambled zipfian |
//! | b | 95 % | 5 % | | | | scrambled zipfian |
//! | c | 100 % | | | | | scrambled zipfian |
//! | d | 95 % | | 5 % | | | latest |
//! | e | | | 5 % | 95 % | | scrambled zipfian |
//! | f | 50 % | | | | 50 % | scrambled zipfian |
//!
//! A record is one value here, so an update of one of its fields reads the record first, as a
//! read-modify-write does. `t` is the transactional variant: an update reads 16 different records
//! and changes up to 4 of them, a read-only transaction reads 16 or `reader-reads`; with `disjoint`
//! each client has records of its own, which shows what a protocol costs where nothing conflicts.
//! `s` scans instead: each
//! transaction reads a range of 16 neighbouring keys, and updates change, delete and insert
//! records inside it, so that phantoms show.
//!
//! With `nesting` each record that a transaction of `t` uses is a part of it, the write of one with
//! its read, and each range of `s` with its changes.
//!
//! What makes runs checkable: field contents are a function of the record's number; every record
//! counts its changes; and in `t` and `s` records hold units that only move between neighbours,
//! so that whoever reads such a group whole must find all of its units.

mod checks;
mod core;
mod keys;
mod ledger;
mod record;
mod transactional;

use muesli::{Db, Error, Index, Space, SpaceOptions};

use crate::check::Check;
use crate::distribution::Distribution;
use crate::loading::write_missing;
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::parted::{NESTING_BY_ROWS, PartsDb};
use crate::staleness::{self, StaleReads};
use crate::tally::Ended;
use crate::workload::{Seat, Workload};
use keys::KeyChooser;
use ledger::{Ledgers, YcsbLedger};
use record::{Record, RecordLayout};

/// The space with the records.
const SPACE: &str = "usertable";

/// What YCSB takes.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "workload",
        "a",
        ParameterKind::Choice(&["a", "b", "c", "d", "e", "f", "t", "s"]),
        "Core a to f, t: transactions over several records, s: transactions that scan.",
    ),
    Parameter::new(
        "keys",
        "1000",
        ParameterKind::Count(2, 100_000_000),
        "How many records there are at first.",
    ),
    Parameter::new("fields", "10", ParameterKind::Count(1, 1000), "Fields of a record."),
    Parameter::new("field-length", "100", ParameterKind::Count(1, 100_000), "Bytes of a field."),
    Parameter::new(
        "distribution",
        "default",
        ParameterKind::Choice(DISTRIBUTIONS),
        "How keys are chosen; by default latest in d, zipfian in t and s, else scrambled.",
    ),
    Parameter::new(
        "theta",
        "0.99",
        ParameterKind::Number(0.0, 1.0),
        "Skew of the zipfian and latest distributions; that of the scrambled one is always 0.99.",
    ),
    Parameter::new(
        "inserts",
        "100",
        ParameterKind::Count(0, 100_000_000),
        "Inserts expected in d and e, for which the distributions leave room.",
    ),
    Parameter::new(
        "scan",
        "100",
        ParameterKind::Count(1, 100_000),
        "Most records of a scan in e; the least is 1.",
    ),
    Parameter::new(
        "reads",
        "16",
        ParameterKind::Count(1, 10_000),
        "Records that a transaction of t reads, and keys of a range in s.",
    ),
    Parameter::new(
        "ranges",
        "1",
        ParameterKind::Count(1, 1_000),
        "Different ranges that a transaction of s scans, and changes if it is an update.",
    ),
    Parameter::new(
        "writes",
        "4",
        ParameterKind::Count(1, 10_000),
        "Most records that an update of t or s changes; the least is 1.",
    ),
    Parameter::new(
        "updates",
        "50",
        ParameterKind::Percent,
        "Share of the transactions of t and s that are updates.",
    ),
    Parameter::new(
        "groups",
        "20",
        ParameterKind::Percent,
        "Share of the transactions of t that read a whole group of neighbours.",
    ),
    Parameter::new(
        "reader-reads",
        "0",
        ParameterKind::Count(0, 10_000),
        "Records that a read-only transaction of t reads; 0 is as many as an update.",
    ),
    Parameter::new(
        "one-by-one",
        "false",
        ParameterKind::Flag,
        "Whether transactions of t read one record after the other instead of all at once.",
    ),
    Parameter::new(
        "disjoint",
        "false",
        ParameterKind::Flag,
        "Whether each client of t uses records of its own, so that none conflict; no groups then.",
    ),
    staleness::PARAMETER,
    NESTING_BY_ROWS,
    PATIENCE,
];

const DISTRIBUTIONS: &[&str] =
    &["default", "uniform", "zipfian", "scrambled", "latest", "hotspot", "exponential"];

/// Which of the workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YcsbVariant {
    Core(core::Shares),
    Transactional,
    Scanning,
}

/// YCSB with its parameters.
#[derive(Debug)]
pub struct Ycsb {
    variant: YcsbVariant,
    layout: RecordLayout,
    keys: KeyChooser,
    distribution: Distribution,
    scan: u64,
    reads: usize,
    ranges: usize,
    writes: u64,
    updates: f64,
    groups: f64,
    reader_reads: usize,
    one_by_one: bool,
    /// Each client chooses among every so many-th record.
    shares: u64,
    nesting: NestingPlan,
    stale_reads: StaleReads,
    ledgers: Ledgers,
}

/// What a client of YCSB remembers.
#[derive(Debug)]
pub struct YcsbMemory {
    space: Space,
    writer: PartsDb,
    reader: PartsDb,
    distribution: Distribution,
}

impl Ycsb {
    /// YCSB with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(values: &Values, clients: u32) -> Result<Ycsb, ParameterError> {
        let word = values.word("workload");
        let variant = match word {
            "t" => YcsbVariant::Transactional,
            "s" => YcsbVariant::Scanning,
            core => YcsbVariant::Core(core::Shares::of(core)),
        };
        let (count, reads) = (values.count("keys"), values.count("reads"));
        if variant == YcsbVariant::Scanning && count < reads {
            let text = format!("ranges of {reads} keys need at least {reads} keys, not {count}");
            return Err(ParameterError::Incompatible(text));
        }
        let name = match (values.word("distribution"), word) {
            ("default", "d") => "latest",
            ("default", "t" | "s") => "zipfian",
            ("default", _) => "scrambled",
            (given, _) => given,
        };
        let shares = if values.flag("disjoint") { u64::from(clients.max(1)) } else { 1 };
        if shares > 1 && count / shares < reads {
            let least = shares * reads;
            let text =
                format!("{clients} disjoint clients need at least {least} keys, not {count}");
            return Err(ParameterError::Incompatible(text));
        }
        let choices = match variant {
            YcsbVariant::Scanning => count / reads,
            YcsbVariant::Transactional => count / shares,
            YcsbVariant::Core(_) => count,
        };
        let ranges = values.count("ranges");
        if variant == YcsbVariant::Scanning && ranges > choices {
            let text = format!("ranges={ranges} is more than there are: {choices} of {reads} keys");
            return Err(ParameterError::Incompatible(text));
        }
        let nesting = NestingPlan::seldom_open(values);
        if matches!(variant, YcsbVariant::Core(_)) && !nesting.is_flat() {
            let given = values.word("nesting");
            let text = format!(
                "nesting={given} needs workload=t or s: a transaction of {word} is one \
                 operation, and has no parts"
            );
            return Err(ParameterError::Incompatible(text));
        }
        let capacity = match variant {
            YcsbVariant::Core(shares) if shares.insert > 0 => values.count("inserts"),
            _ => 0,
        };
        Ok(Ycsb {
            variant,
            layout: RecordLayout::new(values.count("fields"), values.count("field-length")),
            keys: KeyChooser::new(count, variant == YcsbVariant::Scanning),
            distribution: Distribution::new(name, choices, values.number("theta"), capacity),
            scan: values.count("scan"),
            reads: reads as usize,
            ranges: ranges as usize,
            writes: values.count("writes"),
            updates: values.number("updates"),
            groups: if shares > 1 { 0.0 } else { values.number("groups") },
            reader_reads: match values.count("reader-reads") {
                0 => reads as usize,
                other => other as usize,
            },
            one_by_one: values.flag("one-by-one"),
            shares,
            nesting,
            stale_reads: StaleReads::new(values),
            ledgers: Ledgers::new(clients, |_| YcsbLedger::default()),
        })
    }

    /// A record that was read, if it is whole.
    fn decode(&self, value: &muesli::SmallBytes) -> Result<Record, Error> {
        self.layout.decode(value)
    }

    fn index(&self) -> Index {
        match self.variant {
            YcsbVariant::Core(shares) if shares.scan == 0 => Index::Hash,
            YcsbVariant::Transactional => Index::Hash,
            YcsbVariant::Core(_) | YcsbVariant::Scanning => Index::Ordered,
        }
    }
}

impl Workload for Ycsb {
    type Memory = YcsbMemory;

    fn spaces(&self, _repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        vec![(SPACE, SpaceOptions { index: self.index(), ..SpaceOptions::default() })]
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        let row = |number| (self.keys.name(number), self.layout.encode(&Record::first(number)));
        write_missing(db, db.space(SPACE)?, (0..self.keys.first_count()).map(row)).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<YcsbMemory, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        let (space, reader) = (seat.db.space(SPACE)?, self.stale_reads.handle(&seat.db));
        let writer = self.nesting.parts_handle(seat.node, &seat.db, "updates")?;
        let reader = self.nesting.parts_handle(seat.node, &reader, "reads")?;
        Ok(YcsbMemory { space, writer, reader, distribution: self.distribution.clone() })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut YcsbMemory) -> (Ended, u32) {
        match self.variant {
            YcsbVariant::Core(shares) => self.core(shares, seat, memory).await,
            YcsbVariant::Transactional => self.transactional(seat, memory).await,
            YcsbVariant::Scanning => self.scanning(seat, memory).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution;

    #[test]
    fn every_distribution_can_be_asked_for() {
        assert_eq!(DISTRIBUTIONS[1..], *distribution::NAMES);
    }
}
