//! A commit as it is broadcast: what was read, and what is written.

use muesli_core::judgement::{distinct, ensure, in_range};
use muesli_core::limits::{ENTRY_BYTES, range_bytes, read_bytes, writes_bytes};
use muesli_core::parts::single_repository::{NewValues, UNSETTLED_MAX};
use muesli_core::{
    Abort, Failure, KeyRange, Nanos, NodeId, ProcedureId, Rejection, SmallBytes, SpaceId, Stop,
    Timestamp, TxnId, wire_enum, wire_struct,
};
use xxhash_rust::xxh3::Xxh3Default;

/// Clocks of sites and counts are below this.
pub const COUNT_MAX: u64 = 1 << 62;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedCommand {
    /// The transaction.
    pub txn: TxnId,
    /// Where it commits at the earliest: beyond all that its site has applied or proposed.
    pub after: u64,
    /// How many spaces its site knew.
    pub spaces: u16,
    /// Keys that were read.
    pub reads: Vec<ReadKey>,
    /// Ranges that were read.
    pub ranges: Vec<ReadRange>,
    /// What is written.
    pub writes: NewValues,
    /// In place of all that: procedures that are run when the command's turn has come.
    pub calls: Vec<ReplicatedCall>,
}

wire_struct!(CertifiedCommand {
    txn: TxnId,
    after: u64,
    spaces: u16,
    reads: Vec<ReadKey>,
    ranges: Vec<ReadRange>,
    writes: NewValues,
    calls: Vec<ReplicatedCall>,
});

/// A commit with what its site says beside it: so it is broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastCommit {
    /// Transactions of its coordinator below have ended, as that knows.
    pub settled_below: u64,
    /// Since when it has been tried, where it has lost so often that it is to be let through.
    pub tried_since: Option<Nanos>,
    /// The commit.
    pub command: CertifiedCommand,
}

wire_struct!(BroadcastCommit {
    settled_below: u64,
    tried_since: Option<Nanos>,
    command: CertifiedCommand,
});

/// The claim of a transaction that has lost to others so often that it is to be let through: the
/// same in all its attempts. What has been tried for longer has the smaller one, and goes first;
/// clocks of nodes differ, and so that is no more than an order in which all sites agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoserClaim {
    /// Since when it has been tried, by the clock of its node.
    tried_since: Nanos,
    /// The node of its coordinator.
    node: NodeId,
}

wire_struct!(LoserClaim { tried_since: Nanos, node: NodeId });

impl BroadcastCommit {
    /// The claim that it is made with. Procedures lose to nobody, and so have none.
    pub fn claim(&self) -> Option<LoserClaim> {
        let tried_since = self.tried_since.filter(|_| self.command.calls.is_empty());
        tried_since.map(|tried_since| LoserClaim { tried_since, node: self.command.txn.node })
    }

    /// Whether it can be.
    ///
    /// # Errors
    /// It cannot.
    pub fn judge(&self) -> Result<(), Rejection> {
        judge_settled(self.command.txn, self.settled_below)?;
        self.command.judge()
    }
}

/// Whether a coordinator can say this of what is settled, with or about this transaction.
///
/// # Errors
/// It cannot.
pub fn judge_settled(txn: TxnId, settled_below: u64) -> Result<(), Rejection> {
    ensure(settled_below <= txn.sequence, Rejection::Range)?;
    ensure(txn.sequence - settled_below < UNSETTLED_MAX, Rejection::Range)
}

/// A procedure that every site runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedCall {
    /// Which.
    pub procedure: ProcedureId,
    /// To the keys of which partition it is confined.
    pub partition: u16,
    /// What it is given.
    pub arguments: SmallBytes,
}

wire_struct!(ReplicatedCall { procedure: ProcedureId, partition: u16, arguments: SmallBytes });

/// What came of the procedures of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallsEnd {
    /// All came to their end, and gave this.
    Given {
        /// What each gave.
        results: Vec<SmallBytes>,
    },
    /// One refused, for a reason of its own.
    Refused {
        /// The reason.
        reason: SmallBytes,
    },
    /// One did what it may not do, or is not known.
    Faulty {
        /// What, and what is allowed.
        text: String,
    },
}

wire_enum!(CallsEnd, "end of procedures" {
    0 => Given { results: Vec<SmallBytes> },
    1 => Refused { reason: SmallBytes },
    2 => Faulty { text: String },
});

impl CallsEnd {
    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let own = match self {
            CallsEnd::Given { results } => results.iter().map(SmallBytes::len).sum(),
            CallsEnd::Refused { reason } => reason.len(),
            CallsEnd::Faulty { text } => text.len(),
        };
        own + ENTRY_BYTES
    }

    /// What the client of a transaction is told that took no effect, by what came of its
    /// procedures, if it had any.
    pub fn failure(calls: Option<CallsEnd>, reason: Abort) -> Failure {
        match calls {
            Some(CallsEnd::Refused { reason }) => Failure::Refused(reason),
            Some(CallsEnd::Faulty { text }) => Failure::Procedure(text),
            Some(CallsEnd::Given { .. }) | None => Failure::Aborted(reason),
        }
    }
}

impl From<Stop> for CallsEnd {
    fn from(stop: Stop) -> CallsEnd {
        match stop {
            Stop::Refused(reason) => CallsEnd::Refused { reason },
            Stop::Faulty(text) => CallsEnd::Faulty { text },
        }
    }
}

/// A key that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadKey {
    /// The space.
    pub space: SpaceId,
    /// The key.
    pub key: SmallBytes,
    /// What was there.
    pub seen: SeenVersion,
}

wire_struct!(ReadKey { space: SpaceId, key: SmallBytes, seen: SeenVersion });

/// What was there of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenVersion {
    /// A value.
    Present {
        /// Its version.
        version: Timestamp,
    },
    /// No value. Sites forget deletions at moments of their own; so what is told is how many there
    /// had been of keys of its object.
    Absent {
        /// How many.
        deletions: u64,
    },
}

wire_enum!(SeenVersion, "version that was read" {
    0 => Present { version: Timestamp },
    1 => Absent { deletions: u64 },
});

/// A range that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRange {
    /// The range that was asked for, by which it has its objects.
    pub within: KeyRange,
    /// As far as it was seen.
    pub seen: KeyRange,
    /// Its keys and their versions.
    pub digest: RowsDigest,
    /// How many deletions there had been of keys of its objects.
    pub deletions: u64,
}

wire_struct!(ReadRange { within: KeyRange, seen: KeyRange, digest: RowsDigest, deletions: u64 });

/// What stands for the keys of a range, in order, with their versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsDigest {
    /// How many.
    pub rows: u64,
    /// The halves of their hash.
    high: u64,
    low: u64,
}

wire_struct!(RowsDigest { rows: u64, high: u64, low: u64 });

impl RowsDigest {
    /// Of keys with versions, in ascending order.
    pub fn of<'k>(rows: impl Iterator<Item = (&'k SmallBytes, Timestamp)>) -> RowsDigest {
        let (mut hash, mut count) = (Xxh3Default::new(), 0);
        for (key, version) in rows {
            hash.update(&(key.len() as u64).to_le_bytes());
            hash.update(key.as_slice());
            hash.update(&version.0.to_le_bytes());
            count += 1;
        }
        let digest = hash.digest128();
        RowsDigest { rows: count, high: (digest >> 64) as u64, low: digest as u64 }
    }
}

impl ReadKey {
    /// Whether its numbers can be.
    ///
    /// # Errors
    /// They cannot.
    pub fn judge(&self) -> Result<(), Rejection> {
        match self.seen {
            SeenVersion::Present { version } => in_range(version),
            SeenVersion::Absent { deletions } => ensure(deletions < COUNT_MAX, Rejection::Range),
        }
    }
}

impl ReadRange {
    /// Whether its numbers can be.
    ///
    /// # Errors
    /// They cannot.
    pub fn judge(&self) -> Result<(), Rejection> {
        ensure(self.deletions.max(self.digest.rows) < COUNT_MAX, Rejection::Range)
    }
}

/// How many ranges there are, and rows in these.
pub fn rows_of(ranges: &[ReadRange]) -> u64 {
    ranges.iter().fold(0, |sum: u64, range| sum.saturating_add(1 + range.digest.rows))
}

impl CertifiedCommand {
    /// Whether it can be: procedures stand alone, keys are written once, and numbers have room.
    ///
    /// # Errors
    /// It cannot.
    pub fn judge(&self) -> Result<(), Rejection> {
        let is_alone = self.reads.is_empty() && self.ranges.is_empty() && self.writes.is_empty();
        ensure(self.calls.is_empty() || is_alone, Rejection::Range)?;
        ensure(self.after <= Timestamp::FARTHEST.counter(), Rejection::Range)?;
        self.reads.iter().try_for_each(ReadKey::judge)?;
        self.ranges.iter().try_for_each(ReadRange::judge)?;
        distinct(self.writes.iter().map(|(space, key, _)| (*space, key)))
    }

    /// How many ranges it has, and rows in these: so much is looked at where it is certified.
    pub fn rows(&self) -> u64 {
        rows_of(&self.ranges)
    }

    /// What it counts towards the limit of a transaction.
    pub fn bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|it| read_bytes(&it.key)).sum();
        let ranges = self.ranges.iter();
        let each = |it: &ReadRange| {
            range_bytes(&it.within) + range_bytes(&it.seen) + size_of::<RowsDigest>() + ENTRY_BYTES
        };
        let ranges: usize = ranges.map(each).sum();
        let calls = self.calls.iter();
        let calls = calls.map(|it| 2 * ENTRY_BYTES + it.procedure.name.len() + it.arguments.len());
        reads + ranges + writes_bytes(&self.writes) + calls.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_tells_keys_and_versions_apart() {
        let digest = |rows: &[(&str, u64)]| {
            let rows: Vec<_> =
                rows.iter().map(|(key, at)| (SmallBytes::from(*key), Timestamp(*at))).collect();
            RowsDigest::of(rows.iter().map(|(key, at)| (key, *at)))
        };
        let all = [
            digest(&[]),
            digest(&[("a", 1)]),
            digest(&[("a", 2)]),
            digest(&[("a", 1), ("b", 1)]),
            digest(&[("ab", 1)]),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(all[place + 1..].iter().all(|other| one != other), "{one:?}");
        }
        assert_eq!(digest(&[("a", 1), ("b", 1)]).rows, 2);
    }
}
