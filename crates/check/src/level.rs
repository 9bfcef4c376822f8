//! The isolation levels, each as a choice of transactions and of edges.
//!
//! A level holds if nothing is wrong with single reads and the chosen graph has no cycle. That is
//! the whole difference between the levels, so it stands here as one table.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::finding::Anomaly;

/// An isolation level to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No write cycle (G0), dirty (G1a), intermediate (G1b) or unrepeatable read.
    Rr,
    /// Adya's PL-2: no G0 and no G1 (a, b, c).
    Pl2,
    /// Update serializability, PL-3U: the committed updates, with any one committed reader, are
    /// serializable.
    Us,
    /// Extended update serializability: as `Us`, and with any one aborted or running transaction.
    Eus,
    /// The committed transactions are serializable in the version order given.
    Serializable,
    /// As `Serializable`, in an order that respects real time.
    StrictSerializable,
    /// All transactions, aborted and running ones too, in one order. So whatever is still under way
    /// sees a serializable snapshot, the same as all others: opacity without real time.
    SerializableAttempts,
    /// The same, in an order that respects real time.
    Opacity,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 8] = [
        Level::Rr,
        Level::Pl2,
        Level::Us,
        Level::Eus,
        Level::Serializable,
        Level::StrictSerializable,
        Level::SerializableAttempts,
        Level::Opacity,
    ];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Level::Rr => "rr",
            Level::Pl2 => "pl2",
            Level::Us => "us",
            Level::Eus => "eus",
            Level::Serializable => "serializable",
            Level::StrictSerializable => "strict-serializable",
            Level::SerializableAttempts => "serializable-attempts",
            Level::Opacity => "opacity",
        }
    }

    /// Whether a finding about a committed (or else uncommitted) transaction breaks this level.
    ///
    /// A version that nobody wrote is no matter of isolation: whoever read it, the data are wrong.
    pub(crate) fn forbids(self, anomaly: Anomaly, committed: bool) -> bool {
        let judged = committed || self.scope().judges_uncommitted();
        match anomaly {
            Anomaly::UnknownVersion => true,
            Anomaly::UnrepeatableRead => judged && self != Level::Pl2,
            _ => judged,
        }
    }

    /// Whether the operations of roots must have a serial order: where that of transactions is
    /// promised.
    pub(crate) fn judges_roots(self) -> bool {
        match self {
            Level::Rr | Level::Pl2 | Level::Us | Level::Eus => false,
            Level::Serializable
            | Level::StrictSerializable
            | Level::SerializableAttempts
            | Level::Opacity => true,
        }
    }

    pub(crate) fn scope(self) -> Scope {
        match self {
            Level::Us => Scope::UpdatesAndOneReader { uncommitted: false },
            Level::Eus => Scope::UpdatesAndOneReader { uncommitted: true },
            Level::Rr | Level::Pl2 | Level::Serializable | Level::StrictSerializable => {
                Scope::Committed
            }
            Level::SerializableAttempts | Level::Opacity => Scope::All,
        }
    }

    /// The edges of this level's graph, before options.
    pub(crate) fn edges(self) -> EdgeSet {
        let (wr, rw) = match self {
            Level::Rr => (false, false),
            Level::Pl2 => (true, false),
            _ => (true, true),
        };
        let real_time = match self {
            Level::StrictSerializable | Level::Opacity => RealTime::All,
            _ => RealTime::None,
        };
        EdgeSet { wr, rw, real_time, session: false }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A level name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no level `{0}`; allowed are rr, pl2, us, eus, serializable, strict-serializable, \
     serializable-attempts and opacity"
)]
pub struct UnknownLevel(pub String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        let level = Level::ALL.into_iter().find(|level| level.name() == name);
        level.ok_or_else(|| UnknownLevel(name.to_owned()))
    }
}

/// Which transactions stand in one graph together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All committed transactions.
    Committed,
    /// The committed updates, and one other transaction at a time: a committed reader, or with
    /// `uncommitted` also an aborted or running transaction.
    UpdatesAndOneReader { uncommitted: bool },
    /// All transactions.
    All,
}

impl Scope {
    pub(crate) fn judges_uncommitted(self) -> bool {
        match self {
            Scope::Committed => false,
            Scope::UpdatesAndOneReader { uncommitted } => uncommitted,
            Scope::All => true,
        }
    }
}

/// Which real-time edges are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RealTime {
    None,
    Updates,
    All,
}

/// Which edges a graph has; write dependencies (ww) always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeSet {
    pub(crate) wr: bool,
    pub(crate) rw: bool,
    pub(crate) real_time: RealTime,
    pub(crate) session: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        let error = "snapshot".parse::<Level>().unwrap_err().to_string();
        assert!(error.contains("snapshot") && error.contains("strict-serializable"));
    }
}
