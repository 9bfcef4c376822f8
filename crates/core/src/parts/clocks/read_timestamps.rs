//! Read timestamps: per key the latest moment at which it was read.
//!
//! Whoever wants to write into the past needs to know who has read there already. A read timestamp
//! is the largest timestamp at which a key's newest version was read; ranges have read timestamps
//! too, for keys that a scan did not find. Nobody writes at or below the watermark, so what lies
//! there is dropped. Read timestamps are kept in memory only: a repository that comes back knows a
//! bound of them.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::bytes::SmallBytes;
use crate::ids::{SpaceId, Timestamp};
use crate::ranges::KeyRange;

/// So many ranges are kept apart; then the older half counts for all keys.
const RANGES_MAX: usize = 256;
/// Read timestamps below the watermark are looked for when there are twice as many as were left the
/// last time, and this many at least.
const SWEEP_AT_LEAST: usize = 1024;

/// The read timestamp of a key: the latest read, by whom, and the latest of anybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTimestamp<R> {
    /// The latest read.
    pub at: Timestamp,
    /// Who made it; `None`: several, or somebody whose name no longer matters.
    pub reader: Option<R>,
    /// The latest read of anybody else.
    pub other: Timestamp,
}

impl<R: Copy + PartialEq> ReadTimestamp<R> {
    fn new(at: Timestamp, reader: Option<R>) -> ReadTimestamp<R> {
        ReadTimestamp { at, reader, other: Timestamp::ZERO }
    }

    fn note(&mut self, at: Timestamp, reader: Option<R>) {
        if reader.is_some() && reader == self.reader {
            self.at = self.at.max(at);
        } else if at > self.at {
            *self = ReadTimestamp { at, reader, other: self.at };
        } else {
            self.other = self.other.max(at);
        }
    }

    /// The latest read of anybody but `reader`.
    pub fn of_others(&self, reader: R) -> Timestamp {
        if self.reader == Some(reader) { self.other } else { self.at }
    }
}

/// The read timestamps of a repository, by readers `R`.
///
/// Invariants: no read timestamp says that others read later than the latest reader, `kept` counts
/// the keys that have one, fewer than at which they are looked through, and there are at most
/// `RANGES_MAX` ranges.
#[derive(Clone, Debug)]
pub struct ReadTimestamps<R> {
    hasher: FixedState,
    spaces: Vec<HashTable<(SmallBytes, ReadTimestamp<R>)>>,
    ranges: Vec<(KeyRange, Timestamp, R)>,
    /// Every key counts as read at this.
    base: Timestamp,
    low: Timestamp,
    kept: usize,
    sweep_at: usize,
}

impl<R: Copy + PartialEq> ReadTimestamps<R> {
    /// No read timestamps. `seed` is that of the hash.
    pub fn new(seed: u64) -> ReadTimestamps<R> {
        let (base, low) = (Timestamp::ZERO, Timestamp::ZERO);
        let (spaces, ranges) = (Vec::new(), Vec::new());
        let hasher = FixedState::with_seed(seed);
        ReadTimestamps { hasher, spaces, ranges, base, low, kept: 0, sweep_at: SWEEP_AT_LEAST }
    }

    /// A key was read at `at`.
    pub fn note(&mut self, space: SpaceId, key: &SmallBytes, at: Timestamp, reader: Option<R>) {
        let number = usize::from(space.0);
        if self.spaces.len() <= number {
            self.spaces.resize_with(number + 1, HashTable::new);
        }
        let (keys, hasher) = (&mut self.spaces[number], &self.hasher);
        let hash = hasher.hash_one(key);
        if let Some((_, timestamp)) = keys.find_mut(hash, |(known, _)| known == key) {
            timestamp.note(at, reader);
            return;
        }
        let stamped = (key.clone(), ReadTimestamp::new(at, reader));
        keys.insert_unique(hash, stamped, |(known, _)| hasher.hash_one(known));
        self.kept += 1;
        if self.kept >= self.sweep_at {
            self.sweep();
        }
    }

    /// The read timestamp of a key, made if there is none, to be changed by another rule.
    pub fn read_timestamp_mut(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
    ) -> Option<&mut ReadTimestamp<R>> {
        let keys = self.spaces.get_mut(usize::from(space.0))?;
        let found = keys.find_mut(self.hasher.hash_one(key), |(known, _)| known == key);
        found.map(|(_, timestamp)| timestamp)
    }

    /// The read timestamp of a key alone, without ranges and what counts for all keys.
    pub fn read_timestamp(&self, space: SpaceId, key: &SmallBytes) -> Option<&ReadTimestamp<R>> {
        let keys = self.spaces.get(usize::from(space.0))?;
        let found = keys.find(self.hasher.hash_one(key), |(known, _)| known == key);
        found.map(|(_, timestamp)| timestamp)
    }

    /// A page of a range was read at `at`; pages of one reader that follow each other count as one
    /// range, so that long scans do not use up the room for others.
    pub fn note_page(&mut self, range: &KeyRange, at: Timestamp, reader: R) {
        let known =
            |known: &&mut (KeyRange, Timestamp, R)| known.2 == reader && known.0.touches(range);
        if let Some(known) = self.ranges.iter_mut().find(known) {
            known.0.join(range);
            known.1 = known.1.max(at);
            return;
        }
        self.note_range(range, at, reader);
    }

    /// A range was read at `at`.
    pub fn note_range(&mut self, range: &KeyRange, at: Timestamp, reader: R) {
        let known = |known: &&mut (KeyRange, Timestamp, R)| known.0 == *range && known.2 == reader;
        if let Some(known) = self.ranges.iter_mut().find(known) {
            known.1 = known.1.max(at);
            return;
        }
        self.ranges.push((range.clone(), at, reader));
        if self.ranges.len() > RANGES_MAX {
            for (_, at, _) in self.ranges.drain(..RANGES_MAX / 2) {
                self.base = self.base.max(at);
            }
        }
    }

    /// The latest read of a key by anybody but `reader`, ranges and what counts for all included.
    pub fn latest_of_others(&self, space: SpaceId, key: &SmallBytes, reader: R) -> Timestamp {
        let own = self.read_timestamp(space, key).map(|timestamp| timestamp.of_others(reader));
        own.unwrap_or_default().max(self.latest_of_ranges(space, key, reader))
    }

    /// The same of ranges, and of what counts for all keys.
    pub fn latest_of_ranges(&self, space: SpaceId, key: &SmallBytes, reader: R) -> Timestamp {
        let others = self.ranges.iter().filter(|(_, _, other)| *other != reader);
        let with_key = others.filter(|(range, ..)| range.contains(space, key));
        with_key.map(|(_, at, _)| *at).max().unwrap_or_default().max(self.base)
    }

    /// A key was written: who read the version before is told by the new one's timestamp.
    pub fn forget(&mut self, space: SpaceId, key: &SmallBytes) {
        let Some(keys) = self.spaces.get_mut(usize::from(space.0)) else { return };
        let hash = self.hasher.hash_one(key);
        if let Ok(found) = keys.find_entry(hash, |(known, _)| known == key) {
            found.remove();
            self.kept -= 1;
        }
    }

    /// Every key counts as read at `at`.
    pub fn raise_all(&mut self, at: Timestamp) {
        self.base = self.base.max(at);
    }

    /// Nobody writes at or below `low` any more.
    pub fn raise_low(&mut self, low: Timestamp) {
        self.low = self.low.max(low);
        self.ranges.retain(|(_, at, _)| *at > low);
    }

    fn sweep(&mut self) {
        let low = self.low;
        for keys in &mut self.spaces {
            keys.retain(|(_, timestamp)| timestamp.at > low);
        }
        self.kept = self.spaces.iter().map(HashTable::len).sum();
        self.sweep_at = (2 * self.kept).max(SWEEP_AT_LEAST);
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let kept: usize = self.spaces.iter().map(HashTable::len).sum();
        assert_eq!(self.kept, kept, "how many keys have a timestamp");
        assert!(
            kept < self.sweep_at.max(SWEEP_AT_LEAST),
            "timestamps were not looked through in time"
        );
        for (key, timestamp) in self.spaces.iter().flatten() {
            assert!(
                timestamp.other <= timestamp.at,
                "{key:?} is stamped {} below others",
                timestamp.at
            );
        }
        assert!(self.ranges.len() <= RANGES_MAX, "{} ranges", self.ranges.len());
    }

    /// How many keys have a read timestamp.
    pub fn len(&self) -> usize {
        self.kept
    }

    /// Whether no key has a read timestamp.
    pub fn is_empty(&self) -> bool {
        self.kept == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPACE: SpaceId = SpaceId(0);

    fn key(number: u8) -> SmallBytes {
        SmallBytes::new(&[number])
    }

    #[test]
    fn a_range_dates_the_keys_in_it() {
        let mut timestamps: ReadTimestamps<u8> = ReadTimestamps::new(7);
        let range = KeyRange { space: SPACE, lo: key(2), hi: Some(key(5)) };
        timestamps.note_range(&range, Timestamp(7), 1);
        let latest = |timestamps: &ReadTimestamps<u8>, number, me| {
            timestamps.latest_of_others(SPACE, &key(number), me)
        };
        assert_eq!(latest(&timestamps, 2, 9), Timestamp(7));
        assert_eq!(latest(&timestamps, 5, 9), Timestamp::ZERO);
        assert_eq!(latest(&timestamps, 2, 1), Timestamp::ZERO, "one's own scan does not count");
        timestamps.raise_low(Timestamp(7));
        assert_eq!(latest(&timestamps, 2, 9), Timestamp::ZERO);
    }

    #[test]
    fn too_many_ranges_count_for_all_keys() {
        let mut timestamps: ReadTimestamps<u8> = ReadTimestamps::new(7);
        for number in 0..=RANGES_MAX as u64 {
            let lo = SmallBytes::from(number.to_string().as_str());
            let range = KeyRange { space: SPACE, hi: Some(lo.successor()), lo };
            timestamps.note_range(&range, Timestamp(number + 1), 1);
        }
        assert_eq!(
            timestamps.latest_of_others(SPACE, &key(0), 9),
            Timestamp(RANGES_MAX as u64 / 2)
        );
    }

    proptest! {
        /// Against a model: all reads, in a list.
        #[test]
        fn the_latest_of_others_is_never_lost(
            script in prop::collection::vec((0u8..4, 0u8..4, 1u64..50, any::<bool>()), 0..120),
            low in 0u64..20,
        ) {
            let mut timestamps: ReadTimestamps<u8> = ReadTimestamps::new(7);
            let mut model: Vec<(u8, u8, u64)> = Vec::new();
            for (number, reader, at, forget) in script {
                if forget && at < 5 {
                    timestamps.forget(SPACE, &key(number));
                    model.retain(|(known, ..)| *known != number);
                } else {
                    timestamps.note(SPACE, &key(number), Timestamp(at), Some(reader));
                    model.push((number, reader, at));
                }
            }
            timestamps.raise_low(Timestamp(low));
            timestamps.sweep();
            for number in 0..4 {
                for me in 0..4 {
                    let others = model.iter().filter(|(k, r, _)| *k == number && *r != me);
                    let latest = others.map(|(.., at)| *at).max().unwrap_or(0);
                    let got = timestamps.latest_of_others(SPACE, &key(number), me);
                    prop_assert!(got == Timestamp(latest) || latest <= low && got.0 <= low);
                }
            }
        }
    }
}
