//! How transactions end, and what a client is told.

use thiserror::Error;

use crate::bytes::SmallBytes;
use crate::exceeded::Limit;
use crate::ids::{Timestamp, TxnId};
use crate::wire::{Reader, Wire, WireError};

/// Why a transaction was aborted. Every reason but [`Abort::Rollback`], [`Abort::Superseded`] and
/// the limits is about concurrency or failures, and running the transaction again may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum Abort {
    /// A value that was read has been overwritten before the commit.
    #[error("a value that was read has been overwritten by another transaction")]
    StaleRead,
    /// A scanned range changed before the commit.
    #[error("a scanned range was changed by another transaction")]
    Phantom,
    /// A lock was not free, and not within the bounded wait where waiting could have helped.
    #[error("another transaction held a lock that this one needed")]
    Locked,
    /// The snapshot is older than the oldest version still kept: it was open for longer than the
    /// lease, or old versions took more memory than they may.
    #[error(
        "the snapshot is older than the versions still kept, which is for as long as \
         `snapshot_age_max_ms` says, and within `old_version_bytes`"
    )]
    SnapshotTooOld,
    /// Whoever finished the transaction for a coordinator thought dead decided to abort it.
    #[error("the transaction was taken for abandoned and finished by others")]
    Abandoned,
    /// The queues of a repository were full.
    #[error("a repository was overloaded")]
    Overloaded,
    /// A key was used that a delayed action of the same transaction is for: run again, it does its
    /// actions at once.
    #[error("a key was used that a delayed action of the transaction is for")]
    FootprintViolation,
    /// The transaction missed a write, so that it could lie in the past alone, where its delayed
    /// actions are not done: run again, it does them at once.
    #[error("the transaction missed a write, and has delayed actions, which are of the present")]
    TimeWarpedActions,
    /// The client rolled back.
    #[error("rolled back")]
    Rollback,
    /// A server's limit of a key.
    #[error("a key is over the limit of the server that holds it (`key_bytes_max`)")]
    KeyTooLarge,
    /// A server's limit of a value.
    #[error("a value is over the limit of the server that is to hold it (`value_bytes_max`)")]
    ValueTooLarge,
    /// A server's limit of a transaction.
    #[error("the transaction is over the limit of a server (`transaction_bytes_max`)")]
    TransactionTooLarge,
    /// Another process has the coordinator's number since, with a larger incarnation: this one is
    /// to end, or to come again under another number.
    #[error(
        "another process has come with this client's number and a later incarnation; connect anew"
    )]
    Superseded,
    /// The server's memory is at its limit: reads and deletes go on.
    #[error(
        "a server's memory is at its limit (`memory_bytes`), where it takes no more writes but \
         deletes; delete something, or raise the limit"
    )]
    OutOfMemory,
    /// A repository may have forgotten how the transaction ended: its client was silent for longer
    /// than its lease.
    #[error(
        "a server does not remember this client, which was silent for longer than \
         `client_lease_ms`, and may have forgotten the transaction; run it again"
    )]
    Forgotten,
    /// A key that the transaction writes was not where its coordinator took it to be.
    #[error("a key that the transaction writes has moved to another node")]
    Moved,
}

impl Abort {
    /// All reasons, in their order.
    pub const ALL: [Abort; 16] = [
        Abort::StaleRead,
        Abort::Phantom,
        Abort::Locked,
        Abort::SnapshotTooOld,
        Abort::Abandoned,
        Abort::Overloaded,
        Abort::FootprintViolation,
        Abort::TimeWarpedActions,
        Abort::Rollback,
        Abort::KeyTooLarge,
        Abort::ValueTooLarge,
        Abort::TransactionTooLarge,
        Abort::Superseded,
        Abort::OutOfMemory,
        Abort::Forgotten,
        Abort::Moved,
    ];

    /// Whether delayed actions are done at once where the transaction is run again.
    pub fn ends_delays(self) -> bool {
        matches!(self, Abort::FootprintViolation | Abort::TimeWarpedActions)
    }

    /// Whether running the transaction again may succeed.
    pub fn is_retryable(self) -> bool {
        !matches!(self, Abort::Rollback | Abort::Superseded) && self.limit().is_none()
    }

    /// The limit of a server that the transaction is over, if that is why.
    pub fn limit(self) -> Option<Limit> {
        match self {
            Abort::KeyTooLarge => Some(Limit::Key),
            Abort::ValueTooLarge => Some(Limit::Value),
            Abort::TransactionTooLarge => Some(Limit::Transaction),
            _ => None,
        }
    }
}

/// The end of a transaction as its participants agree on it; `P` says where a committed one lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision<P = Timestamp> {
    /// Its writes take effect at this place.
    Commit(P),
    /// It has no effect.
    Abort(Abort),
}

/// The protocols under which a transaction may say how stale what it sees may be.
pub const BOUNDING_PROTOCOLS: &[&str] = &[
    "score",
    "score-waiting",
    "bumper",
    "bumper-time-warping",
    "bumper-delaying",
    "bumper-reconciled",
    "bumper-waiting",
    "bumper-printed",
    "gmu",
    "gmu-printed",
    "two-phase-commit",
    "two-phase-commit-waiting",
    "sinfonia",
    "hierarchy",
    "hierarchy-flat",
    "hierarchy-flat-participant",
    "hierarchy-flat-relay",
    "hierarchy-printed",
    "hierarchy-unchecked",
    "hierarchy-flat-unchecked",
    "hierarchy-locking",
    "hierarchy-locking-flat",
    "hierarchy-locking-flat-participant",
    "hierarchy-locking-flat-relay",
    "hierarchy-locking-unchecked",
    "hierarchy-locking-printed",
    "tfa",
    "tfa-staying",
    "alvin",
    "alvin-fast",
    "alvin-eus",
    "certified-epaxos",
    "certified-generalized",
    "certified-m2paxos",
    "certified-multipaxos",
    "sharded-epaxos",
    "sharded-generalized",
    "sharded-m2paxos",
    "sharded-multipaxos",
    "sharded-pob",
    "non-genuine-multiversioning",
];

/// What went wrong with an operation or a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// Aborted; nothing was changed. Run it again.
    #[error("aborted: {0}; run the transaction again")]
    Aborted(#[from] Abort),
    /// A part of the transaction was undone: this level of it, with all inside. What is further out
    /// stands, and the level's body is to be run again, begun by [`Nest`](crate::Operation::Nest).
    #[error("level {level} of the transaction was undone; run its body again")]
    PartialAbort {
        /// The outermost level that was undone.
        level: u32,
    },
    /// Something was asked of a transaction beside a child of it that is open, or a second child.
    #[error("a child of the transaction is open; wait for its end, for one runs at a time")]
    ChildOpen,
    /// A delayed action cannot be left to its turn, as this text says; nothing was changed. Run it
    /// again, with its actions done at once.
    #[error("a delayed action cannot be left to its turn: {0}; run it again, done at once")]
    FootprintViolation(String),
    /// No answer in time; nothing was changed.
    #[error("no answer within {after_ms} ms; nothing was changed, try again later")]
    Timeout {
        /// How long was waited, in milliseconds.
        after_ms: u64,
    },
    /// The commit was sent, and its answer never came: it may or may not have taken effect.
    #[error(
        "the outcome of {txn} is unknown: the commit was sent and not answered within {after_ms} ms"
    )]
    Unknown {
        /// How long was waited, in milliseconds.
        after_ms: u64,
        /// The transaction, to be asked about later.
        txn: TxnId,
    },
    /// The transaction committed, but what its procedures gave is forgotten: a repository that did
    /// it had not been asked by its client for longer than it keeps such.
    #[error("the transaction committed, but what its procedures gave was not told in time")]
    AnswerLost,
    /// A key, a value, the transaction or an answer is larger than the limit; nothing was sent.
    #[error("{what} of {size} bytes is over the limit of {limit} bytes (`{}`)", what.key())]
    TooLarge {
        /// Which limit.
        what: Limit,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes, from [`Limits`](crate::limits::Limits).
        limit: usize,
    },
    /// The transaction has already ended.
    #[error("the transaction has already ended")]
    Ended,
    /// A read-only transaction was asked to write.
    #[error("this transaction is read-only; begin it without `read_only` to write")]
    ReadOnly,
    /// No snapshot is at hand that is as fresh as the transaction is to see, and it is not to wait
    /// for one; nothing was changed.
    #[error(
        "no snapshot is at hand that has all commits of {most_ms} ms ago; try again soon, allow \
         for more, or let the transaction wait"
    )]
    NotFresh {
        /// How stale it may be, in milliseconds.
        most_ms: u64,
    },
    /// Transactions of the protocol do not keep to how stale they may be.
    #[error(
        "protocol `{protocol}` does not bound how stale what a transaction sees is; these do: {}",
        BOUNDING_PROTOCOLS.join(", ")
    )]
    Unbounded {
        /// The protocol.
        protocol: &'static str,
    },
    /// The space is unknown, or cannot do what was asked.
    #[error("{0}")]
    Space(String),
    /// The procedure refused, for a reason of its own; nothing was changed.
    #[error("refused: {}", String::from_utf8_lossy(.0.as_slice()))]
    Refused(SmallBytes),
    /// A procedure is unknown, was called in a way that it does not allow, or did what it may not.
    #[error("{0}")]
    Procedure(String),
    /// The transaction was open for longer than its client allows, and was aborted.
    #[error(
        "the transaction was open for longer than its timeout of {after_ms} ms and was aborted; \
         nothing was changed"
    )]
    TransactionTimeout {
        /// The timeout, in milliseconds.
        after_ms: u64,
    },
    /// The database was closed, or the node is gone.
    #[error("the database is closed")]
    Closed,
}

impl Failure {
    /// Whether running the transaction again can help and cannot harm.
    pub fn is_retryable(&self) -> bool {
        match self {
            Failure::Aborted(reason) => reason.is_retryable(),
            other => matches!(other, Failure::FootprintViolation(_)),
        }
    }
}

/// What has become of a transaction whose commit was not answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of its writes took effect.
    Committed(Committed),
    /// It had no effect, and never will.
    Aborted(Abort),
    /// Still not known, or not any more.
    NotKnown(Doubt),
}

/// Why an outcome is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Doubt {
    /// Its coordinator still asks for the votes, for as long as it lives.
    #[error("not all of its repositories have answered yet; ask again later")]
    UnderWay,
    /// Its coordinator does not remember it.
    #[error(
        "it is not among those remembered: it was answered, never begun, or long ago; \
         read what it wrote"
    )]
    Forgotten,
    /// Another coordinator ran it.
    #[error("it was begun by another process, which alone remembers it; read what it wrote")]
    Elsewhere,
}

/// What a committed transaction is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its place in the serial order: the commit timestamp of an update, the snapshot of a
    /// read-only transaction.
    pub at: Timestamp,
}

impl Wire for Abort {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Abort::StaleRead => 0,
            Abort::Phantom => 1,
            Abort::Locked => 2,
            Abort::SnapshotTooOld => 3,
            Abort::Abandoned => 4,
            Abort::Overloaded => 5,
            Abort::Rollback => 6,
            Abort::FootprintViolation => 7,
            Abort::KeyTooLarge => 8,
            Abort::ValueTooLarge => 9,
            Abort::TransactionTooLarge => 10,
            Abort::Superseded => 11,
            Abort::OutOfMemory => 12,
            Abort::TimeWarpedActions => 13,
            Abort::Forgotten => 14,
            Abort::Moved => 15,
        });
    }

    fn decode(input: &mut Reader<'_>) -> Result<Abort, WireError> {
        let at = input.position();
        Ok(match u8::decode(input)? {
            0 => Abort::StaleRead,
            1 => Abort::Phantom,
            2 => Abort::Locked,
            3 => Abort::SnapshotTooOld,
            4 => Abort::Abandoned,
            5 => Abort::Overloaded,
            6 => Abort::Rollback,
            7 => Abort::FootprintViolation,
            8 => Abort::KeyTooLarge,
            9 => Abort::ValueTooLarge,
            10 => Abort::TransactionTooLarge,
            11 => Abort::Superseded,
            12 => Abort::OutOfMemory,
            13 => Abort::TimeWarpedActions,
            14 => Abort::Forgotten,
            15 => Abort::Moved,
            other => return Err(WireError::no_variant("reason of an abort", at, other)),
        })
    }
}

impl<P: Wire> Wire for Decision<P> {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Decision::Commit(at) => {
                out.push(0);
                at.encode(out);
            }
            Decision::Abort(reason) => {
                out.push(1);
                reason.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Decision<P>, WireError> {
        let at = input.position();
        match u8::decode(input)? {
            0 => P::decode(input).map(Decision::Commit),
            1 => Abort::decode(input).map(Decision::Abort),
            other => Err(WireError::no_variant("decision", at, other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_by_their_numbers() {
        for (number, reason) in Abort::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number, "{reason:?}");
        }
    }
}
