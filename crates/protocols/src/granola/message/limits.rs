//! How large a transaction is, and whether that is within the limits: its coordinator refuses
//! before anything is sent, and a participant judges a request once more, since a client may run
//! with other limits.

use muesli_core::exceeded::Limit;
use muesli_core::limits::{ENTRY_BYTES, check_size, range_bytes, read_bytes, writes_bytes};
use muesli_core::links::patience_for;
use muesli_core::{Abort, Failure, Limits, Nanos, SmallBytes, SpaceId, Timestamp};

use super::{Install, Part, Request, SeenRange, Task, WatchedReads, Write};

/// # Errors
/// A transaction of these parts is too large to be sent.
pub(in crate::granola) fn check_parts_size(parts: &[Part], limits: &Limits) -> Result<(), Failure> {
    for part in parts {
        if let Task::Call { arguments, .. } = &part.task {
            check_size(Limit::Argument, arguments.len(), limits.value_bytes)?;
        }
    }
    check_size(Limit::Transaction, counted_bytes(parts), limits.transaction_bytes)
}

/// What parts count towards the limit of a transaction.
fn counted_bytes(parts: &[Part]) -> usize {
    let each = |task: &Task| match task {
        Task::Call { procedure, arguments, .. } => {
            2 * ENTRY_BYTES + procedure.name.len() + arguments.len()
        }
        Task::Read(keys) => keys.iter().map(|(_, key)| read_bytes(key)).sum(),
        Task::Scan { range, .. } => range_bytes(range),
        Task::Install(install) => install.counted_bytes(),
        Task::Take { .. } | Task::Move(_) | Task::Names => 0,
    };
    parts.iter().map(|part| each(&part.task)).sum()
}

impl Request {
    /// How much longer than others it may take to be answered, for its size.
    pub(in crate::granola) fn patience(&self) -> Nanos {
        patience_for(self.counted_bytes())
    }

    /// What it counts towards the limit of a transaction.
    pub(in crate::granola) fn counted_bytes(&self) -> usize {
        counted_bytes(&self.parts)
    }

    /// How many bytes it takes while it is under way, about: not only its keys and values, but also
    /// what stands for each of them.
    pub(in crate::granola) fn held_bytes(&self) -> usize {
        let parts = self.parts.len() * size_of::<Part>();
        let entries: usize = self.parts.iter().map(|part| part.task.entries_bytes()).sum();
        size_of::<Request>() + self.counted_bytes() + parts + entries
    }

    /// Whether it may leave more than there was.
    pub(in crate::granola) fn may_add(&self) -> bool {
        self.parts.iter().any(|part| part.task.may_add(self))
    }

    /// Why it is refused for its size, if it is.
    pub(in crate::granola) fn judge_size(&self, limits: &Limits) -> Option<Abort> {
        let mut tasks = self.parts.iter().map(|part| &part.task);
        let judged = tasks.find_map(|task| task.judge_entries(limits));
        judged.or_else(|| limits.judge_transaction(counted_bytes(&self.parts)))
    }
}

impl Task {
    /// Whether it may leave more than there was: it does more than read and delete. What a
    /// procedure does, nobody knows beforehand.
    fn may_add(&self, request: &Request) -> bool {
        match self {
            Task::Call { .. } => !request.read_only,
            Task::Install(install) => install.writes.iter().any(|(_, _, value)| value.is_some()),
            Task::Take { .. } => true,
            Task::Read(_) | Task::Scan { .. } | Task::Move(_) | Task::Names => false,
        }
    }

    /// What stands for its keys and values beside their bytes.
    fn entries_bytes(&self) -> usize {
        match self {
            Task::Read(keys) => keys.len() * size_of::<(SpaceId, SmallBytes)>(),
            Task::Install(install) => {
                install.reads.len() * size_of::<(SpaceId, SmallBytes, Timestamp)>()
                    + install.scans.len() * size_of::<SeenRange>()
                    + install.writes.len() * size_of::<Write>()
            }
            Task::Call { .. } | Task::Scan { .. } => 0,
            Task::Take { .. } | Task::Move(_) | Task::Names => 0,
        }
    }

    /// Why a key or a value of it is refused for its size, if one is.
    fn judge_entries(&self, limits: &Limits) -> Option<Abort> {
        match self {
            Task::Call { arguments, .. } => {
                (arguments.len() > limits.value_bytes).then_some(Abort::ValueTooLarge)
            }
            Task::Read(keys) => keys.iter().find_map(|(_, key)| limits.judge_key(key)),
            Task::Install(install) => {
                let mut reads = install.reads.iter();
                let mut writes = install.writes.iter();
                let read = reads.find_map(|(_, key, _)| limits.judge_key(key));
                read.or_else(|| {
                    writes.find_map(|(_, key, value)| limits.judge_write(key, value.as_ref()))
                })
            }
            Task::Scan { .. } | Task::Take { .. } | Task::Move(_) | Task::Names => None,
        }
    }
}

impl Install {
    fn counted_bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|(_, key, _)| read_bytes(key)).sum();
        // When a range was seen, and how many keys it held.
        let scans = self.scans.iter().map(|seen| ENTRY_BYTES + range_bytes(&seen.range));
        reads + scans.sum::<usize>() + writes_bytes(&self.writes)
    }
}

impl WatchedReads {
    /// What it counts towards the limit of a transaction.
    pub(in crate::granola) fn counted_bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|(_, key, _)| read_bytes(key)).sum();
        let scans = self.scans.iter().map(|(_, seen)| ENTRY_BYTES + range_bytes(&seen.range));
        reads + scans.sum::<usize>()
    }
}
