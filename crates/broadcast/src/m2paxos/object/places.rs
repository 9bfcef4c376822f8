//! Something at some places of an object's order.
//!
//! Places come in order, nearly all without gaps, and go in order: what stands at them is a queue,
//! whose memory serves again and again.

use std::collections::VecDeque;

/// Values by place.
///
/// Invariants: places ascend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::m2paxos) struct PlaceMap<V> {
    values: VecDeque<(u64, V)>,
}

impl<V> PlaceMap<V> {
    pub const fn new() -> PlaceMap<V> {
        PlaceMap { values: VecDeque::new() }
    }

    /// Where a place is, or would be.
    fn find(&self, place: u64) -> Result<usize, usize> {
        let Some((first, _)) = self.values.front() else { return Err(0) };
        let Some(distance) = place.checked_sub(*first) else { return Err(0) };
        let count = self.values.len();
        // Without gaps it is there.
        let guess = usize::try_from(distance).unwrap_or(usize::MAX).min(count - 1);
        match self.values[guess].0 {
            found if found == place => Ok(guess),
            found if found < place => Err(count), // The last one: gaps only put others further on.
            _ => self.values.binary_search_by_key(&place, |it| it.0),
        }
    }

    /// How many places there are before one.
    fn count_before(&self, place: u64) -> usize {
        self.find(place).unwrap_or_else(|at| at)
    }

    pub fn get(&self, place: u64) -> Option<&V> {
        self.find(place).ok().map(|at| &self.values[at].1)
    }

    pub fn contains(&self, place: u64) -> bool {
        self.find(place).is_ok()
    }

    /// What is at a place, or what is put there.
    pub fn or_insert_with(&mut self, place: u64, new: impl FnOnce() -> V) -> &mut V {
        let at = self.find(place).unwrap_or_else(|at| {
            self.values.insert(at, (place, new()));
            at
        });
        &mut self.values[at].1
    }

    pub fn insert(&mut self, place: u64, value: V) {
        match self.find(place) {
            Ok(at) => self.values[at].1 = value,
            Err(at) => self.values.insert(at, (place, value)),
        }
    }

    pub fn remove(&mut self, place: u64) -> Option<V> {
        let at = self.find(place).ok()?;
        self.values.remove(at).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &V)> {
        self.values.iter().map(|(place, value)| (*place, value))
    }

    /// Those from a place on.
    pub fn from(&self, place: u64) -> impl DoubleEndedIterator<Item = (u64, &V)> {
        self.values.range(self.count_before(place)..).map(|(place, value)| (*place, value))
    }

    /// Those before a place, the last one first.
    pub fn before(&self, place: u64) -> impl Iterator<Item = (u64, &V)> {
        self.values.range(..self.count_before(place)).rev().map(|(place, value)| (*place, value))
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
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
            steps in proptest::collection::vec((0_u64..40, 0_u8..4), 0..200),
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
            }
        }
    }
}
