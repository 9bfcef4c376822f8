//! Something at some places of an object's order.
//!
//! Mostly there are few, and they come and go in order: a vector holds them, whose memory serves
//! again and again. Where many are open, or are missed and come back one member's after the other,
//! a tree does.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

/// So many are held in a vector at most.
const FEW: usize = 32;

/// Values by place.
///
/// Invariants: places ascend, and are all in the one or all in the other; which one means nothing.
#[derive(Clone)]
pub(in crate::m2paxos) struct PlaceMap<V> {
    few: Vec<(u64, V)>,
    many: BTreeMap<u64, V>,
}

impl<V> PlaceMap<V> {
    pub const fn new() -> PlaceMap<V> {
        PlaceMap { few: Vec::new(), many: BTreeMap::new() }
    }

    /// Where a place is among few, or would be.
    fn find(&self, place: u64) -> Result<usize, usize> {
        self.few.binary_search_by_key(&place, |it| it.0)
    }

    pub fn get(&self, place: u64) -> Option<&V> {
        match self.find(place) {
            Ok(at) => Some(&self.few[at].1),
            Err(_) => self.many.get(&place),
        }
    }

    pub fn contains(&self, place: u64) -> bool {
        self.get(place).is_some()
    }

    /// What is at a place, or what is put there.
    pub fn or_insert_with(&mut self, place: u64, new: impl FnOnce() -> V) -> &mut V {
        if self.few.len() == FEW && self.find(place).is_err() {
            self.many.extend(self.few.drain(..));
        }
        if !self.many.is_empty() {
            return self.many.entry(place).or_insert_with(new);
        }
        let at = self.find(place).unwrap_or_else(|at| {
            self.few.insert(at, (place, new()));
            at
        });
        &mut self.few[at].1
    }

    pub fn insert(&mut self, place: u64, value: V) {
        let mut value = Some(value);
        let known = self.or_insert_with(place, || value.take().expect("it is put there once"));
        if let Some(value) = value {
            *known = value;
        }
    }

    pub fn remove(&mut self, place: u64) -> Option<V> {
        match self.find(place) {
            Ok(at) => Some(self.few.remove(at).1),
            Err(_) => self.many.remove(&place),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &V)> {
        self.from(0)
    }

    /// Those from a place on.
    pub fn from(&self, place: u64) -> impl DoubleEndedIterator<Item = (u64, &V)> {
        let few = &self.few[self.find(place).unwrap_or_else(|at| at)..];
        let few = few.iter().map(|(place, value)| (*place, value));
        few.chain(self.many.range(place..).map(|(place, value)| (*place, value)))
    }

    /// Those before a place, the last one first.
    pub fn before(&self, place: u64) -> impl Iterator<Item = (u64, &V)> {
        let few = &self.few[..self.find(place).unwrap_or_else(|at| at)];
        let few = few.iter().map(|(place, value)| (*place, value));
        few.chain(self.many.range(..place).map(|(place, value)| (*place, value))).rev()
    }

    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }
}

impl<V: PartialEq> PartialEq for PlaceMap<V> {
    fn eq(&self, other: &PlaceMap<V>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for PlaceMap<V> {}

impl<V: Hash> Hash for PlaceMap<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.few.len() + self.many.len());
        self.iter().for_each(|it| it.hash(state));
    }
}

impl<V: fmt::Debug> fmt::Debug for PlaceMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// It is what a map by place is.
        #[test]
        fn places_are_found_as_in_a_map(
            steps in proptest::collection::vec((0_u64..80, 0_u8..4), 0..400),
        ) {
            let (mut places, mut map) = (PlaceMap::new(), BTreeMap::new());
            for (number, (place, what)) in (0..).zip(steps) {
                match what {
                    0 => prop_assert_eq!(places.remove(place), map.remove(&place)),
                    1 => {
                        places.insert(place, number);
                        map.insert(place, number);
                    }
                    _ => {
                        let known = *places.or_insert_with(place, || number);
                        prop_assert_eq!(known, *map.entry(place).or_insert(number));
                    }
                }
                prop_assert_eq!(places.get(place), map.get(&place));
                prop_assert_eq!(places.contains(place + 1), map.contains_key(&(place + 1)));
                let of = |(place, number): (&u64, &i32)| (*place, *number);
                let from: Vec<_> = map.range(place..).map(of).collect();
                let before: Vec<_> = map.range(..place).rev().map(of).collect();
                let all: Vec<_> = map.iter().map(of).collect();
                let found = |(place, number): (u64, &i32)| (place, *number);
                prop_assert_eq!(places.from(place).map(found).collect::<Vec<_>>(), from);
                prop_assert_eq!(places.before(place).map(found).collect::<Vec<_>>(), before);
                prop_assert_eq!(places.iter().map(found).collect::<Vec<_>>(), all);
                prop_assert_eq!(places.is_empty(), map.is_empty());
                prop_assert!(places.few.is_empty() || places.many.is_empty());
            }
            let mut again = PlaceMap::new();
            map.iter().rev().for_each(|(place, number)| again.insert(*place, *number));
            prop_assert_eq!(&again, &places);
        }
    }
}
