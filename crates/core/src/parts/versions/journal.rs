//! Taking back what a store did since some moment: for a replica that led and did what was never
//! agreed on.
//!
//! While somebody may want that, the store notes with each version that it installs which one was
//! the newest before. Its notes are cut by *marks*; the oldest part is forgotten once nobody will
//! go back that far, so what is held is as much as was written since the oldest mark.
//!
//! What is collected meanwhile stays collected, but for the version that a note has: it is the
//! newest again, whatever became of it. So after going back a store holds of each key at least what
//! can be read at or above the watermark that it collected below.
//!
//! Who reads the store slot by slot meanwhile, for a checkpoint, goes on where it stands: no key
//! changes its slot, but those that were collected and are there again have slots after all others.

use std::collections::VecDeque;

use super::bytes::len;
use super::{Handle, NIL, Versions};
use crate::bytes::SmallBytes;
use crate::ids::Timestamp;

/// What was the newest version of a key before another one was installed; version zero: none.
#[derive(Clone, Debug)]
struct Before {
    key: SmallBytes,
    value: Option<SmallBytes>,
    at: Timestamp,
}

/// What was replaced since each mark, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    parts: VecDeque<Vec<Before>>,
    /// Something was done that cannot be taken back.
    is_broken: bool,
}

impl Versions {
    /// Notes from now on what is replaced, in a part of its own.
    pub fn mark(&mut self) {
        self.journal.get_or_insert_default().parts.push_back(Vec::new());
    }

    /// Forgets the oldest part of the notes; where there is no other, nothing is noted any more.
    pub fn forget_mark(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        journal.parts.pop_front();
        if journal.parts.is_empty() {
            self.journal = None;
        }
    }

    /// How many marks there are.
    pub fn marks(&self) -> usize {
        self.journal.as_ref().map_or(0, |journal| journal.parts.len())
    }

    /// A version of the entry is about to be replaced.
    #[cold]
    pub(super) fn note_replaced(&mut self, handle: Handle) {
        let entry = &self.entries[handle.slot as usize];
        let before = Before { key: entry.key.clone(), value: entry.value.clone(), at: entry.at };
        let journal = self.journal.as_mut();
        if let Some(part) = journal.and_then(|it| it.parts.back_mut()) {
            part.push(before);
        }
    }

    /// Removes an entry with all its versions, which can be taken back as everything can.
    pub fn erase(&mut self, handle: Handle) {
        if self.journal.is_some() {
            self.note_replaced(handle);
        }
        self.drop_versions(handle);
        self.remove(handle);
    }

    /// Something is done of which there are no notes.
    pub(super) fn break_journal(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.is_broken = true;
        }
    }

    /// Frees all locks, and takes back all that was installed since the oldest mark, the newest
    /// first. False: that cannot be done, and the store is of no use any more.
    pub fn go_back(&mut self) -> bool {
        let slots: Vec<u32> = self.index.iter().copied().collect();
        for slot in slots {
            let entry = &mut self.entries[slot as usize];
            entry.lock = super::LockWord::default();
            if entry.at == Timestamp::ZERO {
                let handle = Handle { slot, generation: entry.generation };
                self.remove(handle); // It was made to be locked.
            }
        }
        let Some(journal) = self.journal.take() else { return false };
        for before in journal.parts.into_iter().flatten().rev() {
            self.take_back(before);
        }
        !journal.is_broken
    }

    fn take_back(&mut self, before: Before) {
        let Before { key, value, at } = before;
        let found = self.find(&key);
        if at == Timestamp::ZERO {
            if let Some(handle) = found {
                self.drop_versions(handle);
                self.remove(handle);
            }
            return self.forget_collected(&key, at);
        }
        let handle = found.unwrap_or_else(|| self.create_last(&key));
        let entry = &mut self.entries[handle.slot as usize];
        let gone = (entry.at != Timestamp::ZERO).then_some(entry.at);
        if let Some(gone) = gone {
            let is_gone = |it: &mut super::Replaced| it.handle == handle && it.at == gone;
            self.replaced.pop_back_if(is_gone);
        }
        self.bytes -= len(entry.value.as_ref());
        self.bytes += len(value.as_ref());
        (entry.value, entry.at) = (value, at);
        let next = entry.older;
        if next != NIL && self.older[next as usize].at >= at {
            // The version that is the newest again stands in the chain as well.
            let older = &mut self.older[next as usize];
            let freed = len(older.value.take().as_ref());
            let rest = std::mem::replace(&mut older.older, NIL);
            (self.bytes, self.older_bytes) = (self.bytes - freed, self.older_bytes - freed);
            self.free_older.push(next);
            self.entry_mut(handle).older = rest;
        }
        self.forget_collected(&key, at);
    }

    /// An entry is to be removed: all its versions go.
    fn drop_versions(&mut self, handle: Handle) {
        let rest = std::mem::replace(&mut self.entry_mut(handle).older, NIL);
        self.free_chain(rest);
    }

    /// Deletions after `at` that were collected were taken back.
    fn forget_collected(&mut self, key: &SmallBytes, at: Timestamp) {
        let Some(versions) = self.collected.as_mut().and_then(|all| all.get_mut(key)) else {
            return;
        };
        versions.truncate(versions.partition_point(|it| *it <= at));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Chain;
    use super::*;

    /// All keys with their versions and values.
    fn chains(store: &Versions) -> Vec<(SmallBytes, Chain)> {
        let all = (0..store.slots()).filter_map(|slot| store.chain_in(slot));
        let mut all: Vec<_> = all.map(|(key, chain)| (key.clone(), chain)).collect();
        all.sort();
        all
    }

    fn put(store: &mut Versions, key: u8, how: u8, at: u64) {
        let handle = store.find_or_create(Handle::NONE, &[key][..].into());
        let value =
            SmallBytes::from(format!("{at:>width$}", width = 3 + 9 * usize::from(key)).as_str());
        match how {
            0 => store.install(handle, None, Timestamp(at)),
            1 => store.overwrite(handle, value, Timestamp(at)),
            _ => store.install(handle, Some(value), Timestamp(at)),
        }
    }

    proptest! {
        #[test]
        fn a_store_goes_back_to_its_oldest_mark(
            before in prop::collection::vec((0..6_u8, 0..4_u8), 0..20),
            part in prop::collection::vec((0..6_u8, 0..4_u8, 0..40_u64), 0..20),
            last in prop::collection::vec((0..6_u8, 0..4_u8, 0..60_u64), 0..20),
        ) {
            let (mut store, mut at, mut low) = (Versions::new(true, 1), 0, 0);
            for (key, how) in before {
                at += 1;
                put(&mut store, key, how, at);
            }
            store.mark();
            let mut step = |store: &mut Versions, key: u8, how: u8, below: u64| {
                at += 1;
                put(store, key, how, at);
                // Whoever overwrites knows that nobody reads what is older.
                low = low.max(if how == 1 { at } else { below.min(at) });
                store.collect(Timestamp(low), 3);
                let locked = store.find_or_create(Handle::NONE, &[key + 10][..].into());
                store.lock_mut(locked).try_shared();
                low
            };
            for (key, how, below) in part {
                step(&mut store, key, how, below);
            }
            store.mark();
            store.forget_mark();
            let mut wanted = store.clone();
            let mut collected = 0;
            for (key, how, below) in last {
                collected = step(&mut store, key, how, below);
            }
            prop_assert!(store.go_back());
            wanted.journal = None;
            // What may be read still is the same; what was collected meanwhile is not there.
            for store in [&mut store, &mut wanted] {
                store.order_replaced();
                store.collect(Timestamp(collected), 1000);
            }
            let readable = |store: &Versions| {
                chains(store).into_iter().filter_map(|(key, mut chain)| {
                    let from = chain.iter().rposition(|(at, _)| at.0 <= collected).unwrap_or(0);
                    chain.drain(..from);
                    let is_low = chain.first().is_some_and(|(at, _)| at.0 <= collected);
                    let dead = chain.len() == 1 && chain[0].1.is_none() && is_low;
                    (!dead).then_some((key, chain))
                }).collect::<Vec<_>>()
            };
            prop_assert_eq!(readable(&store), readable(&wanted));
            // Everything is counted, and can be collected.
            let is_free = |slot: &u32| store.entries[*slot as usize].lock.is_free();
            prop_assert!(store.index.iter().all(is_free));
            store.collect(Timestamp::MAX, 1000);
            prop_assert_eq!(store.older_versions(), 0);
            let left = chains(&store).iter().map(|(key, chain)| {
                key.len() + chain.iter().map(|(_, value)| len(value.as_ref())).sum::<usize>()
            }).sum::<usize>();
            prop_assert_eq!(store.bytes, left);
        }
    }

    #[test]
    fn removed_keys_cannot_be_brought_back() {
        let mut store = Versions::new(true, 1);
        put(&mut store, 1, 3, 1);
        assert!(!store.clone().go_back(), "nobody asked for notes");
        store.mark();
        let mut other = store.clone();
        other.remove_in(0, |_| true);
        assert!(!other.go_back());
        assert!(store.go_back());
        assert_eq!(chains(&store).len(), 1);
    }
}
