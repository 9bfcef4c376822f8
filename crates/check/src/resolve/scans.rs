//! The absent half of a scan: every key in its range that it did not list.
//!
//! Such a key was read at the initial version, so the scanner comes before the key's first
//! writer. Spelling that out costs keys × scans. Instead the written keys are sorted once, and a
//! scan becomes the few maximal gaps between the keys it must not count: rows, its own writes.

use crate::history::{History, KeyId, Scan, TxnIndex};

use super::{Chains, RangeRead};

/// The written keys in key order, and the way back.
#[derive(Debug, Default)]
pub(super) struct RangeKeys {
    pub(super) sorted: Vec<KeyId>,
    /// The place of each key in `sorted`; `u32::MAX` for keys that were never written.
    ranks: Vec<u32>,
}

impl RangeKeys {
    pub(super) fn new(history: &History, chains: &Chains) -> Self {
        let mut sorted: Vec<KeyId> =
            chains.keys().filter(|key| !chains.of(*key).is_empty()).collect();
        sorted.sort_unstable_by(|a, b| history.keys.bytes(a.0).cmp(history.keys.bytes(b.0)));
        let mut ranks = vec![u32::MAX; history.keys.len()];
        for (rank, key) in sorted.iter().enumerate() {
            ranks[key.index()] = rank as u32;
        }
        RangeKeys { sorted, ranks }
    }

    /// The gaps of `scan`, given all keys that do not count as read at the initial version.
    pub(super) fn gaps(
        &self,
        history: &History,
        reader: TxnIndex,
        scan: &Scan,
        excluded: impl Iterator<Item = KeyId>,
        out: &mut Vec<RangeRead>,
    ) {
        let rank_of = |bytes: &[u8]| {
            self.sorted.partition_point(|key| history.keys.bytes(key.0) < bytes) as u32
        };
        let mut low = rank_of(&scan.low);
        let end = scan.high.as_deref().map_or(self.sorted.len() as u32, rank_of);
        let mut holes: Vec<u32> = excluded
            .map(|key| self.ranks[key.index()])
            .filter(|rank| (low..end).contains(rank))
            .collect();
        holes.sort_unstable();
        for hole in holes {
            if low < hole {
                out.push(RangeRead { reader, low, high: hole });
            }
            low = low.max(hole + 1);
        }
        if low < end {
            out.push(RangeRead { reader, low, high: end });
        }
    }
}

/// Whether `key` lies in the range of `scan`.
pub(super) fn covers(scan: &Scan, key: &[u8]) -> bool {
    key >= &*scan.low && scan.high.as_ref().is_none_or(|high| key < &**high)
}
