//! Whole chains out of a store and into another one, for checkpoints.
//!
//! A store is gone through by slots, a few at a time, while it changes. A key that is there from
//! beginning to end stays in its slot, and is met once. One that is removed and made again may be
//! met twice or never; both are changes of which whoever keeps the log has records.

use super::{Handle, NIL, Version, Versions};
use crate::bytes::SmallBytes;
use crate::ids::Timestamp;

/// The versions of a key, oldest first; a value of `None` is a deletion.
pub type Chain = Vec<(Timestamp, Option<SmallBytes>)>;

impl Versions {
    /// How many slots there are.
    pub fn slots(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The key in a slot with all of its versions; `None` where the slot holds none.
    pub fn chain_in(&self, slot: u32) -> Option<(&SmallBytes, Chain)> {
        let entry = self.entries.get(slot as usize)?;
        if entry.at == Timestamp::ZERO {
            return None; // Free, or only locked.
        }
        let mut chain = vec![(entry.at, entry.value.clone())];
        let mut next = entry.older;
        while next != NIL {
            let older = &self.older[next as usize];
            chain.push((older.at, older.value.clone()));
            next = older.older;
        }
        chain.reverse();
        Some((&entry.key, chain))
    }

    /// Adds the chain of a slot. Where `key` has versions already, from an earlier slot, it was
    /// removed from there before it was written anew: then they are not part of its chain, and the
    /// tombstone that came after them lies below the watermark.
    pub fn add_chain(&mut self, key: &SmallBytes, chain: Chain) {
        let handle = self.find_or_create(super::Handle::NONE, key);
        if self.newest(handle).at != Timestamp::ZERO {
            self.break_journal();
            let entry = self.entry_mut(handle);
            let freed = entry.value.take().map_or(0, |value| value.len());
            entry.at = Timestamp::ZERO;
            let older = std::mem::replace(&mut entry.older, NIL);
            self.bytes -= freed;
            self.free_chain(older);
        }
        self.append(handle, chain);
    }

    /// Adds the rest of a chain, which was [begun](Self::add_chain) before. False, and nothing is
    /// added: `key` has no versions.
    pub fn add_rest(&mut self, key: &SmallBytes, rest: Chain) -> bool {
        let begun = self.find(key).filter(|handle| self.newest(*handle).at != Timestamp::ZERO);
        let Some(handle) = begun else { return false };
        self.append(handle, rest);
        true
    }

    fn append(&mut self, handle: Handle, chain: Chain) {
        for (at, value) in chain {
            // Bytes from outside may say anything; a chain of ours ascends.
            if at > self.newest(handle).at {
                self.install(handle, value, at);
            }
        }
    }

    /// The key in a slot with its newest version; `None` where the slot holds none.
    pub fn newest_in(&self, slot: u32) -> Option<(&SmallBytes, Version<'_>)> {
        let entry = self.entries.get(slot as usize)?;
        let is_there = entry.at != Timestamp::ZERO; // Else free, or only locked.
        let version = Version { at: entry.at, value: entry.value.as_ref(), newest: true };
        is_there.then_some((&entry.key, version))
    }

    /// Removes the key in a slot with all of its versions, if it is one that `goes` and nobody
    /// holds its lock.
    pub fn remove_in(&mut self, slot: u32, goes: impl FnOnce(&SmallBytes) -> bool) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        let is_there = entry.at != Timestamp::ZERO && entry.lock.is_free();
        if !is_there || !goes(&entry.key) {
            return;
        }
        let handle = Handle { slot, generation: entry.generation };
        let older = std::mem::replace(&mut entry.older, NIL);
        self.break_journal();
        self.free_chain(older);
        self.remove(handle);
    }

    /// After chains were added: what they replaced is looked at in the order of time again.
    pub fn order_replaced(&mut self) {
        self.replaced.make_contiguous().sort_by_key(|replaced| replaced.at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_that_go_are_removed_with_all_versions_and_others_stay() {
        let mut store = Versions::new(true, 1);
        for (at, key) in ["a", "b", "a", "c", "b"].into_iter().enumerate() {
            let handle = store.find_or_create(Handle::NONE, &key.into());
            store.install(handle, Some("x".into()), Timestamp(at as u64 + 1));
        }
        for slot in 0..store.slots() + 1 {
            store.remove_in(slot, |key| *key != "b".into());
        }
        let left: Vec<_> = store.chains().collect();
        assert_eq!(left, [(&"b".into(), vec![Timestamp(2), Timestamp(5)])]);
        assert_eq!(store.older_versions(), 1);
        let newest: Vec<_> = (0..store.slots()).filter_map(|slot| store.newest_in(slot)).collect();
        assert_eq!(newest.len(), 1);
        assert_eq!(newest[0].1.at, Timestamp(5));
        store.collect(Timestamp::MAX, 100);
        assert_eq!(store.older_versions(), 0);
    }

    proptest! {
        #[test]
        fn chains_carry_a_store_over_while_it_changes(
            before in prop::collection::vec((0..8_u8, any::<bool>()), 0..40),
            during in prop::collection::vec((0..8_u8, any::<bool>(), 0..60_u64), 0..40),
        ) {
            let (mut store, mut at) = (Versions::new(true, 1), 0);
            let mut put = |store: &mut Versions, key: u8, value: bool| {
                at += 1;
                let handle = store.find_or_create(super::super::Handle::NONE, &[key][..].into());
                let value = value.then(|| SmallBytes::from(at.to_string().as_str()));
                store.install(handle, value.clone(), Timestamp(at));
                (key, at, value)
            };
            for (key, value) in before {
                put(&mut store, key, value);
            }
            let (mut other, mut slot, mut log) = (Versions::new(true, 2), 0, Vec::new());
            for (key, value, low) in during {
                if let Some((key, chain)) = store.chain_in(slot) {
                    other.add_chain(key, chain);
                }
                slot += 1;
                store.collect(Timestamp(low), 2);
                log.push(put(&mut store, key, value));
            }
            for slot in slot..store.slots() {
                if let Some((key, chain)) = store.chain_in(slot) {
                    other.add_chain(key, chain);
                }
            }
            for (key, at, value) in log {
                let handle = other.find_or_create(super::super::Handle::NONE, &[key][..].into());
                if Timestamp(at) > other.newest(handle).at {
                    other.install(handle, value, Timestamp(at));
                }
            }
            other.order_replaced();
            // What can still be read is the same in both.
            for (one, two) in [(&store, &other), (&other, &store)] {
                for slot in 0..one.slots() {
                    let Some((key, chain)) = one.chain_in(slot) else { continue };
                    let newest = two.find(key).map(|handle| two.newest(handle).at);
                    let (last, value) = chain.last().expect("a chain has a version");
                    prop_assert!(newest == Some(*last) || value.is_none(), "{key:?}");
                }
            }
            store.collect(Timestamp::MAX, 1000);
            other.collect(Timestamp::MAX, 1000);
            prop_assert_eq!(store.len(), other.len());
            prop_assert_eq!(other.older_versions(), 0);
        }
    }
}
