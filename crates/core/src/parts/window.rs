//! A map from numbers that are given out in order: operations, requests, commits under way.
//!
//! Such numbers come and go nearly in the order in which they were given, so a ring that begins at
//! the oldest finds each by its distance from there, and needs no memory once it has its size. A
//! number that stays much longer than the others would stretch the ring, so past a span it is
//! moved to an ordered map beside it; everything in that map is older than everything in the ring.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// The ring is never longer than this.
const SPAN_MAX: usize = 1024;

/// Values `T` by numbers, which are mostly inserted in ascending order.
///
/// Invariants: `len` counts the values, the ring begins with one and is never longer than its
/// span, and every straggler is older than all in the ring.
#[derive(Clone)]
pub struct Window<T> {
    /// The number of the ring's first place.
    base: u64,
    ring: VecDeque<Option<T>>,
    stragglers: BTreeMap<u64, T>,
    len: usize,
}

impl<T> Default for Window<T> {
    fn default() -> Window<T> {
        Window { base: 0, ring: VecDeque::new(), stragglers: BTreeMap::new(), len: 0 }
    }
}

impl<T: fmt::Debug> fmt::Debug for Window<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}

impl<T> Window<T> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn place(&self, number: u64) -> Option<usize> {
        let place = number.checked_sub(self.base)?;
        (place < self.ring.len() as u64).then_some(place as usize)
    }

    /// The value of `number`.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        match self.place(number) {
            Some(place) => self.ring[place].as_ref(),
            None => self.stragglers.get(&number),
        }
    }

    /// The value of `number`, to change it.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        match self.place(number) {
            Some(place) => self.ring[place].as_mut(),
            None => self.stragglers.get_mut(&number),
        }
    }

    /// Gives `number` a value, and returns the one that it had.
    pub fn insert(&mut self, number: u64, value: T) -> Option<T> {
        let before = self.put(number, value);
        self.len += usize::from(before.is_none());
        before
    }

    fn put(&mut self, number: u64, value: T) -> Option<T> {
        if self.ring.is_empty() {
            if self.stragglers.last_key_value().is_some_and(|(last, _)| *last >= number) {
                return self.stragglers.insert(number, value);
            }
            self.base = number;
        }
        if number < self.base {
            return self.stragglers.insert(number, value);
        }
        self.reserve_for(number);
        let place = (number - self.base) as usize;
        if place >= self.ring.len() {
            self.ring.resize_with(place, || None);
            self.ring.push_back(Some(value));
            return None;
        }
        self.ring[place].replace(value)
    }

    /// Moves the oldest values out of the ring, until it need not be too long to hold `number`.
    fn reserve_for(&mut self, number: u64) {
        while !self.ring.is_empty() && number - self.base >= SPAN_MAX as u64 {
            if let Some(Some(value)) = self.ring.pop_front() {
                self.stragglers.insert(self.base, value);
            }
            self.base += 1;
            self.trim();
        }
        if self.ring.is_empty() {
            self.base = number;
        }
    }

    /// Drops the empty places at the front of the ring.
    fn trim(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.base += 1;
        }
    }

    /// Takes out the value of `number`.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let removed = match self.place(number) {
            Some(place) => self.ring[place].take(),
            None => self.stragglers.remove(&number),
        };
        self.len -= usize::from(removed.is_some());
        self.trim();
        removed
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let len = self.stragglers.len() + self.ring.iter().flatten().count();
        assert_eq!(self.len, len, "how many values a window has");
        assert!(self.ring.len() <= SPAN_MAX, "a ring of {} places", self.ring.len());
        assert!(!matches!(self.ring.front(), Some(None)), "a ring that begins with nothing");
        let last = self.stragglers.last_key_value().map(|(number, _)| *number);
        let is_older = self.ring.is_empty() || last.is_none_or(|last| last < self.base);
        assert!(is_older, "straggler {last:?} is not older than {}", self.base);
    }

    /// The least number that has a value.
    pub fn first(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let oldest = self.stragglers.first_key_value().map(|(number, _)| *number);
        // The front of the ring is never empty.
        Some(oldest.unwrap_or(self.base))
    }

    /// All, by ascending number.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let ring = (self.base..).zip(&self.ring);
        let recent = ring.filter_map(|(number, value)| Some((number, value.as_ref()?)));
        self.stragglers.iter().map(|(number, value)| (*number, value)).chain(recent)
    }

    /// All of it, by ascending number.
    pub fn into_entries(self) -> impl Iterator<Item = (u64, T)> {
        let ring = (self.base..).zip(self.ring);
        let recent = ring.filter_map(|(number, value)| Some((number, value?)));
        self.stragglers.into_iter().chain(recent)
    }

    /// All values, by ascending number, to change them.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.stragglers.values_mut().chain(self.ring.iter_mut().flatten())
    }

    /// Keeps what `wanted` says yes to.
    pub fn retain(&mut self, mut wanted: impl FnMut(&T) -> bool) {
        self.stragglers.retain(|_, value| wanted(value));
        for place in &mut self.ring {
            if place.as_ref().is_some_and(|value| !wanted(value)) {
                *place = None;
            }
        }
        self.trim();
        self.len = self.stragglers.len() + self.ring.iter().flatten().count();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Next { skipped: u64 },
        Again { back: u64 },
        Remove { back: u64 },
        RetainEven,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => prop_oneof![8 => 0u64..3, 1 => 500u64..3_000]
                .prop_map(|skipped| Step::Next { skipped }),
            1 => (0u64..40).prop_map(|back| Step::Again { back }),
            6 => (0u64..40).prop_map(|back| Step::Remove { back }),
            1 => Just(Step::RetainEven),
        ]
    }

    proptest! {
        #[test]
        fn behaves_as_an_ordered_map(steps in prop::collection::vec(step(), 0..200)) {
            let (mut window, mut model) = (Window::default(), BTreeMap::new());
            let mut next = 1 << 40;
            for (value, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Next { skipped } => {
                        next += 1 + skipped;
                        prop_assert_eq!(window.insert(next, value), model.insert(next, value));
                    }
                    Step::Again { back } => {
                        let number = next - back;
                        prop_assert_eq!(window.insert(number, value), model.insert(number, value));
                    }
                    Step::Remove { back } => {
                        prop_assert_eq!(window.remove(next - back), model.remove(&(next - back)));
                    }
                    Step::RetainEven => {
                        window.retain(|value| value % 2 == 0);
                        model.retain(|_, value| *value % 2 == 0);
                    }
                }
                prop_assert_eq!(window.len(), model.len());
                prop_assert_eq!(window.first(), model.keys().next().copied());
                let pairs: Vec<_> = model.iter().map(|(number, value)| (*number, value)).collect();
                prop_assert_eq!(&window.iter().collect::<Vec<_>>(), &pairs);
                let entries = window.clone().into_entries();
                prop_assert!(entries.eq(model.clone()));
                for number in next - 50..next + 2 {
                    prop_assert_eq!(window.get(number), model.get(&number));
                    prop_assert_eq!(window.get_mut(number), model.get_mut(&number));
                }
                prop_assert!(window.values_mut().eq(model.values_mut()));
                prop_assert!(window.ring.len() <= SPAN_MAX);
            }
            prop_assert_eq!(format!("{window:?}"), format!("{model:?}"));
        }
    }
}
