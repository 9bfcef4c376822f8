//! What a repository keeps in its log.

use std::sync::Arc;

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Abort, Decision, SmallBytes, SpaceId, Timestamp, TxnId};

use super::moves::MovedKey;
use super::wire::put;
use super::{Answers, Prepare, Writes};
use crate::two_phase::Variant;

/// What a repository's log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<V: Variant> {
    /// Voted yes with this proposal.
    Prepared {
        /// What was asked.
        prepare: Arc<Prepare<V>>,
        /// What was proposed.
        at: V::Yes,
    },
    /// Voted no, or was asked before the prepare came.
    Refused {
        /// The transaction.
        txn: TxnId,
        /// Why.
        reason: Abort,
    },
    /// Learned the end of a transaction voted yes on.
    Decided {
        /// The transaction.
        txn: TxnId,
        /// Its end.
        decision: Decision<V::Place>,
    },
    /// Committed in one step: no other repository took part.
    Committed {
        /// Where it lies.
        at: V::Place,
        /// What was written.
        writes: Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>,
    },
    /// What delayed procedures wrote in their turn, and what is told of what was delayed.
    Ran {
        /// The transaction.
        txn: TxnId,
        /// What procedures wrote.
        writes: Writes,
        /// What is told.
        answers: Answers,
    },
    /// No snapshot above this was served before the next such record.
    UpperBound {
        /// The bound.
        at: Timestamp,
    },
    /// Keys that static placement puts here have new owners, where keys move.
    NewOwners {
        /// The keys.
        moved: Vec<MovedKey>,
    },
    /// Whoever has to know where these keys went knows it: nothing of them is kept here.
    KnownOwners {
        /// The keys.
        moved: Vec<MovedKey>,
    },
    /// The disk was lost, and what others know of keys that moved is asked for; or it is known, and
    /// nobody is asked any more.
    Rebuild {
        /// Whether all have said what they know.
        is_over: bool,
    },
    /// Nobody reads below this any more: a replay, too, drops what is not needed at or above it.
    Low {
        /// The watermark.
        low: V::Snapshot,
    },
}

impl<V: Variant> Wire for Record<V> {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Prepared { prepare, at } => {
                put(0, prepare, out);
                at.encode(out);
            }
            Record::Refused { txn, reason } => {
                put(1, txn, out);
                reason.encode(out);
            }
            Record::Decided { txn, decision } => {
                put(2, txn, out);
                decision.encode(out);
            }
            Record::Committed { at, writes } => {
                put(3, at, out);
                writes.encode(out);
            }
            Record::UpperBound { at } => put(4, at, out),
            Record::Low { low } => put(5, low, out),
            Record::Ran { txn, writes, answers } => {
                put(6, txn, out);
                writes.encode(out);
                answers.encode(out);
            }
            Record::NewOwners { moved } => put(7, moved, out),
            Record::KnownOwners { moved } => put(8, moved, out),
            Record::Rebuild { is_over } => put(9, is_over, out),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Record<V>, WireError> {
        let start = input.position();
        Ok(match u8::decode(input)? {
            0 => Record::Prepared { prepare: Wire::decode(input)?, at: Wire::decode(input)? },
            1 => Record::Refused { txn: Wire::decode(input)?, reason: Wire::decode(input)? },
            2 => Record::Decided { txn: Wire::decode(input)?, decision: Wire::decode(input)? },
            3 => Record::Committed { at: Wire::decode(input)?, writes: Wire::decode(input)? },
            4 => Record::UpperBound { at: Wire::decode(input)? },
            5 => Record::Low { low: Wire::decode(input)? },
            6 => Record::Ran {
                txn: Wire::decode(input)?,
                writes: Wire::decode(input)?,
                answers: Wire::decode(input)?,
            },
            7 if V::POLICIES.moving.may_move() => Record::NewOwners { moved: Wire::decode(input)? },
            8 if V::POLICIES.moving.may_move() => {
                Record::KnownOwners { moved: Wire::decode(input)? }
            }
            9 if V::POLICIES.moving.may_move() => Record::Rebuild { is_over: Wire::decode(input)? },
            other => return Err(WireError::no_variant("record", start, other)),
        })
    }
}
