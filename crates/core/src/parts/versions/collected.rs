//! The versions of collected deletions, for histories.
//!
//! A store that has collected a deletion does not know its version any more, and whoever reads the
//! key then finds version zero. A history must say which deletion was read: recorded as version
//! zero, the read would come before the first write of the key. So a store of a recorded run
//! remembers the versions of the deletions that it collects, in a table that protocols never look
//! at: what runs is what runs without a history.

use std::collections::BTreeMap;

use super::{Handle, Versions};
use crate::bytes::SmallBytes;
use crate::ids::Timestamp;

impl Versions {
    /// Remembers the versions of the deletions that are collected from now on.
    pub fn record_collected(&mut self) {
        self.collected.get_or_insert_with(BTreeMap::new);
    }

    /// The newest version of an entry is a deletion that is about to be collected.
    pub(super) fn note_collected(&mut self, handle: Handle) {
        if self.collected.is_some() {
            let entry = self.entry(handle);
            let (key, at) = (entry.key.clone(), entry.at);
            self.add_collected(&key, at);
        }
    }

    /// A deletion of `key` at `at` was collected, here or before a checkpoint. Nothing is done
    /// where nobody asked for it to be remembered.
    pub fn add_collected(&mut self, key: &SmallBytes, at: Timestamp) {
        let Some(collected) = &mut self.collected else { return };
        let versions = collected.entry(key.clone()).or_default();
        // One that a replay brings back is collected once more.
        if let Err(place) = versions.binary_search(&at) {
            versions.insert(place, at);
        }
    }

    /// The newest collected deletion of `key` at or below `upto`; zero: there is none.
    pub fn collected(&self, key: &SmallBytes, upto: Timestamp) -> Timestamp {
        let Some(collected) = &self.collected else { return Timestamp::ZERO };
        collected.get(key).map_or(Timestamp::ZERO, |versions| newest_upto(versions, upto))
    }

    /// What a history says of a read that found `at` as the newest version of `key`: where that is
    /// zero, the newest collected deletion.
    pub fn recorded(&self, key: &SmallBytes, at: Timestamp) -> Timestamp {
        if at == Timestamp::ZERO { self.collected(key, Timestamp::MAX) } else { at }
    }

    /// The keys of `[lo, hi)` that have collected deletions at or below `upto`, with the newest of
    /// these.
    pub fn collected_in<'a>(
        &'a self,
        lo: &'a SmallBytes,
        hi: Option<&'a SmallBytes>,
        upto: Timestamp,
    ) -> impl Iterator<Item = (&'a SmallBytes, Timestamp)> {
        let from = self.collected.iter().flat_map(move |all| all.range::<SmallBytes, _>(lo..));
        let inside = from.take_while(move |(key, _)| hi.is_none_or(|hi| *key < hi));
        let newest = inside.map(move |(key, versions)| (key, newest_upto(versions, upto)));
        newest.filter(|(_, at)| *at != Timestamp::ZERO)
    }

    /// All collected deletions that are remembered.
    pub fn all_collected(&self) -> impl Iterator<Item = (&SmallBytes, &[Timestamp])> {
        self.collected.iter().flatten().map(|(key, versions)| (key, &versions[..]))
    }
}

fn newest_upto(versions: &[Timestamp], upto: Timestamp) -> Timestamp {
    let below = versions.partition_point(|at| *at <= upto);
    below.checked_sub(1).map_or(Timestamp::ZERO, |newest| versions[newest])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(records: bool) -> Versions {
        let mut store = Versions::new(true, 1);
        if records {
            store.record_collected();
        }
        for at in [1, 3, 5] {
            let handle = store.find_or_create(Handle::NONE, &"k".into());
            store.install(handle, Some("x".into()), Timestamp(at));
            store.install(handle, None, Timestamp(at + 1));
            store.collect(Timestamp(at + 1), 10);
            assert!(store.is_empty(), "the tombstone is collected");
        }
        store
    }

    #[test]
    fn the_newest_deletion_at_or_below_the_snapshot_is_found() {
        let store = deleted(true);
        let at = |upto| store.collected(&"k".into(), Timestamp(upto)).0;
        assert_eq!([1, 2, 3, 4, 5, 6, 9].map(at), [0, 2, 2, 4, 4, 6, 6]);
        assert_eq!(store.collected(&"other".into(), Timestamp::MAX), Timestamp::ZERO);
        let inside = |lo: &str, hi: Option<&str>, upto| {
            let (lo, hi) = (lo.into(), hi.map(SmallBytes::from));
            store.collected_in(&lo, hi.as_ref(), Timestamp(upto)).count()
        };
        assert_eq!(
            (inside("", None, 9), inside("k", None, 1), inside("", Some("k"), 9)),
            (1, 0, 0)
        );
    }

    #[test]
    fn nothing_is_remembered_unless_it_is_asked_for() {
        assert_eq!(deleted(false).all_collected().count(), 0);
    }
}
