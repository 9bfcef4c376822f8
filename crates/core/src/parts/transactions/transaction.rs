//! The transaction context: what a running transaction has read, scanned and is going to write.
//!
//! Sets are plain vectors, searched from the end while they are small and through an index once
//! they are not; the vectors are reused from one transaction to the next.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::levels::Levels;
use crate::bytes::SmallBytes;
use crate::catalog::{Catalog, Index};
use crate::exceeded::Limit;
use crate::ids::{RepositoryId, SpaceId, Timestamp, TxnId};
use crate::limits::{ENTRY_BYTES, Limits, check_size, range_bytes, read_bytes, write_bytes};
use crate::options::TxnOptions;
use crate::outcome::Failure;
use crate::parts::versions::Handle;
use crate::ranges::{KeyRange, Row, Scan};
use crate::recorder::{RecordedOperations, Recorder, Status, TxnRecord};
use crate::time::Nanos;

/// A key that was read, and what a validation needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadEntry {
    /// The space.
    pub space: SpaceId,
    /// The repository that answered.
    pub repository: RepositoryId,
    /// Its entry there, good only where the repository lives on the coordinator's node.
    pub handle: Handle,
    /// The key.
    pub key: SmallBytes,
    /// The version read.
    pub version: Timestamp,
}

/// A key that is to be written at commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteEntry {
    /// The space.
    pub space: SpaceId,
    /// The entry that a read of the key found, in `repository`.
    pub handle: Handle,
    /// The key.
    pub key: SmallBytes,
    /// The value; `None` deletes.
    pub value: Option<SmallBytes>,
}

/// Sets longer than this are searched through an index.
pub(super) const SEARCHED_LINEARLY: usize = 16;

/// Never seen outside, and nobody goes through the index in its order.
fn hash(space: SpaceId, key: &SmallBytes) -> u64 {
    FixedState::with_seed(0).hash_one((space, key))
}

/// Read set, write set and scans of a transaction.
///
/// Invariants: a key is written once, the index holds every write or there is none, and
/// `written_bytes` is what the writes count.
#[derive(Clone, Debug, Default)]
pub struct TransactionSets {
    /// Keys read, in order.
    pub reads: Vec<ReadEntry>,
    /// Keys to write, in the order of their first write.
    pub writes: Vec<WriteEntry>,
    /// Ranges scanned, as far as they were seen.
    pub scans: Vec<KeyRange>,
    /// For the history, if one is recorded.
    pub operations: RecordedOperations,
    /// Where the writes are, by the hashes of their keys, once they are many.
    pub(super) write_index: HashTable<u32>,
    pub(super) written_bytes: usize,
    pub(super) levels: Levels,
}

impl TransactionSets {
    /// Empties the sets and keeps their memory.
    #[inline]
    pub fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.scans.clear();
        self.operations.clear();
        if !self.write_index.is_empty() {
            self.write_index.clear();
        }
        self.written_bytes = 0;
        self.levels.clear();
    }

    /// Forgets the writes of keys that are such.
    pub fn forget_writes(&mut self, is_such: impl Fn(SpaceId, &SmallBytes) -> bool) {
        assert_eq!(self.depth(), 0, "a transaction with children keeps its writes in place");
        self.writes.retain(|write| !is_such(write.space, &write.key));
        let kept = self.writes.iter();
        self.written_bytes = kept.map(|it| write_bytes(&it.key, it.value.as_ref())).sum();
        self.write_index.clear();
        if self.writes.len() > SEARCHED_LINEARLY {
            self.index_writes();
        }
    }

    /// The transaction's own write of a key: `Some(None)` where it deleted it.
    #[inline]
    pub fn own(&self, space: SpaceId, key: &SmallBytes) -> Option<&Option<SmallBytes>> {
        if self.writes.is_empty() {
            return None;
        }
        self.own_place(space, key).map(|place| &self.writes[place].value)
    }

    /// The version of a key as it was read last.
    pub fn version_read(&self, space: SpaceId, key: &SmallBytes) -> Option<Timestamp> {
        let mut reads = self.reads.iter().rev();
        reads.find(|read| read.key == *key && read.space == space).map(|read| read.version)
    }

    #[inline]
    fn own_place(&self, space: SpaceId, key: &SmallBytes) -> Option<usize> {
        let is_it = |write: &WriteEntry| write.key == *key && write.space == space;
        if self.writes.len() > SEARCHED_LINEARLY {
            let is_there = |place: &u32| is_it(&self.writes[*place as usize]);
            return self.write_index.find(hash(space, key), is_there).map(|place| *place as usize);
        }
        self.writes.iter().rposition(is_it)
    }

    /// Buffers a write.
    ///
    /// # Errors
    /// The key, the value or the whole transaction is too large; then nothing is buffered.
    #[inline(always)]
    pub fn write(
        &mut self,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
        limits: &Limits,
    ) -> Result<(), Failure> {
        let (key_size, value_size) = (key.len(), value.as_ref().map_or(0, SmallBytes::len));
        let size = ENTRY_BYTES + key_size + value_size;
        check_size(Limit::Key, key_size, limits.key_bytes)?;
        check_size(Limit::Value, value_size, limits.value_bytes)?;
        if self.writes.is_empty() {
            check_size(Limit::Transaction, size, limits.transaction_bytes)?;
            self.written_bytes = size;
            self.push_write(space, key, value);
            return Ok(());
        }
        let place = self.own_place(space, &key);
        let replaced = place.map_or(0, |place| {
            let write = &self.writes[place];
            write_bytes(&write.key, write.value.as_ref())
        });
        let total = self.written_bytes - replaced + size;
        check_size(Limit::Transaction, total, limits.transaction_bytes)?;
        self.written_bytes = total;
        match place {
            Some(place) => {
                if place < self.levels.guarded {
                    self.put_aside(place);
                }
                self.writes[place].value = value;
            }
            None => self.push_write(space, key, value),
        }
        Ok(())
    }

    /// Buffers a write that is also for the history.
    ///
    /// # Errors
    /// As of [`write`](Self::write); then the history says nothing of it.
    pub fn write_recorded(
        &mut self,
        (space, key, value): (SpaceId, SmallBytes, Option<SmallBytes>),
        limits: &Limits,
    ) -> Result<(), Failure> {
        check_size(Limit::Key, key.len(), limits.key_bytes)?;
        let mark = self.operations.mark();
        self.operations.write(space, &key, value.as_ref());
        let written = self.write(space, key, value, limits);
        if written.is_err() {
            self.operations.rewind(mark);
        }
        written
    }

    /// Writes the transaction into a history: as `id`, begun then and so, which ended so, then, and
    /// at this timestamp.
    pub fn record(
        &self,
        id: TxnId,
        (begin, options): (Nanos, &TxnOptions),
        status: Status,
        (end, at): (Option<Nanos>, Option<Timestamp>),
        recorder: &mut Recorder,
    ) {
        let TxnOptions { session, read_only, level, staleness, .. } = *options;
        let staleness = staleness.map(|it| it.most);
        let record = TxnRecord { id, session, begin, end, status, read_only, at, staleness };
        recorder.level(id, level);
        recorder.transaction(&record, &self.operations);
    }

    #[inline(always)]
    fn push_write(&mut self, space: SpaceId, key: SmallBytes, value: Option<SmallBytes>) {
        let recent = &self.reads[self.reads.len().saturating_sub(SEARCHED_LINEARLY)..];
        let read = recent.iter().find(|read| read.key == key && read.space == space);
        let handle = read.map_or(Handle::NONE, |read| read.handle);
        self.writes.push(WriteEntry { space, handle, key, value });
        if self.writes.len() > SEARCHED_LINEARLY {
            self.index_writes();
        }
    }

    /// Brings the index up to the last write.
    #[cold]
    pub(super) fn index_writes(&mut self) {
        let hash_of = |write: &WriteEntry| hash(write.space, &write.key);
        for place in self.write_index.len()..self.writes.len() {
            let rehash = |place: &u32| hash_of(&self.writes[*place as usize]);
            self.write_index.insert_unique(hash_of(&self.writes[place]), place as u32, rehash);
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let bytes = self.writes.iter().map(|it| write_bytes(&it.key, it.value.as_ref()));
        assert_eq!(self.written_bytes, bytes.sum::<usize>(), "what the writes count");
        let indexed = if self.writes.len() > SEARCHED_LINEARLY { self.writes.len() } else { 0 };
        assert_eq!(self.write_index.len(), indexed, "how many writes are in the index");
        let mut keys: Vec<_> = self.writes.iter().map(|it| (it.space, &it.key)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), self.writes.len(), "keys that are written");
        self.assert_levels();
    }

    /// What it counts towards the limit of a transaction for what it wrote.
    pub fn written_bytes(&self) -> usize {
        self.written_bytes
    }

    /// What it counts towards the limit of a transaction: what it wrote, read and scanned.
    pub fn bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|read| read_bytes(&read.key)).sum();
        let scans: usize = self.scans.iter().map(range_bytes).sum();
        self.written_bytes + reads + scans
    }

    /// How many deletes of the write set lie in a range.
    pub fn deletes_in(&self, range: &KeyRange) -> usize {
        let inside = |write: &&WriteEntry| range.contains(write.space, &write.key);
        self.writes.iter().filter(inside).filter(|write| write.value.is_none()).count()
    }

    /// Lays the transaction's own writes over the rows of a scan. `rows` ascend and are those of
    /// `range`, or a prefix (a suffix if `reverse`) of them that holds at least `limit` rows more
    /// than the range has own deletes. The result is in the order of the scan.
    pub fn overlay(
        &self,
        range: &KeyRange,
        rows: Vec<Row>,
        reverse: bool,
        limit: usize,
        complete: bool,
    ) -> Vec<Row> {
        let inside = |write: &WriteEntry| range.contains(write.space, &write.key);
        if !self.writes.iter().any(inside) {
            let mut rows = rows;
            if reverse {
                rows.reverse();
            }
            rows.truncate(limit);
            return rows;
        }
        let edge = (!complete)
            .then(|| if reverse { rows.first() } else { rows.last() }.map(|row| row.0.clone()))
            .flatten();
        let seen = |key: &SmallBytes| match &edge {
            Some(edge) if reverse => key >= edge,
            Some(edge) => key <= edge,
            None => true,
        };
        let mut merged: BTreeMap<SmallBytes, SmallBytes> = rows.into_iter().collect();
        for write in &self.writes {
            if !inside(write) || !seen(&write.key) {
                continue;
            }
            match &write.value {
                Some(value) => merged.insert(write.key.clone(), value.clone()),
                None => merged.remove(&write.key),
            };
        }
        if reverse {
            merged.into_iter().rev().take(limit).collect()
        } else {
            merged.into_iter().take(limit).collect()
        }
    }
}

/// Whether a client's scan can be done, which may be of any space if it `lists`.
///
/// # Errors
/// A bound is too long, or the space is not there, or has no order.
pub fn check_scan(
    scan: &Scan,
    lists: bool,
    catalog: &Catalog,
    limits: &Limits,
) -> Result<(), Failure> {
    let longest = scan.lo.len().max(scan.hi.as_ref().map_or(0, SmallBytes::len));
    check_size(Limit::Key, longest, limits.key_bytes)?;
    match catalog.space(scan.space) {
        Some(space) if space.options.index == Index::Hash && !lists => {
            Err(Failure::Space(format!(
                "space `{}` has a hash index and cannot be scanned; an ordered index can",
                space.name
            )))
        }
        Some(_) => Ok(()),
        None => Err(Failure::Space(format!("there is no space {}", scan.space.0))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPACE: SpaceId = SpaceId(1);

    fn sets(writes: &[(u8, Option<u8>)]) -> TransactionSets {
        let mut sets = TransactionSets::default();
        for (key, value) in writes {
            let value = value.map(|value| SmallBytes::new(&[value]));
            sets.write(SPACE, SmallBytes::new(&[*key]), value, &Limits::default()).unwrap();
        }
        sets
    }

    #[test]
    fn limits_refuse_before_anything_is_buffered() {
        let limits =
            Limits { key_bytes: 2, value_bytes: 3, transaction_bytes: 40, ..Limits::default() };
        let mut sets = TransactionSets::default();
        let mut write =
            |key: &str, value: &str| sets.write(SPACE, key.into(), Some(value.into()), &limits);
        assert!(matches!(
            write("kkk", "v"),
            Err(Failure::TooLarge { what: Limit::Key, size: 3, limit: 2 })
        ));
        assert!(matches!(write("k", "vvvv"), Err(Failure::TooLarge { what: Limit::Value, .. })));
        assert!(write("k1", "vvv").is_ok());
        assert!(matches!(
            write("k2", "vv"),
            Err(Failure::TooLarge { what: Limit::Transaction, size: 41, .. })
        ));
        assert!(write("k1", "v").is_ok(), "a replaced write no longer counts");
        assert!(write("k2", "vvv").is_ok());
        assert_eq!(sets.writes.len(), 2);
    }

    proptest! {
        #[test]
        fn own_writes_are_read_back(
            writes in prop::collection::vec((0u8..40, prop::option::of(any::<u8>())), 0..80),
        ) {
            let sets = sets(&writes);
            let mut model = BTreeMap::new();
            for (key, value) in &writes {
                model.insert(*key, *value);
            }
            prop_assert_eq!(sets.writes.len(), model.len());
            for key in 0..40u8 {
                let own = sets.own(SPACE, &SmallBytes::new(&[key]));
                let own = own.map(|value| value.as_ref().map(|value| value.as_slice()[0]));
                prop_assert_eq!(own, model.get(&key).copied());
                prop_assert!(sets.own(SpaceId(9), &SmallBytes::new(&[key])).is_none());
            }
        }

        #[test]
        fn a_scan_over_own_writes_is_what_the_commit_would_leave(
            stored in prop::collection::btree_map(0u8..30, any::<u8>(), 0..20),
            writes in prop::collection::vec((0u8..30, prop::option::of(any::<u8>())), 0..12),
            lo in 0u8..30, hi in 0u8..32, reverse: bool, limit in 0usize..12,
        ) {
            let sets = sets(&writes);
            let key = |key: u8| SmallBytes::new(&[key]);
            let range = KeyRange { space: SPACE, lo: key(lo), hi: Some(key(hi)) };
            let mut after = stored.clone();
            for (written, value) in &writes {
                match value {
                    Some(value) => after.insert(*written, *value),
                    None => after.remove(written),
                };
            }
            let inside = stored.iter().filter(|(k, _)| lo <= **k && **k < hi);
            let inside: Vec<_> = inside.map(|(k, v)| (key(*k), key(*v))).collect();
            let wanted_rows = limit + sets.deletes_in(&range);
            let complete = inside.len() <= wanted_rows;
            let skip = if reverse { inside.len().saturating_sub(wanted_rows) } else { 0 };
            let rows: Vec<_> = inside.into_iter().skip(skip).take(wanted_rows).collect();
            let got = sets.overlay(&range, rows, reverse, limit, complete);
            let wanted = after.into_iter().filter(|(k, _)| lo <= *k && *k < hi);
            let mut wanted: Vec<_> = wanted.map(|(k, v)| (key(k), key(v))).collect();
            if reverse { wanted.reverse(); }
            wanted.truncate(limit);
            prop_assert_eq!(got, wanted);
        }
    }
}
