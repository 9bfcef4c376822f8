//! The multi-version store of one space in one repository.
//!
//! A key has an entry: its newest version inline, its lock word, and a chain of older versions in
//! a slab beside. Entries live in a slab too and are found by hash, or in key order where the
//! space is ordered. A [`Handle`] names an entry without another look-up; entries are removed and
//! their slots reused, so a handle carries the slot's generation.
//!
//! A superseded version is needed until every snapshot is at or above the version that replaced
//! it. So each replacement stands in a queue, in order of time, and garbage collection takes from
//! its front what the watermark has passed: its cost follows the writes, not the keys.

use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use self::bytes::len;
use self::journal::Journal;
use self::order::KeyOrder;
use crate::bytes::SmallBytes;
use crate::ids::Timestamp;
use crate::memory::Held;
use crate::parts::locks::LockWord;

/// An entry of the store; stale once the entry was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    slot: u32,
    generation: u32,
}

impl Handle {
    /// A handle that is always stale: of a key that had no entry.
    pub const NONE: Handle = Handle { slot: u32::MAX, generation: u32::MAX };
}

/// A version as a read sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// Who wrote it, by commit timestamp; zero where the key was never written.
    pub at: Timestamp,
    /// The value; `None` where the key is absent or deleted.
    pub value: Option<&'a SmallBytes>,
    /// Whether it is the newest version.
    pub newest: bool,
}

impl Version<'_> {
    /// What a key without an entry reads as.
    pub const ABSENT: Version<'static> = Version { at: Timestamp::ZERO, value: None, newest: true };
}

#[derive(Clone, Debug)]
struct KeyEntry {
    key: SmallBytes,
    value: Option<SmallBytes>,
    at: Timestamp,
    lock: LockWord,
    older: u32,
    generation: u32,
}

#[derive(Clone, Debug)]
struct Older {
    value: Option<SmallBytes>,
    at: Timestamp,
    older: u32,
}

#[derive(Clone, Copy, Debug)]
struct Replaced {
    at: Timestamp,
    handle: Handle,
}

const NIL: u32 = u32::MAX;

/// Keys with their versions and locks.
///
/// Invariants: every entry that is not free is in the index, and in the order where there is one;
/// the versions of a key descend from the newest, none stands in two chains, and a free one in
/// none; `bytes` and `older_bytes` are those of all keys and values, and of those replaced.
#[derive(Clone, Debug)]
pub struct Versions {
    hasher: FixedState,
    index: HashTable<u32>,
    /// Made at the first use where keys are found by hash alone.
    order: OnceLock<KeyOrder>,
    entries: Vec<KeyEntry>,
    free_entries: Vec<u32>,
    older: Vec<Older>,
    free_older: Vec<u32>,
    replaced: VecDeque<Replaced>,
    /// The versions of collected deletions, ascending; only where histories are recorded.
    collected: Option<BTreeMap<SmallBytes, Vec<Timestamp>>>,
    /// What was replaced since some moment; only where that may be taken back.
    journal: Option<Journal>,
    /// Bytes of all keys and values.
    bytes: usize,
    /// Bytes of the values among them that were replaced.
    older_bytes: usize,
}

impl Versions {
    /// What keys and versions take, about: their bytes, and what each costs beside them.
    pub fn held(&self) -> Held {
        let older = self.older.len() - self.free_older.len();
        let old = older * size_of::<Older>() + self.older_bytes;
        // An entry has a place in the index, and one in the order of keys where there is one.
        let each = size_of::<KeyEntry>() + if self.order.get().is_some() { 20 } else { 8 };
        let replaced = self.replaced.len() * size_of::<Replaced>();
        let newest = self.index.len() * each + self.bytes - self.older_bytes;
        Held { all: (newest + old + replaced) as u64, old: old as u64 }
    }

    /// An empty store, whose keys are kept in order from the start if it is an `ordered` one.
    /// `seed` is that of the hash.
    pub fn new(ordered: bool, seed: u64) -> Versions {
        Versions {
            hasher: FixedState::with_seed(seed),
            index: HashTable::new(),
            order: if ordered { KeyOrder::default().into() } else { OnceLock::new() },
            entries: Vec::new(),
            free_entries: Vec::new(),
            older: Vec::new(),
            free_older: Vec::new(),
            replaced: VecDeque::new(),
            collected: None,
            journal: None,
            bytes: 0,
            older_bytes: 0,
        }
    }

    /// The entry of `key`.
    #[inline]
    pub fn find(&self, key: &SmallBytes) -> Option<Handle> {
        self.find_hashed(self.hasher.hash_one(key), key)
    }

    #[inline]
    fn find_hashed(&self, hash: u64, key: &SmallBytes) -> Option<Handle> {
        let slot = *self.index.find(hash, |&slot| self.entries[slot as usize].key == *key)?;
        Some(Handle { slot, generation: self.entries[slot as usize].generation })
    }

    /// The entry of `key`, by an earlier handle if that is still good.
    #[inline]
    pub fn find_again(&self, handle: Handle, key: &SmallBytes) -> Option<Handle> {
        if self.is_good(handle) { Some(handle) } else { self.find(key) }
    }

    #[inline]
    fn is_good(&self, handle: Handle) -> bool {
        let entry = self.entries.get(handle.slot as usize);
        entry.is_some_and(|entry| entry.generation == handle.generation)
    }

    /// The entry of `key`, made if there is none: a key that was never written, ready to be
    /// locked.
    pub fn find_or_create(&mut self, handle: Handle, key: &SmallBytes) -> Handle {
        if self.is_good(handle) {
            return handle;
        }
        let hash = self.hasher.hash_one(key);
        if let Some(handle) = self.find_hashed(hash, key) {
            return handle;
        }
        let slot = self.new_entry(key);
        let entries = &self.entries;
        let hasher = &self.hasher;
        let rehash = |&slot: &u32| hasher.hash_one(&entries[slot as usize].key);
        self.index.insert_unique(hash, slot, rehash);
        if let Some(order) = self.order.get_mut() {
            order.insert(slot, |slot| &entries[slot as usize].key);
        }
        Handle { slot, generation: self.entries[slot as usize].generation }
    }

    fn new_entry(&mut self, key: &SmallBytes) -> u32 {
        self.bytes += key.len();
        let entry = KeyEntry {
            key: key.clone(),
            value: None,
            at: Timestamp::ZERO,
            lock: LockWord::default(),
            older: NIL,
            generation: 0,
        };
        match self.free_entries.pop() {
            Some(slot) => {
                let place = &mut self.entries[slot as usize];
                *place = KeyEntry { generation: place.generation, ..entry };
                slot
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        }
    }

    /// The entry of a key that has none, in a slot after all others: whoever reads the store slot
    /// by slot comes to it yet.
    fn create_last(&mut self, key: &SmallBytes) -> Handle {
        let free = std::mem::take(&mut self.free_entries);
        let handle = self.find_or_create(Handle::NONE, key);
        self.free_entries = free;
        handle
    }

    /// The newest version.
    #[inline]
    pub fn newest(&self, handle: Handle) -> Version<'_> {
        let entry = self.entry(handle);
        Version { at: entry.at, value: entry.value.as_ref(), newest: true }
    }

    /// The newest version at or below `snapshot`, which must not be below the watermark that
    /// [`collect`](Self::collect) was given.
    #[inline]
    pub fn at(&self, handle: Handle, snapshot: Timestamp) -> Version<'_> {
        let entry = self.entry(handle);
        if entry.at <= snapshot {
            return Version { at: entry.at, value: entry.value.as_ref(), newest: true };
        }
        self.older_at(entry.older, snapshot)
    }

    fn older_at(&self, mut next: u32, snapshot: Timestamp) -> Version<'_> {
        while let Some(older) = self.older.get(next as usize) {
            if older.at <= snapshot {
                return Version { at: older.at, value: older.value.as_ref(), newest: false };
            }
            next = older.older;
        }
        Version { newest: false, ..Version::ABSENT }
    }

    /// The entry of `key` as a read at `snapshot` sees it: handle, lock, version.
    #[inline(always)]
    pub fn read(
        &self,
        key: &SmallBytes,
        snapshot: Timestamp,
    ) -> Option<(Handle, LockWord, Version<'_>)> {
        let hash = self.hasher.hash_one(key);
        let slot = *self.index.find(hash, |&slot| self.entries[slot as usize].key == *key)?;
        let entry = &self.entries[slot as usize];
        let handle = Handle { slot, generation: entry.generation };
        if entry.at <= snapshot {
            let version = Version { at: entry.at, value: entry.value.as_ref(), newest: true };
            return Some((handle, entry.lock, version));
        }
        Some((handle, entry.lock, self.older_at(entry.older, snapshot)))
    }

    /// The newest version's timestamp and the lock of `key`'s entry, found by an earlier handle
    /// if that is still good.
    #[inline]
    pub fn look(&self, handle: Handle, key: &SmallBytes) -> Option<(Handle, Timestamp, LockWord)> {
        match self.entries.get(handle.slot as usize) {
            Some(entry) if entry.generation == handle.generation => {
                Some((handle, entry.at, entry.lock))
            }
            _ => {
                let handle = self.find(key)?;
                let entry = self.entry(handle);
                Some((handle, entry.at, entry.lock))
            }
        }
    }

    /// The versions of an entry above `seen`, newest first.
    pub fn above(&self, handle: Handle, seen: Timestamp) -> impl Iterator<Item = Timestamp> {
        let entry = self.entry(handle);
        let older = std::iter::successors(self.older.get(entry.older as usize), |older| {
            self.older.get(older.older as usize)
        });
        let all = std::iter::once(entry.at).chain(older.map(|older| older.at));
        all.take_while(move |at| *at > seen)
    }

    /// The lock of an entry.
    #[inline]
    pub fn lock(&self, handle: Handle) -> LockWord {
        self.entry(handle).lock
    }

    /// The lock of an entry, to take or give back.
    #[inline]
    pub fn lock_mut(&mut self, handle: Handle) -> &mut LockWord {
        &mut self.entry_mut(handle).lock
    }

    /// The key of an entry.
    pub fn key(&self, handle: Handle) -> &SmallBytes {
        &self.entry(handle).key
    }

    /// Makes `value` the newest version; `None` deletes.
    ///
    /// # Panics
    /// If `at` is not above the newest version's.
    #[inline(always)]
    pub fn install(&mut self, handle: Handle, value: Option<SmallBytes>, at: Timestamp) {
        if self.journal.is_some() {
            self.note_replaced(handle);
        }
        let entry = &mut self.entries[handle.slot as usize];
        assert_eq!(entry.generation, handle.generation, "a stale handle");
        assert!(at > entry.at, "versions are installed in order");
        let deleted = value.is_none();
        self.bytes += len(value.as_ref());
        let before = std::mem::replace(&mut entry.value, value);
        let before_at = std::mem::replace(&mut entry.at, at);
        if before_at != Timestamp::ZERO {
            self.older_bytes += len(before.as_ref());
            let older = Older { value: before, at: before_at, older: entry.older };
            let place = self.new_older(older);
            self.entries[handle.slot as usize].older = place;
            self.replaced.push_back(Replaced { at, handle });
        } else if deleted {
            self.replaced.push_back(Replaced { at, handle });
        }
    }

    /// Puts a version below newer ones of its key; `None`: the key was deleted there. It goes when
    /// those of which it was the last are [collected](Self::collect): where there is no snapshot
    /// left between it and the next newer one, it is not to be put there.
    ///
    /// # Panics
    /// If it would be the newest, or there is one at `at` already.
    pub fn insert_below(&mut self, handle: Handle, value: Option<SmallBytes>, at: Timestamp) {
        if self.journal.is_some() {
            self.note_replaced(handle);
        }
        let entry = self.entry(handle);
        assert!(at < entry.at, "{at} would be the newest version");
        let (mut newer, mut older) = (NIL, entry.older);
        while let Some(version) = self.older.get(older as usize).filter(|it| it.at >= at) {
            assert!(version.at > at, "there is a version at {at}");
            (newer, older) = (older, version.older);
        }
        let bytes = len(value.as_ref());
        self.bytes += bytes;
        self.older_bytes += bytes;
        let place = self.new_older(Older { value, at, older });
        match self.older.get_mut(newer as usize) {
            Some(newer) => newer.older = place,
            None => self.entry_mut(handle).older = place,
        }
    }

    /// A place for a version that is not the newest of its key.
    #[inline(always)]
    fn new_older(&mut self, older: Older) -> u32 {
        match self.free_older.pop() {
            Some(place) => {
                self.older[place as usize] = older;
                place
            }
            None => {
                self.older.push(older);
                (self.older.len() - 1) as u32
            }
        }
    }

    /// Makes `value` the newest version in the place of the one before, which nobody can read any
    /// more: every snapshot from now on is at or above `at`.
    ///
    /// # Panics
    /// If `at` is not above the newest version's.
    #[inline(always)]
    pub fn overwrite(&mut self, handle: Handle, value: SmallBytes, at: Timestamp) {
        if self.journal.is_some() {
            self.note_replaced(handle);
        }
        let entry = &mut self.entries[handle.slot as usize];
        assert_eq!(entry.generation, handle.generation, "a stale handle");
        assert!(at > entry.at, "versions are installed in order");
        self.bytes = self.bytes + value.len() - len(entry.value.as_ref());
        entry.value = Some(value);
        entry.at = at;
        // What is older cannot be read either. Left here it would be a chain with a gap.
        if entry.older != NIL {
            self.cut_older(handle);
        }
    }

    /// Removes an entry that was made only to be locked, if nobody holds its lock any more.
    pub fn remove_if_unused(&mut self, handle: Handle) {
        let entry = self.entry(handle);
        if entry.at == Timestamp::ZERO && entry.lock.is_free() {
            self.remove(handle);
        }
    }

    fn remove(&mut self, handle: Handle) {
        if let Some(order) = self.order.get_mut() {
            let key_of = |slot: u32| &self.entries[slot as usize].key;
            order.remove(key_of(handle.slot), key_of);
        }
        let entry = self.entry_mut(handle);
        entry.generation = entry.generation.wrapping_add(1);
        let key = std::mem::replace(&mut entry.key, SmallBytes::EMPTY);
        let freed = key.len() + len(entry.value.take().as_ref());
        entry.at = Timestamp::ZERO;
        assert_eq!(entry.older, NIL, "removed with versions left");
        self.bytes -= freed;
        let hash = self.hasher.hash_one(&key);
        let found = self.index.find_entry(hash, |&slot| slot == handle.slot);
        found.expect("every entry is in the index").remove();
        self.free_entries.push(handle.slot);
    }

    /// Whether keys are kept in order.
    pub fn is_ordered(&self) -> bool {
        self.order.get().is_some()
    }

    /// The entries of `[lo, hi)` in key order; `hi` `None` is open. Keys that are not kept in order
    /// are put in order by this, once.
    pub fn range<'a>(
        &'a self,
        lo: &'a SmallBytes,
        hi: Option<&'a SmallBytes>,
    ) -> impl DoubleEndedIterator<Item = (&'a SmallBytes, Handle)> {
        let empty = hi.is_some_and(|hi| hi <= lo);
        let key_of = |slot: u32| &self.entries[slot as usize].key;
        let make = || KeyOrder::of_all(self.index.iter().copied().collect(), key_of);
        let order = (!empty).then(|| self.order.get_or_init(make));
        order.into_iter().flat_map(move |order| order.range(lo, hi, key_of)).map(|slot| {
            let entry = &self.entries[slot as usize];
            (&entry.key, Handle { slot, generation: entry.generation })
        })
    }

    /// All keys with the timestamps of their versions, oldest first; in no meaningful order.
    pub fn chains(&self) -> impl Iterator<Item = (&SmallBytes, Vec<Timestamp>)> {
        self.index.iter().map(|&slot| {
            let entry = &self.entries[slot as usize];
            let mut chain = vec![entry.at];
            let mut next = entry.older;
            while let Some(older) = self.older.get(next as usize) {
                chain.push(older.at);
                next = older.older;
            }
            chain.reverse();
            (&entry.key, chain)
        })
    }

    /// How many keys have an entry.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no key has an entry.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// How many versions are kept besides the newest ones.
    pub fn older_versions(&self) -> usize {
        self.older.len() - self.free_older.len()
    }

    #[inline]
    fn entry(&self, handle: Handle) -> &KeyEntry {
        let entry = &self.entries[handle.slot as usize];
        assert_eq!(entry.generation, handle.generation, "a stale handle");
        entry
    }

    #[inline]
    fn entry_mut(&mut self, handle: Handle) -> &mut KeyEntry {
        let entry = &mut self.entries[handle.slot as usize];
        assert_eq!(entry.generation, handle.generation, "a stale handle");
        entry
    }
}

mod bytes;
mod chains;
mod collected;
mod collection;
mod invariants;
mod journal;
mod order;

pub use chains::Chain;

#[cfg(test)]
mod tests;
