//! What is in a list: looked for one by one where the list is short, as it mostly is, and by halves
//! where it is long. Whoever looks for as many as there are does not compare each with each.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// As many are compared one by one: that is faster than sorting them.
pub const FEW: usize = 32;

/// A list in which items are looked for.
#[derive(Debug)]
pub struct Listed<'a, T> {
    list: &'a [T],
    /// Made when somebody looks for the first time.
    sorted: OnceCell<Vec<&'a T>>,
}

impl<'a, T: Ord> Listed<'a, T> {
    /// The list.
    pub fn new(list: &'a [T]) -> Listed<'a, T> {
        Listed { list, sorted: OnceCell::new() }
    }

    /// Whether some item is what is wanted, by either test: `order` says how an item stands to what
    /// is wanted, in the order of items.
    #[inline]
    pub fn contains(&self, is: impl Fn(&T) -> bool, order: impl Fn(&T) -> Ordering) -> bool {
        if self.list.len() <= FEW {
            return self.list.iter().any(is);
        }
        let sorted = self.sorted.get_or_init(|| self.sort());
        sorted.binary_search_by(|item| order(item)).is_ok()
    }

    #[cold]
    fn sort(&self) -> Vec<&'a T> {
        let mut sorted: Vec<&T> = self.list.iter().collect();
        sorted.sort_unstable();
        sorted
    }
}

/// Each of these once, where it comes first.
pub fn each_once<K: Copy + Ord>(all: impl Iterator<Item = K>) -> impl Iterator<Item = K> {
    let mut met = BTreeSet::new();
    all.filter(move |one| met.insert(*one))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A number, and how many comparisons there were.
    #[derive(Clone, Copy, Debug)]
    struct Counted<'a>(u32, &'a Cell<u64>);

    impl Ord for Counted<'_> {
        fn cmp(&self, other: &Self) -> Ordering {
            self.1.set(self.1.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }

    impl Eq for Counted<'_> {}

    #[test]
    fn what_is_there_is_found_and_long_lists_are_not_compared_each_with_each() {
        for length in [0, 1, FEW as u32, FEW as u32 + 1, 100_000] {
            let comparisons = Cell::new(0);
            // Even numbers, in no order.
            let even = |it: u32| Counted(2 * (it * 7 % length), &comparisons);
            let list: Vec<_> = (0..length).map(even).collect();
            let listed = Listed::new(&list);
            for number in 0..2 * length + 2 {
                let wanted = Counted(number, &comparisons);
                let found = listed.contains(|it| *it == wanted, |it| it.cmp(&wanted));
                assert_eq!(found, number < 2 * length && number % 2 == 0, "{number} of {length}");
            }
            let most = u64::from(2 * length + 2) * 64;
            assert!(comparisons.get() <= most, "{} of {length}", comparisons.get());
        }
    }

    #[test]
    fn keys_that_are_asked_for_more_than_once_are_found_without_comparing_each_with_each() {
        let scattered = |it: u32| it.wrapping_mul(0x9e37_79b1) >> 12;
        let all: Vec<_> = (0..100_000).chain(0..100_000).map(scattered).collect();
        let comparisons = Cell::new(0);
        let counted = all.iter().map(|it| Counted(*it, &comparisons));
        let once: Vec<_> = each_once(counted).map(|it| it.0).collect();
        let compared = comparisons.get();
        assert!(compared < 64 * all.len() as u64, "{compared} comparisons");
        let mut met = BTreeSet::new();
        let wanted: Vec<_> = all.into_iter().filter(|it| met.insert(*it)).collect();
        assert_eq!(once, wanted);
    }
}
