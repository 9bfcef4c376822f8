//! How long messages and records are, for models of networks and disks.

use muesli_core::parts::spaces::Newest;
use muesli_core::{SmallBytes, Timestamp};

use crate::sizes::{HEADER_BYTES, KEY_BYTES, range_bytes, value_bytes};

use super::{
    FoundVersion, Install, Load, Message, News, Part, PartAnswer, PartData, Record, ReplyOutcome,
    Request, Task, WatchedReads, Write,
};

pub(in super::super) fn writes_bytes(writes: &[Write]) -> usize {
    writes.iter().map(|(_, key, value)| KEY_BYTES + key.len() + value_bytes(value.as_ref())).sum()
}

pub(in super::super) fn data_bytes(shared: &[PartData]) -> usize {
    let keys = shared.iter().flat_map(|(_, keys)| keys);
    keys.map(|(_, key, found)| KEY_BYTES + key.len() + 8 + value_bytes(found.value.as_ref())).sum()
}

impl Task {
    fn bytes(&self) -> usize {
        match self {
            Task::Call { procedure, arguments, .. } => 11 + procedure.name.len() + arguments.len(),
            Task::Read(keys) => keys.iter().map(|(_, key)| KEY_BYTES + key.len()).sum(),
            Task::Scan { range, .. } => 9 + range_bytes(range),
            Task::Install(install) => {
                let Install { reads, scans, writes } = &**install;
                let reads: usize = reads.iter().map(|(_, key, _)| KEY_BYTES + key.len()).sum();
                let scans: usize = scans.iter().map(|seen| 16 + range_bytes(&seen.range)).sum();
                reads + scans + writes_bytes(writes)
            }
            Task::Take { .. } => 2,
            Task::Move(_) => 38,
            Task::Names => 0,
        }
    }
}

impl Request {
    fn bytes(&self) -> usize {
        let owners = |part: &Part| part.owners.as_ref().map_or(0, |it| 12 + 2 * it.holders.len());
        let parts = self.parts.iter().map(|part| 3 + owners(part) + part.task.bytes());
        let parts: usize = parts.sum();
        25 + 4 * usize::from(self.master.is_some()) + 2 * self.participants.len() + parts
    }
}

impl WatchedReads {
    fn bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|(_, key, _)| KEY_BYTES + 8 + key.len()).sum();
        let scans: usize = self.scans.iter().map(|(_, seen)| 18 + range_bytes(&seen.range)).sum();
        reads + scans
    }
}

/// How long what parts gave is.
pub(in super::super) fn answers_bytes(answers: &[(u16, PartAnswer)]) -> usize {
    let found = |found: &FoundVersion| 8 + value_bytes(found.value.as_ref());
    let answer = |(_, answer): &(u16, PartAnswer)| match answer {
        PartAnswer::Given(result) => 6 + result.len(),
        PartAnswer::Found(all) => 6 + all.iter().map(found).sum::<usize>(),
        PartAnswer::Rows(rows, seen_to) => {
            let row = |(key, row): &(SmallBytes, FoundVersion)| KEY_BYTES + key.len() + found(row);
            let stopped = seen_to.as_ref().map_or(0, SmallBytes::len);
            6 + stopped + rows.iter().map(row).sum::<usize>()
        }
        PartAnswer::Installed => 3,
        PartAnswer::Absent(all) => {
            6 + all.iter().map(|(_, key, _)| KEY_BYTES + key.len() + 8).sum::<usize>()
        }
        PartAnswer::Taken { .. } => 32,
        PartAnswer::Names(all) => {
            6 + all.iter().map(|(_, it)| 14 + 2 * it.holders.len()).sum::<usize>()
        }
    };
    answers.iter().map(answer).sum()
}

impl ReplyOutcome {
    pub(in super::super) fn bytes(&self) -> usize {
        match self {
            ReplyOutcome::Done { answers, .. } => 8 + answers_bytes(answers),
            ReplyOutcome::Conflict => 1,
            ReplyOutcome::Moved { .. } => 9,
            ReplyOutcome::Refused { .. } => 24,
        }
    }
}

impl News {
    fn bytes(&self) -> usize {
        match self {
            News::Piece { bytes, .. } => 16 + bytes.len(),
            News::Changes { changes, held, .. } => 20 + changes_bytes(changes) + 19 * held.len(),
            News::Unknown => 12,
        }
    }
}

fn changes_bytes(changes: &[(Timestamp, Vec<Write>)]) -> usize {
    changes.iter().map(|(_, writes)| 12 + writes_bytes(writes)).sum()
}

pub(in super::super) fn keys_bytes(keys: &[Newest]) -> usize {
    let bytes =
        |(_, key, _, value): &Newest| KEY_BYTES + 8 + key.len() + value_bytes(value.as_ref());
    keys.iter().map(bytes).sum()
}

fn load_bytes(load: &Load) -> usize {
    match load {
        Load::Piece { keys, .. } => 22 + keys_bytes(keys),
        Load::Changes { changes, .. } => 30 + changes_bytes(changes),
        Load::Unknown => 19,
    }
}

impl Message {
    /// Its size on a wire, in bytes: headers of fixed size, keys and values as they are.
    pub fn wire_bytes(&self) -> usize {
        let body = match self {
            Message::Request(request) => request.bytes(),
            Message::Ask { request, .. } => request.bytes() + 12,
            Message::Vote { about, tag, order, .. } => {
                let shown = if *about == 0 && *tag == 0 { 0 } else { 16 };
                12 + shown + 16 * usize::from(order.is_some())
            }
            Message::Decide { shown, .. } => 12 + 28 * shown.len(),
            Message::Tell { shared, .. } => data_bytes(shared),
            Message::WhichPosition { .. } => 2,
            Message::AskDoubts { clients, .. } | Message::NoDoubts { clients, .. } => {
                10 + 8 * clients.len()
            }
            Message::Position { voted, .. } => 26 + 16 * voted.len(),
            Message::Reply { end, .. } => end.bytes(),
            Message::Acknowledge { txns, .. } => 16 * txns.len(),
            Message::Follow { .. } => 20,
            Message::News { news, .. } => news.bytes(),
            Message::Fetch { .. } => 32,
            Message::Load { load, .. } => load_bytes(load),
            Message::Watch { reads, .. } => 8 + reads.bytes(),
            Message::Unwatch { .. } => 8,
            Message::Changed { .. } => 10,
        };
        HEADER_BYTES + body
    }
}

impl Record {
    /// Its size on disk, in bytes.
    pub fn bytes(&self) -> usize {
        let body = match self {
            Record::Voted { request, .. } => 8 + request.bytes(),
            Record::Done { writes, end, .. } => 8 + writes_bytes(writes) + end.bytes(),
            Record::SharedData { shared, .. } => data_bytes(shared),
            Record::Dropped { end, .. } => end.bytes(),
            Record::Staged { keys, .. } => 7 + keys_bytes(keys),
            Record::Against { .. } => 24,
            Record::UpperBound { .. } | Record::Reached { .. } => 8,
        };
        HEADER_BYTES + body
    }
}
