//! The limit of a transaction: its coordinator refuses before anything is sent, and a participant
//! judges a request once more, since a client may run with other limits.

use muesli_core::limits::{ENTRY_BYTES, Limit, check_size, range_bytes, read_bytes, writes_bytes};
use muesli_core::links::patience_for;
use muesli_core::{Abort, Failure, Limits, Nanos};

use super::message::{Install, Part, Request, Task};

/// # Errors
/// A transaction of these parts is too large to be sent.
pub(super) fn check_parts_size(parts: &[Part], limits: &Limits) -> Result<(), Failure> {
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
    pub(super) fn patience(&self) -> Nanos {
        patience_for(counted_bytes(&self.parts))
    }

    /// Why it is refused for its size, if it is.
    pub(super) fn judge_size(&self, limits: &Limits) -> Option<Abort> {
        let mut tasks = self.parts.iter().map(|part| &part.task);
        let judged = tasks.find_map(|task| task.judge_entries(limits));
        judged.or_else(|| limits.judge_transaction(counted_bytes(&self.parts)))
    }
}

impl Task {
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
