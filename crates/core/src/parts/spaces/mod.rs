//! The spaces of one repository: a store each, made at its first use.

use crate::bytes::SmallBytes;
use crate::catalog::{Catalog, Index};
use crate::checkpoint::Cursor;
use crate::ids::{SpaceId, Timestamp};
use crate::memory::Held;
use crate::parts::versions::Versions;
use crate::recorder::partition_sizes::{PartitionSizes, SIZE_STEP_SLOTS, SizeCursor};

/// A key with its newest version.
pub type Newest = (SpaceId, SmallBytes, Timestamp, Option<SmallBytes>);

/// At most so many slots are looked at for a piece of keys that are wanted.
const LOOKED_MAX: u32 = 1 << 14;
/// The stages of a cursor from here on are those of collected deletions, by space.
const COLLECTED: u32 = 1 << 16;
/// What a key costs beside its bytes and its value's, about.
pub(super) const KEY_BYTES: usize = 16;

/// Stores by the numbers of their spaces.
///
/// Invariants: those of each [store](Versions), all of which have as many marks as `marks` says.
#[derive(Clone, Debug)]
pub struct Spaces {
    stores: Vec<Option<Versions>>,
    hash_seed: u64,
    /// Whether the versions of collected deletions are remembered, for histories.
    records_collected: bool,
    /// How many [marks](Spaces::mark) there are.
    marks: usize,
}

impl Spaces {
    /// No stores yet; `hash_seed` is that of their hashes.
    pub fn new(hash_seed: u64) -> Spaces {
        Spaces { stores: Vec::new(), hash_seed, records_collected: false, marks: 0 }
    }

    /// The same stores, which remember the versions of collected deletions if `records` says so.
    /// There must be none yet.
    #[must_use]
    pub fn recording_collected(self, records: bool) -> Spaces {
        assert!(self.stores.is_empty(), "what was collected before is not known");
        Spaces { records_collected: records, ..self }
    }

    /// The store of `space`, if anything was ever put there.
    #[inline]
    pub fn get(&self, space: SpaceId) -> Option<&Versions> {
        self.stores.get(usize::from(space.0))?.as_ref()
    }

    /// The store of `space`, made if there is none.
    #[inline(always)]
    pub fn get_or_make(&mut self, space: SpaceId, catalog: &Catalog) -> &mut Versions {
        let at = usize::from(space.0);
        if !matches!(self.stores.get(at), Some(Some(_))) {
            self.make(space, catalog);
        }
        self.stores[at].as_mut().expect("made above")
    }

    #[cold]
    fn make(&mut self, space: SpaceId, catalog: &Catalog) {
        let at = usize::from(space.0);
        if self.stores.len() <= at {
            self.stores.resize_with(at + 1, || None);
        }
        let ordered = catalog.space(space).is_none_or(|s| s.options.index == Index::Ordered);
        let mut store = Versions::new(ordered, self.hash_seed);
        if self.records_collected {
            store.record_collected();
        }
        (0..self.marks).for_each(|_| store.mark());
        self.stores[at] = Some(store);
    }

    /// How many numbers of spaces are in use, those without a store included.
    pub fn len(&self) -> usize {
        self.stores.len()
    }

    /// Whether there are no stores.
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// All stores, by the numbers of their spaces.
    pub fn iter(&self) -> impl Iterator<Item = (SpaceId, &Versions)> {
        let all = self.stores.iter().enumerate();
        all.filter_map(|(space, store)| Some((SpaceId(space as u16), store.as_ref()?)))
    }

    /// The next keys with their newest versions, of those that are `wanted`, from where the cursor
    /// stands: about `bytes` bytes of them, and perhaps none where many are not; `None`: that was
    /// all. Stages of the cursor are numbers of spaces.
    pub fn next_newest(
        &self,
        cursor: &mut Cursor,
        bytes: usize,
        wanted: impl Fn(SpaceId, &SmallBytes) -> bool,
    ) -> Option<Vec<Newest>> {
        let (mut found, mut size, mut looked) = (Vec::new(), 0, 0);
        while (cursor.step as usize) < self.stores.len() {
            let space = SpaceId(cursor.step as u16);
            let store = self.stores[cursor.step as usize].as_ref();
            let slots = store.map_or(0, |store| u64::from(store.slots()));
            while cursor.place < slots {
                if size >= bytes || looked == LOOKED_MAX {
                    return Some(found);
                }
                let slot = cursor.place as u32;
                (cursor.place, looked) = (cursor.place + 1, looked + 1);
                let newest = store.and_then(|store| store.newest_in(slot));
                if let Some((key, version)) = newest.filter(|(key, _)| wanted(space, key)) {
                    size += key.len() + version.value.map_or(0, SmallBytes::len) + KEY_BYTES;
                    found.push((space, key.clone(), version.at, version.value.cloned()));
                }
            }
            (cursor.step, cursor.place) = (cursor.step + 1, 0);
        }
        if cursor.step < COLLECTED {
            cursor.step = COLLECTED;
            found.extend(self.newest_collected(wanted));
        }
        (!found.is_empty()).then_some(found)
    }

    /// For histories: the newest collected deletions of keys that are `wanted`.
    fn newest_collected(
        &self,
        wanted: impl Fn(SpaceId, &SmallBytes) -> bool,
    ) -> impl Iterator<Item = Newest> {
        let all = self.iter().flat_map(|(space, store)| {
            store.all_collected().map(move |(key, versions)| (space, key, versions))
        });
        all.filter_map(move |(space, key, versions)| {
            let newest = versions.last().filter(|_| wanted(space, key))?;
            Some((space, key.clone(), *newest, None))
        })
    }

    /// Removes keys that `go`, of the next so many slots from where the cursor stands; false: all
    /// have been looked at. Stages of the cursor are numbers of spaces.
    pub fn remove_some(
        &mut self,
        cursor: &mut Cursor,
        slots: u64,
        go: impl Fn(SpaceId, &SmallBytes) -> bool,
    ) -> bool {
        let mut left = slots;
        while (cursor.step as usize) < self.stores.len() {
            let space = SpaceId(cursor.step as u16);
            if let Some(store) = &mut self.stores[cursor.step as usize] {
                let end = u64::from(store.slots());
                while cursor.place < end {
                    if left == 0 {
                        return true;
                    }
                    store.remove_in(cursor.place as u32, |key| go(space, key));
                    (cursor.place, left) = (cursor.place + 1, left - 1);
                }
            }
            (cursor.step, cursor.place) = (cursor.step + 1, 0);
        }
        false
    }

    /// Adds up keys with their newest values, of the next [`SIZE_STEP_SLOTS`] slots from where the
    /// cursor is, each in the partition that is named for it; false: all have been looked at. Any
    /// cursor may be given.
    pub fn add_sizes(
        &self,
        cursor: &mut SizeCursor,
        sizes: &mut PartitionSizes,
        partition: impl Fn(SpaceId, &SmallBytes) -> Option<u16>,
    ) -> bool {
        let mut left = SIZE_STEP_SLOTS;
        while let Some(store) = self.stores.get(usize::from(cursor.space)) {
            let slots = store.as_ref().map_or(0, Versions::slots);
            while cursor.slot < slots {
                if left == 0 {
                    return true;
                }
                let newest = store.as_ref().and_then(|store| store.newest_in(cursor.slot));
                if let Some((key, version)) = newest
                    && let Some(value) = version.value
                    && let Some(partition) = partition(SpaceId(cursor.space), key)
                {
                    sizes.add(partition, (key.len() + value.len()) as u64);
                }
                (cursor.slot, left) = (cursor.slot + 1, left - 1);
            }
            let Some(next) = cursor.space.checked_add(1) else { return false };
            (cursor.space, cursor.slot) = (next, 0);
        }
        false
    }

    /// Notes from now on what is replaced, so that it can be [taken back](Self::go_back), and cuts
    /// these notes here.
    pub fn mark(&mut self) {
        self.marks += 1;
        self.all_mut().for_each(Versions::mark);
    }

    /// Nobody goes back to the oldest mark: only to the next one.
    pub fn forget_mark(&mut self) {
        self.marks = self.marks.saturating_sub(1);
        self.all_mut().for_each(Versions::forget_mark);
    }

    /// All stores as they were at the oldest mark, with no key locked; none are left here. `None`:
    /// that is not known.
    pub fn go_back(&mut self) -> Option<Spaces> {
        let empty = Spaces { stores: Vec::new(), marks: 0, ..*self };
        let mut all = std::mem::replace(self, empty);
        let is_known = std::mem::take(&mut all.marks) > 0;
        let is_known = is_known && all.all_mut().all(Versions::go_back);
        is_known.then_some(all)
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for (space, store) in self.iter() {
            store.assert_invariants();
            assert_eq!(store.marks(), self.marks, "how many marks {space:?} has");
        }
    }

    /// What all of them take.
    pub fn held(&self) -> Held {
        let each = self.stores.iter().flatten().map(Versions::held);
        each.fold(Held::default(), |sum, one| Held {
            all: sum.all + one.all,
            old: sum.old + one.old,
        })
    }

    /// All stores, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Versions> {
        self.stores.iter_mut().flatten()
    }
}

mod checkpoint;

pub use checkpoint::ChainKinds;

#[cfg(test)]
mod tests;
