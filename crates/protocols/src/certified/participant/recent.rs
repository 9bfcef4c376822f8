//! Commits that some snapshot does not see yet.
//!
//! A site counts the commits that it applies: that is its clock, and a snapshot is a value of it.
//! Versions are named by the order of conflicting commits, which all sites have alike, and not by
//! clocks: commits that do not conflict are applied in one order here and in another one there. So
//! a site remembers of its last commits which versions they made at which clock. A snapshot sees of
//! a key the version before the first one that came after it. What all snapshots see is forgotten.

use std::collections::{BTreeMap, VecDeque};

use muesli_core::{SmallBytes, SpaceId, Timestamp};

/// A commit that some snapshot may not see.
#[derive(Clone, Debug)]
struct RecentCommit {
    clock: u64,
    at: Timestamp,
    keys: Vec<(SpaceId, SmallBytes)>,
    /// Objects of keys that it deleted, each as often.
    deletions: Vec<u64>,
}

/// The commits that some snapshot may not see.
///
/// Invariants: clocks ascend, and what stands by keys, objects and timestamps is of these commits.
#[derive(Clone, Debug, Default)]
pub struct RecentCommits {
    commits: VecDeque<RecentCommit>,
    /// By key, the clocks and versions of commits that wrote it, oldest first.
    by_key: BTreeMap<(SpaceId, SmallBytes), VecDeque<(u64, Timestamp)>>,
    /// By object, the clocks of deletions, oldest first.
    deletions: BTreeMap<u64, VecDeque<u64>>,
    /// Versions of all commits, each as often.
    versions: BTreeMap<Timestamp, u32>,
}

impl RecentCommits {
    /// A commit is applied.
    pub fn insert(
        &mut self,
        clock: u64,
        at: Timestamp,
        keys: Vec<(SpaceId, SmallBytes)>,
        deletions: Vec<u64>,
    ) {
        let last = self.commits.back().map_or(0, |commit| commit.clock);
        assert!(clock > last, "clock {clock} after {last}");
        for key in &keys {
            let versions = self.by_key.entry(key.clone()).or_default();
            let before = versions.back().map_or(Timestamp::ZERO, |(_, at)| *at);
            assert!(before < at, "{at} after {before}");
            versions.push_back((clock, at));
        }
        for object in &deletions {
            self.deletions.entry(*object).or_default().push_back(clock);
        }
        *self.versions.entry(at).or_default() += 1;
        self.commits.push_back(RecentCommit { clock, at, keys, deletions });
    }

    /// All snapshots see the commits up to this clock.
    pub fn forget(&mut self, upto: u64) {
        while let Some(commit) = self.commits.pop_front_if(|commit| commit.clock <= upto) {
            for key in commit.keys {
                pop_first(&mut self.by_key, &key);
            }
            for object in commit.deletions {
                pop_first(&mut self.deletions, &object);
            }
            let count = self.versions.get_mut(&commit.at).expect("it was counted");
            assert!(*count > 0, "{} is counted, not once", commit.at);
            *count -= 1;
            if *count == 0 {
                self.versions.remove(&commit.at);
            }
        }
    }

    /// The first version of a key that a snapshot does not see.
    pub fn unseen_version(
        &self,
        (space, key): (SpaceId, &SmallBytes),
        snapshot: u64,
    ) -> Option<Timestamp> {
        if self.commits.back().is_none_or(|commit| commit.clock <= snapshot) {
            return None;
        }
        let versions = self.by_key.get(&(space, key.clone()))?;
        let first = versions.partition_point(|(clock, _)| *clock <= snapshot);
        versions.get(first).map(|(_, at)| *at)
    }

    /// How many deletions of keys of an object a snapshot does not see.
    pub fn unseen_deletions(&self, object: u64, snapshot: u64) -> u64 {
        let clocks = self.deletions.get(&object);
        clocks.map_or(0, |all| all.len() - all.partition_point(|clock| *clock <= snapshot)) as u64
    }

    /// Versions below this are of commits that all snapshots see, or of none.
    pub fn lowest_version(&self) -> Option<Timestamp> {
        self.versions.first_key_value().map(|(at, _)| *at)
    }

    /// How many writes there are.
    pub fn len(&self) -> usize {
        self.commits.len()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let clocks = self.commits.iter().map(|commit| commit.clock);
        assert!(clocks.is_sorted_by(|a, b| a < b), "clocks out of order");
        let writes: usize = self.commits.iter().map(|commit| commit.keys.len()).sum();
        let by_key: usize = self.by_key.values().map(VecDeque::len).sum();
        assert_eq!(writes, by_key, "writes by key");
        let deletions: usize = self.commits.iter().map(|commit| commit.deletions.len()).sum();
        let by_object: usize = self.deletions.values().map(VecDeque::len).sum();
        assert_eq!(deletions, by_object, "deletions by object");
        let versions: u32 = self.versions.values().sum();
        assert_eq!(self.commits.len(), versions as usize, "versions");
    }
}

/// Takes the first of what stands at a place, and the place with the last.
fn pop_first<K: Ord, V>(all: &mut BTreeMap<K, VecDeque<V>>, key: &K) {
    let list = all.get_mut(key).expect("what a commit did stands where it is looked for");
    list.pop_front();
    if list.is_empty() {
        all.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId(0);

    #[test]
    fn a_snapshot_sees_what_was_applied_before_it() {
        let mut recent = RecentCommits::default();
        let key = |key: &str| (SPACE, SmallBytes::from(key));
        recent.insert(4, Timestamp(9), vec![key("a"), key("b")], vec![]);
        recent.insert(5, Timestamp(7), vec![key("c")], vec![1]);
        recent.insert(6, Timestamp(12), vec![key("a")], vec![1, 2]);
        recent.assert_invariants();
        let unseen = |recent: &RecentCommits, of: &str, snapshot| {
            recent.unseen_version((SPACE, &of.into()), snapshot).map(|at| at.0)
        };
        let of_a = [3, 4, 5, 6].map(|snapshot| unseen(&recent, "a", snapshot));
        assert_eq!(of_a, [Some(9), Some(12), Some(12), None]);
        assert_eq!(unseen(&recent, "c", 4), Some(7));
        assert_eq!(unseen(&recent, "d", 0), None);
        let deletions = [4, 5, 6].map(|snapshot| recent.unseen_deletions(1, snapshot));
        assert_eq!(deletions, [2, 1, 0]);
        assert_eq!(recent.lowest_version(), Some(Timestamp(7)));
        recent.forget(5);
        recent.assert_invariants();
        assert_eq!((recent.len(), recent.lowest_version()), (1, Some(Timestamp(12))));
        assert_eq!((unseen(&recent, "b", 0), unseen(&recent, "a", 5)), (None, Some(12)));
        recent.forget(6);
        assert_eq!((recent.len(), recent.lowest_version()), (0, None));
    }
}
