//! Who waits at a repository for a change of what was read there.
//!
//! A transaction can go on only once others have changed what it has read (`retry` of composable
//! memory transactions, Harris and others, 2005; Turcu's dissertation, 2015, section 6.2.3). Its
//! coordinator sends what it has read, with the versions, to where it was read, and there a *watch*
//! is kept: an entry for each key. Whatever installs a version of such a key tells all who watch
//! it, once. What has changed before the watch came is told at once, so no change is missed between
//! the read and the watch.
//!
//! A watch is nothing that must survive: its coordinator asks again while it waits. So it is kept
//! for a while since it was last asked for, and [`WATCHES_MAX`] of them at most, with a bound of
//! bytes together. Where there is no room for one, it is told of a change that there may not be.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::SpaceId;
use crate::limits::{range_bytes, read_bytes};
use crate::ranges::KeyRange;
use crate::{Address, Nanos, SmallBytes};

/// So many watches are kept at a repository.
pub const WATCHES_MAX: usize = 65_536;

/// So many of them watch ranges: each version that is installed is looked for in these.
pub const RANGE_WATCHES_MAX: usize = 1_024;

/// What a watch counts beside its keys and ranges.
const WATCH_BYTES: usize = 64;

/// Whose watch it is: the coordinator, and its number for the answer.
pub type Watcher = (Address, u64);

/// What is watched for one transaction.
#[derive(Clone, Debug)]
pub struct ReadWatch {
    /// When it was last asked for.
    asked: Nanos,
    keys: Vec<(SpaceId, SmallBytes)>,
    ranges: Vec<KeyRange>,
    bytes: usize,
}

/// All watches of a repository.
///
/// Invariants: each key of a watch lists its watcher, and no other key does; `bytes` is what all
/// count, and there are at most [`WATCHES_MAX`].
#[derive(Clone, Debug, Default)]
pub struct Watches {
    watches: BTreeMap<Watcher, ReadWatch>,
    by_key: BTreeMap<(SpaceId, SmallBytes), BTreeSet<Watcher>>,
    /// Those that watch ranges.
    of_ranges: BTreeSet<Watcher>,
    bytes: usize,
}

impl ReadWatch {
    /// A watch of these keys and ranges, asked for at this time.
    pub fn new(asked: Nanos, keys: Vec<(SpaceId, SmallBytes)>, ranges: Vec<KeyRange>) -> ReadWatch {
        let bytes = WATCH_BYTES
            + keys.iter().map(|(_, key)| read_bytes(key)).sum::<usize>()
            + ranges.iter().map(range_bytes).sum::<usize>();
        ReadWatch { asked, keys, ranges, bytes }
    }
}

impl Watches {
    /// Whether nobody watches anything.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// Keeps one, in place of an earlier copy of it; false: there is no room.
    pub fn keep(&mut self, watcher: Watcher, watch: ReadWatch, bytes_max: usize) -> bool {
        self.remove(&watcher);
        let is_much = self.bytes > 0 && self.bytes.saturating_add(watch.bytes) > bytes_max;
        let ranges = !watch.ranges.is_empty() && self.of_ranges.len() >= RANGE_WATCHES_MAX;
        if is_much || ranges || self.watches.len() >= WATCHES_MAX {
            return false;
        }
        for key in &watch.keys {
            self.by_key.entry(key.clone()).or_default().insert(watcher);
        }
        if !watch.ranges.is_empty() {
            self.of_ranges.insert(watcher);
        }
        self.bytes += watch.bytes;
        let before = self.watches.insert(watcher, watch);
        assert!(before.is_none(), "{watcher:?} watches twice");
        true
    }

    /// Nobody waits for it any more.
    pub fn remove(&mut self, watcher: &Watcher) {
        let Some(watch) = self.watches.remove(watcher) else { return };
        for key in &watch.keys {
            if let Some(others) = self.by_key.get_mut(key) {
                others.remove(watcher);
                if others.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        self.of_ranges.remove(watcher);
        assert!(watch.bytes <= self.bytes, "a watch that was not counted");
        self.bytes -= watch.bytes;
    }

    /// Who watches a key.
    pub fn of(&self, space: SpaceId, key: &SmallBytes) -> BTreeSet<Watcher> {
        let mut all = self.by_key.get(&(space, key.clone())).cloned().unwrap_or_default();
        let has = |watcher: &&Watcher| {
            let watch = self.watches.get(watcher);
            watch.is_some_and(|it| it.ranges.iter().any(|range| range.contains(space, key)))
        };
        all.extend(self.of_ranges.iter().filter(has));
        all
    }

    /// Takes out the watches of a key that has changed.
    pub fn take(&mut self, space: SpaceId, key: &SmallBytes) -> BTreeSet<Watcher> {
        let taken = self.of(space, key);
        taken.iter().for_each(|watcher| self.remove(watcher));
        assert!(!self.by_key.contains_key(&(space, key.clone())), "{key:?} is watched still");
        taken
    }

    /// Takes out the watches of keys and ranges of which this holds: of what is kept elsewhere from
    /// now on, where nobody here hears of changes.
    pub fn take_where(
        &mut self,
        is_key: impl Fn(SpaceId, &SmallBytes) -> bool,
        is_range: impl Fn(&KeyRange) -> bool,
    ) -> BTreeSet<Watcher> {
        let is_of = |watch: &ReadWatch| {
            let mut keys = watch.keys.iter();
            keys.any(|(space, key)| is_key(*space, key)) || watch.ranges.iter().any(&is_range)
        };
        let all = self.watches.iter().filter(|(_, watch)| is_of(watch));
        let taken: BTreeSet<Watcher> = all.map(|(watcher, _)| *watcher).collect();
        taken.iter().for_each(|watcher| self.remove(watcher));
        taken
    }

    /// Drops those that were asked for last at or before a time.
    pub fn drop_asked_until(&mut self, until: Nanos) {
        let is_late =
            |(watcher, watch): (&Watcher, &ReadWatch)| (watch.asked <= until).then_some(*watcher);
        let late: Vec<Watcher> = self.watches.iter().filter_map(is_late).collect();
        late.iter().for_each(|watcher| self.remove(watcher));
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.watches.len() <= WATCHES_MAX, "{} watches", self.watches.len());
        assert!(self.of_ranges.len() <= RANGE_WATCHES_MAX, "too many watches of ranges");
        let bytes: usize = self.watches.values().map(|it| it.bytes).sum();
        assert_eq!(self.bytes, bytes, "bytes of watches");
        let listed: usize = self.by_key.values().map(BTreeSet::len).sum();
        let distinct = |it: &ReadWatch| it.keys.iter().collect::<BTreeSet<_>>().len();
        assert_eq!(listed, self.watches.values().map(distinct).sum::<usize>(), "keys watched");
        let of_ranges = self.watches.values().filter(|it| !it.ranges.is_empty()).count();
        assert_eq!(self.of_ranges.len(), of_ranges, "watches of ranges");
    }
}

#[cfg(test)]
mod tests {
    use crate::{NodeId, RepositoryId};

    use super::*;

    fn watcher(request: u64) -> Watcher {
        (Address::repository(NodeId(1), RepositoryId(0)), request)
    }

    fn watch(asked: u64, keys: &[&str], ranges: &[(&str, &str)]) -> ReadWatch {
        let range = |(lo, hi): &(&str, &str)| KeyRange {
            space: SpaceId(1),
            lo: (*lo).into(),
            hi: Some((*hi).into()),
        };
        let keys = keys.iter().map(|key| (SpaceId(1), SmallBytes::from(*key))).collect();
        let ranges = ranges.iter().map(range).collect();
        ReadWatch { asked: Nanos(asked), keys, ranges, bytes: 100 }
    }

    #[test]
    fn who_watches_a_key_or_its_range_is_told_once_and_no_other() {
        let mut watches = Watches::default();
        assert!(watches.keep(watcher(1), watch(0, &["a", "b"], &[]), 1_000));
        assert!(watches.keep(watcher(2), watch(0, &["b"], &[]), 1_000));
        assert!(watches.keep(watcher(3), watch(0, &["x"], &[("a", "c")]), 1_000));
        assert!(watches.keep(watcher(3), watch(1, &["x"], &[("a", "c")]), 1_000), "again");
        watches.assert_invariants();
        let mut take = |key: &str| {
            let taken = watches.take(SpaceId(1), &key.into());
            watches.assert_invariants();
            taken.into_iter().map(|(_, request)| request).collect::<Vec<_>>()
        };
        assert_eq!((take("c"), take("a"), take("a")), (vec![], vec![1, 3], vec![]));
        assert_eq!((take("b"), take("x")), (vec![2], vec![]));
        assert!(watches.is_empty());
    }

    #[test]
    fn watches_have_a_bound_and_those_that_nobody_asks_for_again_are_dropped() {
        let mut watches = Watches::default();
        assert!(watches.keep(watcher(1), watch(5, &["a"], &[]), 250));
        assert!(watches.keep(watcher(2), watch(7, &["a"], &[]), 250));
        assert!(!watches.keep(watcher(3), watch(9, &["a"], &[]), 250));
        watches.drop_asked_until(Nanos(5));
        assert!(watches.keep(watcher(3), watch(9, &["a"], &[]), 250));
        watches.assert_invariants();
        let taken = watches.take(SpaceId(1), &"a".into());
        assert_eq!(taken.into_iter().map(|it| it.1).collect::<Vec<_>>(), [2, 3]);
        assert!(watches.is_empty() && watches.bytes == 0);
    }

    #[test]
    fn watches_of_what_goes_elsewhere_are_taken_out_and_no_others() {
        let mut watches = Watches::default();
        assert!(watches.keep(watcher(1), watch(0, &["a", "b"], &[]), 1_000));
        assert!(watches.keep(watcher(2), watch(0, &["b"], &[]), 1_000));
        assert!(watches.keep(watcher(3), watch(0, &["b"], &[("c", "e")]), 1_000));
        assert!(watches.keep(watcher(4), watch(0, &[], &[("e", "f")]), 1_000));
        let taken = watches.take_where(
            |_, key| *key == SmallBytes::from("a"),
            |range| range.contains(SpaceId(1), &"d".into()),
        );
        watches.assert_invariants();
        assert_eq!(taken.into_iter().map(|it| it.1).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(watches.take(SpaceId(1), &"b".into()).len(), 1);
        assert_eq!(watches.take(SpaceId(1), &"e".into()).len(), 1);
        assert!(watches.is_empty());
    }

    #[test]
    #[should_panic(expected = "keys watched")]
    fn a_key_is_watched_by_who_says_so() {
        let mut watches = Watches::default();
        watches.keep(watcher(1), watch(0, &["a"], &[]), 1_000);
        watches.by_key.clear();
        watches.assert_invariants();
    }
}
