//! Who waits for a change of what was read, where commits are certified.

use muesli_core::Nanos;
use muesli_core::limits::Limits;
use muesli_core::parts::watches::{ReadWatch, Watcher, Watches};

use super::CertifiedData;
use crate::certified::message::command::{ReadKey, ReadRange, rows_of};

/// What somebody waits for a change of, as it was seen.
#[derive(Clone, Debug)]
pub struct AskedWatch {
    /// Who is to be told.
    pub watcher: Watcher,
    /// Keys.
    pub reads: Vec<ReadKey>,
    /// Ranges.
    pub ranges: Vec<ReadRange>,
}

/// Which rules of watches hold: all, unless a test breaks one.
#[derive(Clone, Copy, Debug)]
pub struct WatchSwitches {
    /// What was read is compared with what is there before a change is waited for.
    pub compares: bool,
    /// An absence that was read is noticed to be another one, though the key be absent again.
    pub counts_deletions: bool,
}

impl AskedWatch {
    /// Keeps it, in place of an earlier copy of it. False: whoever waits is to be told at once, as
    /// there was a change, or there is no room, or it would be too much to look for a change.
    pub fn keep(
        self,
        watches: &mut Watches,
        data: CertifiedData<'_>,
        switches: WatchSwitches,
        (now, limits): (Nanos, &Limits),
    ) -> bool {
        let AskedWatch { watcher, reads, ranges } = self;
        let counts = switches.counts_deletions;
        let is_much = rows_of(&ranges) > limits.procedure_steps;
        let is_changed = || {
            !reads.iter().all(|read| data.is_newest(read, counts))
                || !ranges.iter().all(|range| data.is_unchanged(range, counts))
        };
        if is_much || (switches.compares && is_changed()) {
            watches.remove(&watcher);
            return false;
        }
        let keys = reads.into_iter().map(|read| (read.space, read.key)).collect();
        let ranges = ranges.into_iter().map(|range| range.seen).collect();
        watches.keep(watcher, ReadWatch::new(now, keys, ranges), limits.transaction_bytes)
    }
}
