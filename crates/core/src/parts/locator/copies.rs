//! ValueCopies of values that live elsewhere, so that they need not be sent again.
//!
//! A copy is nothing that may be shown by itself: whoever has the value says whether this version
//! is still the one to be read, and then its bytes are not sent.

use std::collections::BTreeMap;

use super::Movable;
use crate::bytes::SmallBytes;
use crate::ids::Timestamp;

/// Smaller values are not worth what is said of their copies.
pub const COPY_BYTES_LEAST: usize = 64;
/// About what a copy takes besides its value.
const ENTRY_BYTES: usize = 128;

/// A value, and the version that it is of.
#[derive(Clone, Debug)]
struct Copied {
    version: Timestamp,
    value: SmallBytes,
    /// When it was last used; no two have the same.
    used: u64,
}

/// Values by their names, as many as there is room for: those that were used last.
///
/// Invariants: each that is kept is listed by its last use, once; what they take is counted, and is
/// no more than allowed.
#[derive(Clone, Debug)]
pub struct ValueCopies<K: Movable> {
    copies: BTreeMap<K, Copied>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
    bytes: usize,
    most: usize,
}

impl<K: Movable> ValueCopies<K> {
    /// No copies, and room for so many bytes of them.
    pub fn new(most: usize) -> ValueCopies<K> {
        let (copies, by_use) = (BTreeMap::new(), BTreeMap::new());
        ValueCopies { copies, by_use, uses: 0, bytes: 0, most }
    }

    /// The version that there is a copy of.
    pub fn version(&self, key: &K) -> Option<Timestamp> {
        self.copies.get(key).map(|copy| copy.version)
    }

    /// The copy of a version, which counts as used.
    pub fn value(&mut self, key: &K, version: Timestamp) -> Option<SmallBytes> {
        let copy = self.copies.get_mut(key).filter(|copy| copy.version == version)?;
        self.uses += 1;
        self.by_use.remove(&copy.used);
        copy.used = self.uses;
        let value = copy.value.clone();
        self.by_use.insert(self.uses, key.clone());
        Some(value)
    }

    /// A version was read; what was used longest ago makes room. Small values are not kept, nor are
    /// those that would take more than half of the room.
    pub fn keep(&mut self, key: K, version: Timestamp, value: &SmallBytes) {
        self.forget(&key);
        let bytes = value.len() + ENTRY_BYTES;
        if value.len() < COPY_BYTES_LEAST || bytes > self.most / 2 {
            return;
        }
        self.uses += 1;
        self.bytes += bytes;
        self.by_use.insert(self.uses, key.clone());
        let copy = Copied { version, value: value.clone(), used: self.uses };
        self.copies.insert(key, copy);
        while self.bytes > self.most {
            let Some((_, oldest)) = self.by_use.first_key_value() else { break };
            let oldest = oldest.clone();
            self.forget(&oldest);
        }
    }

    /// Of this there is no copy any more.
    pub fn forget(&mut self, key: &K) {
        if let Some(copy) = self.copies.remove(key) {
            self.by_use.remove(&copy.used);
            self.bytes -= copy.value.len() + ENTRY_BYTES;
        }
    }

    /// Panics where an invariant does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.bytes <= self.most, "copies of {} bytes: {} allowed", self.bytes, self.most);
        assert_eq!(self.copies.len(), self.by_use.len(), "copies, and those listed");
        let bytes = self.copies.values().map(|copy| copy.value.len() + ENTRY_BYTES);
        assert_eq!(bytes.sum::<usize>(), self.bytes, "what copies take");
        for (used, key) in &self.by_use {
            let is_listed = self.copies.get(key).is_some_and(|copy| copy.used == *used);
            assert!(is_listed, "{key:?} is listed by another use");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(length: usize) -> SmallBytes {
        SmallBytes::new(&vec![7; length])
    }

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let mut copies = ValueCopies::new(1_000);
        for key in 0..4_u16 {
            copies.keep(key, Timestamp(9), &value(200));
            copies.assert_invariants();
        }
        assert_eq!(copies.version(&0), None);
        assert_eq!(copies.value(&1, Timestamp(9)), Some(value(200)));
        copies.keep(4, Timestamp(9), &value(200));
        copies.assert_invariants();
        assert_eq!((copies.version(&1), copies.version(&2)), (Some(Timestamp(9)), None));
    }

    #[test]
    fn a_copy_is_of_one_version() {
        let mut copies = ValueCopies::new(1_000);
        copies.keep(1_u16, Timestamp(9), &value(100));
        assert_eq!(copies.value(&1, Timestamp(8)), None);
        copies.keep(1, Timestamp(10), &value(101));
        copies.assert_invariants();
        assert_eq!(copies.value(&1, Timestamp(10)), Some(value(101)));
        // Small ones, and those that would push out all others, are not kept.
        copies.keep(1, Timestamp(11), &value(COPY_BYTES_LEAST - 1));
        copies.keep(2, Timestamp(11), &value(900));
        copies.assert_invariants();
        assert_eq!((copies.version(&1), copies.version(&2)), (None, None));
    }
}
