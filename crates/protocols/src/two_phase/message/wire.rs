//! The bytes of the family's messages and records.
//!
//! Layouts are fixed: a byte for the kind, then the fields in the order in which they are
//! declared. [`is_about`] is the second half of what is checked as messages come in: bytes that
//! decode may still name a repository or a space that is not there, and inside nobody asks again.

use muesli_core::ranges::KeyRange;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{
    Abort, Action, Catalog, Decision, DelayedCall, Index, Nanos, RepositoryId, SmallBytes, SpaceId,
    Timestamp, TxnId, wire_struct,
};

use super::moves::{ArrivingWrite, LeavingWrite, WhereKeysMove};
use super::voted_footprint::VotedFootprint;
use super::{About, Extra, Few, Message, Prepare, Repositories, RepositoryVote, Vote};
use crate::two_phase::Variant;

wire_struct!(Prepare<V: Variant> {
    txn: TxnId,
    settled_below: u64,
    participants: Repositories,
    snapshot: V::Snapshot,
    reader: V::Reader,
    strict: bool,
    reads: Few<(SpaceId, SmallBytes, Timestamp)>,
    writes: Few<(SpaceId, SmallBytes, Option<SmallBytes>)>,
    scans: Vec<KeyRange>,
    delayed: Vec<(SpaceId, SmallBytes, Action)>,
    extra: Option<Box<Extra>>,
    leaving: WhereKeysMove<V, LeavingWrite>,
    arriving: WhereKeysMove<V, ArrivingWrite>,
});

wire_struct!(About {
    participants: u64,
    changes: Vec<(u16, u64)>,
    moves: Vec<(RepositoryId, RepositoryId, u64)>,
});

wire_struct!(RepositoryVote<V: Variant> {
    repository: RepositoryId,
    vote: Vote<V>,
    about: Option<Box<About>>,
    tag: u64,
});

wire_struct!(Extra {
    calls: Vec<DelayedCall>,
    asked: Vec<(u32, u32)>,
    result_bytes: u64,
    votes_directly: bool,
});

impl<V: Variant> Wire for Vote<V> {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Vote::Yes(yes) => {
                out.push(0);
                yes.encode(out);
            }
            Vote::No(reason) => {
                out.push(1);
                reason.encode(out);
            }
            Vote::Decided(decision) => {
                out.push(2);
                decision.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Vote<V>, WireError> {
        let at = input.position();
        match u8::decode(input)? {
            0 => Wire::decode(input).map(Vote::Yes),
            1 => Abort::decode(input).map(Vote::No),
            2 => Decision::decode(input).map(Vote::Decided),
            other => Err(WireError::no_variant("vote", at, other)),
        }
    }
}

mod kind {
    pub const READ: u8 = 0;
    pub const READ_REPLY: u8 = 1;
    pub const SCAN: u8 = 2;
    pub const SCAN_REPLY: u8 = 3;
    pub const PREPARE: u8 = 4;
    pub const VOTE: u8 = 5;
    pub const DECIDE: u8 = 6;
    pub const ACKNOWLEDGE: u8 = 7;
    pub const ASK: u8 = 8;
    pub const BOUND: u8 = 9;
    pub const WATERMARK: u8 = 10;
    pub const RAN: u8 = 11;
    pub const LOCK: u8 = 12;
    pub const LOCKED: u8 = 13;
    pub const UNLOCK: u8 = 14;
    pub const SETTLED: u8 = 15;
    pub const ASK_DOUBTS: u8 = 16;
    pub const NO_DOUBTS: u8 = 17;
    pub const MERGED_VOTE: u8 = 18;
    pub const ENDED: u8 = 19;
    pub const MERGED_DECISION: u8 = 20;
    pub const NEW_OWNERS: u8 = 21;
    pub const KNOWN_OWNERS: u8 = 22;
    pub const WATCH: u8 = 23;
    pub const UNWATCH: u8 = 24;
    pub const CHANGED: u8 = 25;
    pub const WAITING: u8 = 26;
    pub const ASK_OWNED: u8 = 27;
    pub const OWNED: u8 = 28;
}

/// Appends a kind and what belongs to it.
pub(super) fn put(kind: u8, body: &impl Wire, out: &mut Vec<u8>) {
    out.push(kind);
    body.encode(out);
}

impl<V: Variant> Wire for Message<V> {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Message::Read(read) => put(kind::READ, read, out),
            Message::ReadReply(reply) => put(kind::READ_REPLY, reply, out),
            Message::Scan(scan) => put(kind::SCAN, scan, out),
            Message::ScanReply(reply) => put(kind::SCAN_REPLY, reply, out),
            Message::Prepare(prepare) => put(kind::PREPARE, prepare, out),
            Message::Vote { txn, repository, vote, committed, about, tag } => {
                put(kind::VOTE, txn, out);
                repository.encode(out);
                vote.encode(out);
                committed.encode(out);
                about.encode(out);
                tag.encode(out);
            }
            Message::Decide { txn, decision, ballots } => {
                put(kind::DECIDE, txn, out);
                decision.encode(out);
                ballots.encode(out);
            }
            Message::MergedVote(ballot) => put(kind::MERGED_VOTE, ballot, out),
            Message::MergedDecision(ended) => put(kind::MERGED_DECISION, ended, out),
            Message::Ended { txn, decision, newest, tag } => {
                put(kind::ENDED, txn, out);
                decision.encode(out);
                newest.encode(out);
                tag.encode(out);
            }
            Message::Acknowledge { repository, txns } => {
                put(kind::ACKNOWLEDGE, repository, out);
                txns.encode(out);
            }
            Message::Ran { txn, answers, violation } => {
                put(kind::RAN, txn, out);
                answers.encode(out);
                violation.encode(out);
            }
            Message::Ask { txn } => put(kind::ASK, txn, out),
            Message::Lock(asked) => put(kind::LOCK, asked, out),
            Message::Locked { request, refused } => {
                put(kind::LOCKED, request, out);
                refused.encode(out);
            }
            Message::Unlock { reader } => put(kind::UNLOCK, reader, out),
            Message::Settled { txn } => put(kind::SETTLED, txn, out),
            Message::Bound { bound, newest } => {
                put(kind::BOUND, bound, out);
                newest.encode(out);
            }
            Message::Watermark { low, newest } => {
                put(kind::WATERMARK, low, out);
                newest.encode(out);
            }
            Message::AskDoubts { asked, clients } => {
                put(kind::ASK_DOUBTS, &asked.0, out);
                clients.encode(out);
            }
            Message::NoDoubts { repository, asked, clients } => {
                put(kind::NO_DOUBTS, repository, out);
                asked.0.encode(out);
                clients.encode(out);
            }
            Message::NewOwners { moved } => put(kind::NEW_OWNERS, moved, out),
            Message::KnownOwners { moved } => put(kind::KNOWN_OWNERS, moved, out),
            Message::AskOwned(question) => put(kind::ASK_OWNED, question, out),
            Message::Owned(page) => put(kind::OWNED, page, out),
            watching => encode_of_watches(watching, out),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Message<V>, WireError> {
        let at = input.position();
        Ok(match u8::decode(input)? {
            kind::READ => Message::Read(Wire::decode(input)?),
            kind::READ_REPLY => Message::ReadReply(Wire::decode(input)?),
            kind::SCAN => Message::Scan(Wire::decode(input)?),
            kind::SCAN_REPLY => Message::ScanReply(Wire::decode(input)?),
            kind::PREPARE => Message::Prepare(Wire::decode(input)?),
            kind::VOTE => Message::Vote {
                txn: Wire::decode(input)?,
                repository: Wire::decode(input)?,
                vote: Wire::decode(input)?,
                committed: Wire::decode(input)?,
                about: Wire::decode(input)?,
                tag: Wire::decode(input)?,
            },
            kind::DECIDE => Message::Decide {
                txn: Wire::decode(input)?,
                decision: Wire::decode(input)?,
                ballots: Wire::decode(input)?,
            },
            kind::MERGED_VOTE if V::POLICIES.deciding.may_have_validators() => {
                Message::MergedVote(Wire::decode(input)?)
            }
            kind::MERGED_DECISION if V::POLICIES.deciding.may_have_validators() => {
                Message::MergedDecision(Wire::decode(input)?)
            }
            kind::ENDED if V::POLICIES.deciding.may_have_validators() => Message::Ended {
                txn: Wire::decode(input)?,
                decision: Wire::decode(input)?,
                newest: Wire::decode(input)?,
                tag: Wire::decode(input)?,
            },
            kind::ACKNOWLEDGE => Message::Acknowledge {
                repository: Wire::decode(input)?,
                txns: Wire::decode(input)?,
            },
            kind::RAN => Message::Ran {
                txn: Wire::decode(input)?,
                answers: Wire::decode(input)?,
                violation: Wire::decode(input)?,
            },
            kind::ASK => Message::Ask { txn: Wire::decode(input)? },
            kind::LOCK => Message::Lock(Wire::decode(input)?),
            kind::LOCKED => {
                Message::Locked { request: Wire::decode(input)?, refused: Wire::decode(input)? }
            }
            kind::UNLOCK => Message::Unlock { reader: Wire::decode(input)? },
            kind::SETTLED => Message::Settled { txn: Wire::decode(input)? },
            kind::BOUND => {
                Message::Bound { bound: Wire::decode(input)?, newest: Wire::decode(input)? }
            }
            kind::WATERMARK => {
                Message::Watermark { low: Wire::decode(input)?, newest: Wire::decode(input)? }
            }
            kind::ASK_DOUBTS => Message::AskDoubts {
                asked: Nanos(Wire::decode(input)?),
                clients: Wire::decode(input)?,
            },
            kind::NO_DOUBTS => Message::NoDoubts {
                repository: Wire::decode(input)?,
                asked: Nanos(Wire::decode(input)?),
                clients: Wire::decode(input)?,
            },
            other => return decode_rare(other, at, input),
        })
    }
}

/// Messages of keys that move, and of waits for a change.
fn decode_rare<V: Variant>(
    kind: u8,
    at: usize,
    input: &mut Reader<'_>,
) -> Result<Message<V>, WireError> {
    Ok(match kind {
        kind::NEW_OWNERS if V::POLICIES.moving.may_move() => {
            Message::NewOwners { moved: Wire::decode(input)? }
        }
        kind::KNOWN_OWNERS if V::POLICIES.moving.may_move() => {
            Message::KnownOwners { moved: Wire::decode(input)? }
        }
        kind::ASK_OWNED if V::POLICIES.moving.may_move() => Message::AskOwned(Wire::decode(input)?),
        kind::OWNED if V::POLICIES.moving.may_move() => Message::Owned(Wire::decode(input)?),
        kind::WATCH => Message::Watch(Wire::decode(input)?),
        kind::UNWATCH => Message::Unwatch { request: Wire::decode(input)? },
        kind::CHANGED => Message::Changed { request: Wire::decode(input)? },
        kind::WAITING => {
            Message::Waiting { txn: Wire::decode(input)?, waiting: Wire::decode(input)? }
        }
        other => return Err(WireError::no_variant("message", at, other)),
    })
}

/// Appends a message about watches.
fn encode_of_watches<V: Variant>(message: &Message<V>, out: &mut Vec<u8>) {
    match message {
        Message::Watch(watch) => put(kind::WATCH, watch, out),
        Message::Unwatch { request } => put(kind::UNWATCH, request, out),
        Message::Changed { request } => put(kind::CHANGED, request, out),
        Message::Waiting { txn, waiting } => {
            put(kind::WAITING, txn, out);
            waiting.encode(out);
        }
        other => unreachable!("{} is about something else", other.name()),
    }
}

/// Whether the spaces that a delayed procedure may touch are there, and its partition.
pub(in crate::two_phase) fn is_call_about(call: &DelayedCall, catalog: &Catalog) -> bool {
    let ordered = |range: &KeyRange| {
        catalog.space(range.space).is_some_and(|it| it.options.index == Index::Ordered)
    };
    usize::from(call.partition) < catalog.partitions()
        && call.keys.iter().all(|(space, _)| catalog.space(*space).is_some())
        && call.ranges.iter().all(ordered)
}

/// Whether the repositories, spaces and partitions that `message` names are there.
pub(in crate::two_phase) fn is_about<V: Variant>(message: &Message<V>, catalog: &Catalog) -> bool {
    let space = |space: &SpaceId| catalog.space(*space).is_some();
    let place = |number: &u16| usize::from(*number) < catalog.repositories();
    let part = |number: &u16| usize::from(*number) < catalog.partitions();
    let ranges = |ranges: &[KeyRange]| ranges.iter().all(|range| space(&range.space));
    let holds = |carried: &Option<Box<VotedFootprint>>| {
        carried.iter().flat_map(|it| it.spaces()).all(|it| space(&it))
    };
    match message {
        Message::Read(read) => read.keys.iter().all(|(id, _)| space(id)),
        Message::Lock(asked) => space(&asked.space),
        Message::Watch(watch) => {
            watch.reads.iter().all(|(id, ..)| space(id)) && ranges(&watch.scans)
        }
        Message::Scan(scan) => space(&scan.range.space) && scan.partitions.iter().all(part),
        Message::Prepare(prepare) => {
            prepare.participants.iter().all(|repository| place(&repository.0))
                && prepare.reads.iter().all(|(id, ..)| space(id))
                && prepare.writes.iter().all(|(id, ..)| space(id))
                && prepare.delayed.iter().all(|(id, ..)| space(id))
                && prepare.calls().iter().all(|call| is_call_about(call, catalog))
                && ranges(&prepare.scans)
                && prepare.leaving.iter().all(|it| place(&it.to.0))
                && prepare.arriving.iter().all(|it| place(&it.from.0))
                && !prepare.participants.is_empty()
        }
        Message::MergedVote(ballot) => {
            ballot.participants.iter().all(|it| place(&it.0)) && holds(&ballot.carried)
        }
        Message::MergedDecision(ended) => {
            ended.participants.iter().all(|it| place(&it.0)) && holds(&ended.carried)
        }
        Message::Vote { repository, .. }
        | Message::Acknowledge { repository, .. }
        | Message::NoDoubts { repository, .. } => place(&repository.0),
        Message::ReadReply(reply) => reply.moved.iter().all(|it| place(&it.to.0)),
        Message::ScanReply(reply) => reply.moved.iter().all(|it| place(&it.to.0)),
        Message::Owned(page) => page.owned.iter().all(|it| space(&it.space) && place(&it.to.0)),
        Message::NewOwners { moved } | Message::KnownOwners { moved } => {
            moved.iter().all(|it| space(&it.space) && place(&it.to.0))
        }
        Message::Decide { .. }
        | Message::AskOwned(_)
        | Message::Unwatch { .. }
        | Message::Changed { .. }
        | Message::Waiting { .. }
        | Message::Ended { .. }
        | Message::Ran { .. }
        | Message::Ask { .. }
        | Message::Locked { .. }
        | Message::Unlock { .. }
        | Message::Settled { .. }
        | Message::Bound { .. }
        | Message::AskDoubts { .. }
        | Message::Watermark { .. } => true,
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
