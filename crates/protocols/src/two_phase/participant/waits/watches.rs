//! Who waits here for a change of what was read.
//!
//! # The problem
//! A transaction can go on only once others have changed what it has read (`retry` of composable
//! memory transactions, Harris and others, 2005; Turcu's dissertation, 2015, section 6.2.3). It
//! must not ask again and again, and must miss no change.
//!
//! # The idea
//! Its coordinator sends what it has read, with the versions, to the repositories that it read at,
//! and each keeps a *watch*: an entry for each key. Whatever installs a version of such a key tells
//! all who watch it, once. What has changed before the watch came is told at once, so no change is
//! missed between the read and the watch.
//!
//! A watch is nothing that must survive: its coordinator asks again while it waits, after each
//! outage and once in a while beside. So it is kept for
//! [`in_doubt_after`](muesli_core::Settings::in_doubt_after) since it was last asked for, and
//! [`WATCHES_MAX`] of them at most, with as many bytes together as a transaction may have. Where
//! there is no room for one, it is told of a change that there may not be.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::limits::{range_bytes, read_bytes};
use muesli_core::ranges::KeyRange;
use muesli_core::{Address, Nanos, SmallBytes, SpaceId, Timestamp};

use crate::two_phase::message::{Message, Prepare, WatchRequest};
use crate::two_phase::participant::Participant;
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant};

/// So many watches are kept at a repository.
pub(in crate::two_phase) const WATCHES_MAX: usize = 65_536;

/// So many of them watch ranges: each version that is installed is looked for in these.
pub(in crate::two_phase) const RANGE_WATCHES_MAX: usize = 1_024;

/// What a watch counts beside its keys and ranges.
const WATCH_BYTES: usize = 64;

/// Whose watch it is: the coordinator, and its number for the answer.
type Watcher = (Address, u64);

/// What is watched for one transaction.
#[derive(Clone, Debug)]
struct ReadWatch {
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
pub(in crate::two_phase) struct Watches {
    watches: BTreeMap<Watcher, ReadWatch>,
    by_key: BTreeMap<(SpaceId, SmallBytes), BTreeSet<Watcher>>,
    /// Those that watch ranges.
    of_ranges: BTreeSet<Watcher>,
    bytes: usize,
}

impl Watches {
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// Keeps one, in place of an earlier copy of it; false: there is no room.
    fn keep(&mut self, watcher: Watcher, watch: ReadWatch, bytes_max: usize) -> bool {
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

    fn remove(&mut self, watcher: &Watcher) {
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

    /// Takes out the watches of a key that has changed.
    fn take(&mut self, space: SpaceId, key: &SmallBytes) -> BTreeSet<Watcher> {
        let mut taken = self.by_key.get(&(space, key.clone())).cloned().unwrap_or_default();
        let has = |watcher: &&Watcher| {
            let watch = self.watches.get(watcher);
            watch.is_some_and(|it| it.ranges.iter().any(|range| range.contains(space, key)))
        };
        taken.extend(self.of_ranges.iter().filter(has));
        taken.iter().for_each(|watcher| self.remove(watcher));
        assert!(!self.by_key.contains_key(&(space, key.clone())), "{key:?} is watched still");
        taken
    }

    /// Drops those that were asked for last at or before a time.
    fn drop_asked_until(&mut self, until: Nanos) {
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

impl<V: Variant> Participant<V> {
    pub(in crate::two_phase) fn on_watch(
        &mut self,
        from: Address,
        request: WatchRequest<V>,
        cx: &mut Context<'_, V>,
    ) {
        let WatchRequest { request, snapshot, reads, scans } = request;
        let limits = &cx.settings.limits;
        let bytes = WATCH_BYTES
            + reads.iter().map(|(_, key, _)| read_bytes(key)).sum::<usize>()
            + scans.iter().map(range_bytes).sum::<usize>();
        let has_changed = |(space, key, version): &(SpaceId, SmallBytes, Timestamp)| {
            !self.has_key(*space, key, cx.catalog) || self.newest_of(*space, key) != *version
        };
        let is_changed = self.switches.keeps(FamilySwitch::WatchesCompared)
            && (reads.iter().any(has_changed)
                || scans.iter().any(|range| self.has_changed_in(range, &snapshot)));
        let keys = reads.into_iter().map(|(space, key, _)| (space, key)).collect();
        let watch = ReadWatch { asked: cx.now(), keys, ranges: scans, bytes };
        let most = limits.transaction_bytes;
        if is_changed || !self.watches.keep((from, request), watch, most) {
            self.watches.remove(&(from, request));
            cx.send(from, Message::Changed { request });
        } else {
            self.set_sweep_timer(cx);
        }
    }

    /// A coordinator does not wait any more.
    pub(in crate::two_phase) fn on_unwatch(&mut self, from: Address, request: u64) {
        self.watches.remove(&(from, request));
    }

    fn newest_of(&self, space: SpaceId, key: &SmallBytes) -> Timestamp {
        let versions = self.versions(space);
        versions.and_then(|it| Some(it.newest(it.find(key)?).at)).unwrap_or_default()
    }

    fn has_changed_in(&self, range: &KeyRange, snapshot: &V::Snapshot) -> bool {
        let Some(versions) = self.versions(range.space) else { return false };
        let mut keys = versions.range(&range.lo, range.hi.as_ref());
        keys.any(|(key, handle)| {
            let newest = versions.newest(handle).at;
            self.time.is_phantom((range.space, key), newest, snapshot, || None)
        })
    }

    /// Whether anything is watched.
    #[inline]
    pub(in crate::two_phase) fn is_watched(&self) -> bool {
        !self.watches.is_empty()
    }

    /// A transaction was applied.
    #[cold]
    pub(in crate::two_phase) fn tell_of(&mut self, of: &Prepare<V>, cx: &mut Context<'_, V>) {
        let written = of.writes.iter().map(|(space, key, _)| (*space, key));
        let delayed = of.delayed.iter().map(|(space, key, _)| (*space, key));
        let called = of.calls().iter().flat_map(|call| &call.keys);
        let called = called.map(|(space, key)| (*space, key));
        for (space, key) in written.chain(delayed).chain(called) {
            self.tell_watchers(space, key, cx);
        }
    }

    /// A key has a new version: whoever watches it is told.
    #[inline]
    pub(in crate::two_phase) fn tell_watchers(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        cx: &mut Context<'_, V>,
    ) {
        for (coordinator, request) in self.watches.take(space, key) {
            cx.send(coordinator, Message::Changed { request });
        }
    }

    /// Drops watches that nobody has asked for again.
    pub(in crate::two_phase) fn drop_watches(&mut self, cx: &Context<'_, V>) {
        let (now, patience) = (cx.now(), cx.settings.in_doubt_after);
        if let Some(until) = now.0.checked_sub(patience.0) {
            self.watches.drop_asked_until(Nanos(until));
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, RepositoryId};

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
    #[should_panic(expected = "keys watched")]
    fn a_key_is_watched_by_who_says_so() {
        let mut watches = Watches::default();
        watches.keep(watcher(1), watch(0, &["a"], &[]), 1_000);
        watches.by_key.clear();
        watches.assert_invariants();
    }
}
