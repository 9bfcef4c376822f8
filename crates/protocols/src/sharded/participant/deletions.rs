//! Deletions that some snapshot may not see.

use std::collections::{BTreeMap, VecDeque};

use muesli_core::Timestamp;

/// When keys of objects were deleted, as far back as snapshots go.
///
/// Invariant: both say the same.
#[derive(Clone, Debug, Default)]
pub struct RecentDeletions {
    by_object: BTreeMap<u64, VecDeque<Timestamp>>,
    by_time: BTreeMap<Timestamp, Vec<u64>>,
}

impl RecentDeletions {
    /// A transaction deleted keys of these objects, each as often. Those of one object may come in
    /// any order, where they are of keys that are not in each other's way.
    pub fn insert(&mut self, at: Timestamp, objects: Vec<u64>) {
        for object in &objects {
            let times = self.by_object.entry(*object).or_default();
            let place = times.partition_point(|before| *before <= at);
            times.insert(place, at);
        }
        if !objects.is_empty() {
            self.by_time.entry(at).or_default().extend(objects);
        }
    }

    /// All snapshots see those up to here.
    pub fn forget(&mut self, upto: Timestamp) {
        while let Some(first) = self.by_time.first_entry() {
            if *first.key() > upto {
                break;
            }
            let time = *first.key();
            for object in first.remove() {
                let times = self.by_object.get_mut(&object).expect("both say the same");
                let gone = times.pop_front();
                assert_eq!(gone, Some(time), "deletions of object {object} are out of order");
                if times.is_empty() {
                    self.by_object.remove(&object);
                }
            }
        }
    }

    /// How many of an object a snapshot does not see.
    pub fn unseen(&self, object: u64, snapshot: Timestamp) -> u64 {
        let times = self.by_object.get(&object);
        times.map_or(0, |all| all.iter().rev().take_while(|at| **at > snapshot).count()) as u64
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_time.values().map(Vec::len).sum()
    }

    /// Checks the invariant.
    ///
    /// # Panics
    /// It does not hold.
    pub fn assert_invariants(&self) {
        let by_object: usize = self.by_object.values().map(VecDeque::len).sum();
        assert_eq!(by_object, self.len(), "deletions by object and by time");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_does_not_see_what_came_after_it() {
        let mut recent = RecentDeletions::default();
        recent.insert(Timestamp(5), vec![1, 2]);
        recent.insert(Timestamp(4), vec![3]);
        recent.insert(Timestamp(9), vec![1]);
        recent.insert(Timestamp(9), vec![1]);
        let unseen = |recent: &RecentDeletions, at| recent.unseen(1, Timestamp(at));
        assert_eq!([4, 5, 8, 9].map(|at| unseen(&recent, at)), [3, 2, 2, 0]);
        recent.forget(Timestamp(5));
        recent.assert_invariants();
        assert_eq!((recent.len(), unseen(&recent, 5)), (2, 2));
        recent.insert(Timestamp(7), vec![1]);
        assert_eq!([6, 7].map(|at| unseen(&recent, at)), [3, 2], "it came late");
        recent.forget(Timestamp(9));
        assert_eq!(recent.len(), 0);
    }
}
