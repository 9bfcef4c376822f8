//! How long messages and records are, for models of networks and disks; and their names.

use muesli_core::{Action, DelayedCall, SmallBytes, SpaceId};

use super::moves::MovedKey;
use super::{Answers, Found, Message, Prepare, Record};
use crate::sizes::{HEADER_BYTES, KEY_BYTES, range_bytes, value_bytes};
use crate::two_phase::Variant;

/// What a vote takes that is shown, where it is a number.
const BALLOT_BYTES: usize = 24;

impl<V: Variant> Prepare<V> {
    fn bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|(_, key, _)| KEY_BYTES + key.len()).sum();
        let scans: usize = self.scans.iter().map(range_bytes).sum();
        let action = |(_, key, action): &(SpaceId, SmallBytes, Action)| {
            KEY_BYTES + key.len() + action.name.len() + action.argument.len()
        };
        let delayed: usize = self.delayed.iter().map(action).sum();
        let calls: usize = self.calls().iter().map(DelayedCall::bytes).sum();
        let moves = 6 * (self.leaving.len() + self.arriving.len());
        let newer = delayed + calls + 8 * self.asked().len() + moves;
        24 + 2 * self.participants.len() + reads + scans + newer + writes_bytes(&self.writes)
    }
}

fn writes_bytes(writes: &[(SpaceId, SmallBytes, Option<SmallBytes>)]) -> usize {
    writes.iter().map(|(_, key, value)| KEY_BYTES + key.len() + value_bytes(value.as_ref())).sum()
}

/// The size of what is told, in bytes.
pub(in crate::two_phase) fn answers_bytes(answers: &Answers) -> usize {
    answers.iter().map(|(_, gave)| 4 + gave.bytes()).sum()
}

impl<V: Variant> Message<V> {
    /// Its size on a wire, in bytes: headers of fixed size, keys and values as they are.
    pub fn wire_bytes(&self) -> usize {
        let found = |found: &Found| 9 + value_bytes(found.value.as_ref());
        let body = match self {
            Message::Read(read) => read.keys.iter().map(|(_, key)| KEY_BYTES + key.len()).sum(),
            Message::ReadReply(reply) => {
                14 * reply.moved.len() + reply.found.iter().map(found).sum::<usize>()
            }
            Message::Scan(scan) => range_bytes(&scan.range) + 2 * scan.partitions.len(),
            Message::ScanReply(reply) => {
                let row = |(key, row): &(SmallBytes, Found)| KEY_BYTES + key.len() + found(row);
                let seen_to = reply.seen_to.as_ref().map_or(0, SmallBytes::len);
                let moved: usize = reply.moved.iter().map(|it| 14 + it.key.len()).sum();
                seen_to + moved + reply.rows.iter().map(row).sum::<usize>()
            }
            Message::Prepare(prepare) => prepare.bytes(),
            Message::Acknowledge { txns, .. } => 16 * txns.len(),
            Message::AskDoubts { clients, .. } | Message::NoDoubts { clients, .. } => {
                10 + 8 * clients.len()
            }
            Message::NewOwners { moved } | Message::KnownOwners { moved } => {
                moved.iter().map(MovedKey::bytes).sum()
            }
            Message::Owned(page) => 34 + page.owned.iter().map(MovedKey::bytes).sum::<usize>(),
            Message::AskOwned(_) => 21,
            Message::Waiting { waiting, .. } => 8 + 12 * waiting.len(),
            Message::Watch(watch) => {
                let read = |(_, key, _): &(SpaceId, SmallBytes, _)| KEY_BYTES + key.len();
                watch.reads.iter().map(read).sum::<usize>()
                    + watch.scans.iter().map(range_bytes).sum::<usize>()
            }
            Message::Ran { answers, violation, .. } => {
                8 + answers_bytes(answers) + violation.as_ref().map_or(0, SmallBytes::len)
            }
            Message::Lock(asked) => KEY_BYTES + asked.key.len(),
            Message::Decide { ballots, .. } => 8 + BALLOT_BYTES * ballots.len(),
            Message::MergedVote(ballot) => {
                let carried = ballot.carried.as_ref().map_or(0, |it| it.bytes());
                18 + 2 * (ballot.participants.len() + ballot.voters.len()) + carried
            }
            Message::MergedDecision(ended) => {
                let carried = ended.carried.as_ref().map_or(0, |it| it.bytes());
                8 + 2 * ended.participants.len() + carried
            }
            Message::Vote { .. }
            | Message::Ended { .. }
            | Message::Ask { .. }
            | Message::Locked { .. }
            | Message::Unlock { .. }
            | Message::Unwatch { .. }
            | Message::Changed { .. }
            | Message::Settled { .. }
            | Message::Bound { .. }
            | Message::Watermark { .. } => 8,
        };
        HEADER_BYTES + body
    }

    /// Its kind, for traces.
    pub fn name(&self) -> &'static str {
        match self {
            Message::Read(_) => "Read",
            Message::ReadReply(_) => "ReadReply",
            Message::Scan(_) => "Scan",
            Message::ScanReply(_) => "ScanReply",
            Message::Prepare(_) => "Prepare",
            Message::Vote { .. } => "Vote",
            Message::Decide { .. } => "Decide",
            Message::MergedVote(_) => "MergedVote",
            Message::MergedDecision(_) => "MergedDecision",
            Message::Ended { .. } => "Ended",
            Message::Acknowledge { .. } => "Acknowledge",
            Message::Ran { .. } => "Ran",
            Message::Ask { .. } => "Ask",
            Message::Lock(_) => "Lock",
            Message::Locked { .. } => "Locked",
            Message::Unlock { .. } => "Unlock",
            Message::Settled { .. } => "Settled",
            Message::Bound { .. } => "Bound",
            Message::Watermark { .. } => "Watermark",
            Message::AskDoubts { .. } => "AskDoubts",
            Message::NoDoubts { .. } => "NoDoubts",
            Message::Watch(_) => "Watch",
            Message::Unwatch { .. } => "Unwatch",
            Message::Changed { .. } => "Changed",
            Message::Waiting { .. } => "Waiting",
            Message::NewOwners { .. } => "NewOwners",
            Message::KnownOwners { .. } => "KnownOwners",
            Message::AskOwned(_) => "AskOwned",
            Message::Owned(_) => "Owned",
        }
    }
}

impl<V: Variant> Record<V> {
    /// Its size on disk, in bytes.
    pub fn bytes(&self) -> usize {
        let body = match self {
            Record::Prepared { prepare, .. } => prepare.bytes(),
            Record::Committed { writes, .. } => writes_bytes(writes),
            Record::Ran { writes, answers, .. } => writes_bytes(writes) + answers_bytes(answers),
            Record::NewOwners { moved } | Record::KnownOwners { moved } => {
                moved.iter().map(MovedKey::bytes).sum()
            }
            Record::Refused { .. }
            | Record::Decided { .. }
            | Record::UpperBound { .. }
            | Record::Rebuild { .. }
            | Record::Low { .. } => 8,
        };
        HEADER_BYTES + body
    }
}
