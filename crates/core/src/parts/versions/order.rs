//! The entries of a store in the order of their keys.
//!
//! An ordered map would keep each key a second time, which for short keys is half of what an entry
//! costs. So only the entries' slots are kept, in chunks of a few hundred. A chunk knows a key that
//! all of its keys are at or above, so that finding the chunk stays within one list; and of each
//! key the eight bytes after those that all keys of the chunk begin with, so that keys themselves,
//! each of which is a walk to memory, are looked at only where these are the same.

use crate::bytes::SmallBytes;

/// A chunk of so many is split when it is to hold one more.
const CHUNK_MAX: usize = 256;
/// Neighbours are merged when they have no more than this together.
const MERGED_MAX: usize = CHUNK_MAX / 2;

/// Slots in the order of their keys. Every call is given the same `key_of`: the key of a slot.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyOrder {
    chunks: Vec<Chunk>,
}

#[derive(Clone, Debug)]
struct Chunk {
    /// No key here is below it, and all keys of earlier chunks are.
    least: SmallBytes,
    /// All keys here begin with it.
    prefix: SmallBytes,
    slots: Vec<u32>,
    /// Of each key what follows the prefix, as a number.
    hints: Vec<u64>,
}

/// Somewhere between two slots: a chunk, and a place in it.
type Place = (usize, usize);

/// The first eight bytes as a number that is ordered as they are; what is missing is zero.
fn hint(rest: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let count = rest.len().min(8);
    bytes[..count].copy_from_slice(&rest[..count]);
    u64::from_be_bytes(bytes)
}

impl Chunk {
    /// A chunk of slots in their order; at least one.
    fn of<'a>(slots: Vec<u32>, key_of: &impl Fn(u32) -> &'a SmallBytes) -> Chunk {
        let least = key_of(slots[0]).clone();
        let (prefix, hints) = (SmallBytes::EMPTY, Vec::new());
        let mut chunk = Chunk { least, prefix, slots, hints };
        let last = key_of(chunk.slots[chunk.slots.len() - 1]);
        chunk.begin_with(&chunk.least.clone(), last, key_of);
        chunk
    }

    /// All keys begin as these two do.
    fn begin_with<'a>(
        &mut self,
        one: &SmallBytes,
        other: &SmallBytes,
        key_of: &impl Fn(u32) -> &'a SmallBytes,
    ) {
        let pairs = one.as_slice().iter().zip(other.as_slice());
        let skipped = pairs.take_while(|(x, y)| x == y).count();
        self.prefix = SmallBytes::new(&one.as_slice()[..skipped]);
        let hint_of = |slot: &u32| hint(&key_of(*slot).as_slice()[skipped..]);
        self.hints = self.slots.iter().map(hint_of).collect();
    }

    /// Where `key` is, or would be.
    fn place<'a>(&self, key: &SmallBytes, key_of: &impl Fn(u32) -> &'a SmallBytes) -> usize {
        let Some(rest) = key.as_slice().strip_prefix(self.prefix.as_slice()) else {
            return if *key < self.prefix { 0 } else { self.slots.len() };
        };
        let wanted = hint(rest);
        let from = self.hints.partition_point(|hint| *hint < wanted);
        let alike = self.hints[from..].partition_point(|hint| *hint == wanted);
        let alike = &self.slots[from..from + alike];
        from + alike.partition_point(|&slot| key_of(slot) < key)
    }

    /// Adds a slot at its place.
    fn insert<'a>(&mut self, place: usize, slot: u32, key_of: &impl Fn(u32) -> &'a SmallBytes) {
        let key = key_of(slot);
        if !key.as_slice().starts_with(self.prefix.as_slice()) {
            self.begin_with(&self.prefix.clone(), key, key_of);
        }
        if *key < self.least {
            self.least = key.clone();
        }
        self.slots.insert(place, slot);
        self.hints.insert(place, hint(&key.as_slice()[self.prefix.len()..]));
    }
}

impl KeyOrder {
    /// All of these slots, which come in no order.
    pub fn of_all<'a>(mut slots: Vec<u32>, key_of: impl Fn(u32) -> &'a SmallBytes) -> KeyOrder {
        slots.sort_unstable_by_key(|&slot| key_of(slot));
        // Room is left in each chunk for what comes later.
        let chunks = slots.chunks(CHUNK_MAX / 2).map(|some| Chunk::of(some.to_vec(), &key_of));
        KeyOrder { chunks: chunks.collect() }
    }

    /// Where `key` is, or would be.
    fn place<'a>(&self, key: &SmallBytes, key_of: &impl Fn(u32) -> &'a SmallBytes) -> Place {
        let after = self.chunks.partition_point(|chunk| chunk.least <= *key);
        let at = after.saturating_sub(1);
        (at, self.chunks.get(at).map_or(0, |chunk| chunk.place(key, key_of)))
    }

    /// Adds a slot whose key is not there yet.
    pub fn insert<'a>(&mut self, slot: u32, key_of: impl Fn(u32) -> &'a SmallBytes) {
        let (mut at, mut place) = self.place(key_of(slot), &key_of);
        let is_end = at + 1 >= self.chunks.len() && (self.chunks.is_empty() || place == CHUNK_MAX);
        if is_end {
            // Keys that come in order fill their chunks.
            self.chunks.push(Chunk::of(vec![slot], &key_of));
            return;
        }
        if self.chunks[at].slots.len() == CHUNK_MAX {
            self.split(at, &key_of);
            if place > CHUNK_MAX / 2 {
                (at, place) = (at + 1, place - CHUNK_MAX / 2);
            }
        }
        self.chunks[at].insert(place, slot, &key_of);
    }

    fn split<'a>(&mut self, at: usize, key_of: &impl Fn(u32) -> &'a SmallBytes) {
        let chunk = &mut self.chunks[at];
        let right = Chunk::of(chunk.slots.split_off(CHUNK_MAX / 2), key_of);
        chunk.slots.shrink_to_fit();
        let (first, last) = (key_of(chunk.slots[0]), key_of(chunk.slots[CHUNK_MAX / 2 - 1]));
        chunk.begin_with(first, last, key_of);
        self.chunks.insert(at + 1, right);
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.slots.len()).sum()
    }

    /// Removes the slot of `key`, which must be there.
    pub fn remove<'a>(&mut self, key: &SmallBytes, key_of: impl Fn(u32) -> &'a SmallBytes) {
        let (at, place) = self.place(key, &key_of);
        let chunk = &mut self.chunks[at];
        chunk.slots.remove(place);
        chunk.hints.remove(place);
        if chunk.slots.is_empty() {
            self.chunks.remove(at);
        } else if let Some(next) = self.chunks.get(at + 1)
            && self.chunks[at].slots.len() + next.slots.len() <= MERGED_MAX
        {
            let next = self.chunks.remove(at + 1);
            let chunk = &mut self.chunks[at];
            chunk.slots.extend(next.slots);
            chunk.begin_with(&chunk.prefix.clone(), &next.prefix, &key_of);
        }
    }

    /// The slots of the keys in `[lo, hi)`, in their order; `hi` `None` is open.
    pub fn range<'a, 'b, F: Fn(u32) -> &'b SmallBytes>(
        &'a self,
        lo: &SmallBytes,
        hi: Option<&SmallBytes>,
        key_of: F,
    ) -> impl DoubleEndedIterator<Item = u32> + use<'a, 'b, F> {
        let start = self.place(lo, &key_of);
        let end = hi.map_or((self.chunks.len(), 0), |hi| self.place(hi, &key_of));
        let chunks = &self.chunks[start.0..self.chunks.len().min(end.0 + 1)];
        chunks.iter().enumerate().flat_map(move |(number, chunk)| {
            let at = start.0 + number;
            let from = if at == start.0 { start.1 } else { 0 };
            let to = if at == end.0 { end.1 } else { chunk.slots.len() };
            chunk.slots[from.min(to)..to].iter().copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Keys of several lengths, with beginnings in common.
    fn key(number: u16) -> SmallBytes {
        let half = number / 2;
        let mut key = vec![u8::MAX; usize::from(half >> 12) * 2];
        key.extend(half.to_be_bytes());
        key.extend((number % 2 == 1).then_some(0));
        SmallBytes::from(key)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn behaves_as_an_ordered_map(
            steps in prop::collection::vec(
                (0..4_u8, any::<u16>(), 1..400_u16, any::<bool>()), 1..25,
            ),
            bounds in prop::collection::vec((any::<u16>(), any::<Option<u16>>()), 8),
        ) {
            let keys: Vec<SmallBytes> = (0..=u16::MAX).map(key).collect();
            let key_of = |slot: u32| &keys[slot as usize];
            let (mut order, mut model) = (KeyOrder::default(), BTreeMap::new());
            for (kind, from, count, ascending) in steps {
                for number in 0..count {
                    let step = if ascending { number } else { number.wrapping_mul(40_503) };
                    let number = from.wrapping_add(step);
                    let is_new = model.insert(key(number), u32::from(number)).is_none();
                    if kind > 0 && is_new {
                        order.insert(number.into(), key_of);
                    } else if is_new {
                        model.remove(&key(number));
                    } else if kind == 0 {
                        model.remove(&key(number));
                        order.remove(&key(number), key_of);
                    }
                }
                let sizes: Vec<usize> = order.chunks.iter().map(|it| it.slots.len()).collect();
                prop_assert!(sizes.iter().all(|size| (1..=CHUNK_MAX).contains(size)));
            }
            let slots = model.values().rev().copied().collect();
            let all = KeyOrder::of_all(slots, key_of);
            prop_assert!(all.range(&key(0), None, key_of).eq(model.values().copied()));
            let bounds = bounds.into_iter().chain([(0, None)]);
            for (lo, hi) in bounds.filter(|(lo, hi)| hi.is_none_or(|hi| *lo <= hi)) {
                let (lo, hi) = (key(lo), hi.map(key));
                let inside = |key: &SmallBytes| *key >= lo && hi.as_ref().is_none_or(|hi| key < hi);
                let wanted = model.iter().filter(|(key, _)| inside(key)).map(|(_, slot)| *slot);
                let wanted: Vec<u32> = wanted.collect();
                let found: Vec<u32> = order.range(&lo, hi.as_ref(), key_of).collect();
                prop_assert_eq!(&found, &wanted);
                let mut backwards: Vec<u32> = order.range(&lo, hi.as_ref(), key_of).rev().collect();
                backwards.reverse();
                prop_assert_eq!(backwards, wanted);
            }
        }
    }
}
