//! What a store promises of itself, checked over all of it.

use super::{KeyEntry, NIL, Versions};
use crate::bytes::SmallBytes;
use crate::ids::Timestamp;

impl Versions {
    /// Checks the invariants of the store; this looks at every key and version.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let used = self.entries.len() - self.free_entries.len();
        assert_eq!(self.index.len(), used, "entries in the index");
        let ordered = self.order.get().map_or(used, |order| order.len());
        assert_eq!(ordered, used, "entries in the order of keys");
        let (mut bytes, mut older_bytes, mut older) = (0, 0, 0);
        for &slot in &self.index {
            let entry = &self.entries[slot as usize];
            let chain = self.assert_chain(entry);
            older += chain.0;
            older_bytes += chain.1;
            bytes += entry.key.len() + entry.value.as_ref().map_or(0, SmallBytes::len);
        }
        assert_eq!(self.older.len() - self.free_older.len(), older, "versions that were replaced");
        assert_eq!(self.older_bytes, older_bytes, "bytes of what was replaced");
        assert_eq!(self.bytes, bytes + older_bytes, "bytes of all");
    }

    /// How many keys are locked.
    pub fn locked(&self) -> usize {
        let is_locked = |slot: &&u32| !self.entries[**slot as usize].lock.is_free();
        self.index.iter().filter(is_locked).count()
    }

    /// The versions of a key descend; how many are not the newest, and their bytes.
    fn assert_chain(&self, entry: &KeyEntry) -> (usize, usize) {
        let (mut above, mut next) = (entry.at, entry.older);
        let (mut count, mut bytes) = (0, 0);
        while next != NIL {
            let older = &self.older[next as usize];
            assert!(older.at < above, "{:?} at {} follows {above}", entry.key, older.at);
            assert!(older.at > Timestamp::ZERO, "{:?} has a version of nobody", entry.key);
            (above, next) = (older.at, older.older);
            count += 1;
            bytes += older.value.as_ref().map_or(0, SmallBytes::len);
        }
        (count, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Handle;
    use super::*;

    fn written(times: u64) -> Versions {
        let mut store = Versions::new(true, 1);
        let handle = store.find_or_create(Handle::NONE, &"key".into());
        (1..=times).for_each(|at| store.install(handle, Some("x".into()), Timestamp(at)));
        store.assert_invariants();
        store
    }

    #[test]
    #[should_panic(expected = "bytes of all")]
    fn bytes_that_nobody_has_are_noticed() {
        Versions { bytes: 9, ..written(1) }.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "follows")]
    fn versions_that_do_not_descend_are_noticed() {
        let mut store = written(2);
        store.older[0].at = Timestamp(7);
        store.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "versions that were replaced")]
    fn a_version_in_no_chain_is_noticed() {
        let mut store = written(3);
        store.entries[0].older = NIL;
        store.assert_invariants();
    }
}
