//! The limit of a transaction: its coordinator refuses before anything is sent, and a participant
//! judges what it is asked to prepare once more, since a client may run with other limits.

use muesli_core::limits::{ENTRY_BYTES, range_bytes, read_bytes, writes_bytes};
use muesli_core::parts::versions::Handle;
use muesli_core::ranges::KeyRange;
use muesli_core::{Abort, Action, DelayedCall, Limits, SmallBytes, SpaceId, Timestamp};

use super::{DelayedWrite, LockedCall, LockedWrite, Prepared};
use crate::two_phase::Variant;
use crate::two_phase::message::Prepare;

/// What a delayed action counts towards the limit of its transaction.
pub(in crate::two_phase) fn action_bytes(key: &SmallBytes, action: &Action) -> usize {
    2 * ENTRY_BYTES + key.len() + action.name.len() + action.argument.len()
}

impl<V: Variant> Prepare<V> {
    /// Why it is refused for its size, if it is.
    pub(in crate::two_phase) fn judge_size(&self, limits: &Limits) -> Option<Abort> {
        let mut keys = self.reads.iter().map(|(_, key, _)| key);
        let mut writes = self.writes.iter();
        let action = |(_, key, action): &(SpaceId, SmallBytes, Action)| {
            let argument = limits.judge_write(key, Some(&action.argument));
            argument.or_else(|| limits.judge_key(&action.name))
        };
        keys.find_map(|key| limits.judge_key(key))
            .or_else(|| writes.find_map(|(_, key, to)| limits.judge_write(key, to.as_ref())))
            .or_else(|| self.delayed.iter().find_map(action))
            .or_else(|| limits.judge_transaction(self.counted_bytes()))
    }

    /// Whether it may leave more than there was: it does more than read and delete.
    pub(in crate::two_phase) fn adds(&self) -> bool {
        self.delays() || self.writes.iter().any(|(_, _, value)| value.is_some())
    }

    /// How many bytes it takes while it is prepared, with its locks, about: not only its keys and
    /// values, but also what stands for each of them.
    pub(in crate::two_phase) fn held_bytes(&self) -> usize {
        let reads = self.reads.len() * size_of::<(SpaceId, SmallBytes, Timestamp)>();
        let shared = self.reads.len() * size_of::<(SpaceId, Handle)>();
        let writes = self.writes.len() * size_of::<(SpaceId, SmallBytes, Option<SmallBytes>)>();
        let locked = self.writes.len() * size_of::<LockedWrite>();
        let ranges = 2 * self.scans.len() * size_of::<KeyRange>();
        let delayed = self.delayed.len() * size_of::<(SpaceId, SmallBytes, Action)>();
        let delayed = delayed + self.delayed.len() * size_of::<DelayedWrite>();
        let calls = self.calls().len() * (size_of::<DelayedCall>() + size_of::<LockedCall>());
        let all = reads + shared + writes + locked + ranges + delayed + calls;
        size_of::<Prepared<V>>() + self.counted_bytes() + all
    }

    /// What it counts towards the limit of its transaction.
    pub(in crate::two_phase) fn counted_bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|(_, key, _)| read_bytes(key)).sum();
        let scans: usize = self.scans.iter().map(range_bytes).sum();
        let delayed = self.delayed.iter().map(|(_, key, action)| action_bytes(key, action));
        let calls: usize = self.calls().iter().map(|call| ENTRY_BYTES + call.bytes()).sum();
        reads + writes_bytes(&self.writes) + scans + delayed.sum::<usize>() + calls
    }
}
