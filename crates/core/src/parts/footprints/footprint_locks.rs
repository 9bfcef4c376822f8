//! Locks on whole footprints: what a transaction touches, claimed in one step or not at all.
//!
//! The problem: a transaction whose fate is not known yet keeps others away from what it read and
//! will write. Nobody waits for such a lock, and few hold any at a time. So instead of a word in
//! each entry of a store, the claims of those few are kept here, by key and as ranges: whole
//! spaces, keys that do not exist, and several owners of one lock, where somebody has claimed
//! regardless of others, need no place in a store.

use std::collections::BTreeMap;

use crate::bytes::SmallBytes;
use crate::ids::SpaceId;
use crate::parts::listed::FEW;
use crate::parts::transaction::TransactionSets;
use crate::procedure::{Footprint, Touched};
use crate::ranges::KeyRange;

/// What a transaction touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Keys that it reads.
    pub reads: Vec<(SpaceId, SmallBytes)>,
    /// Keys that it writes.
    pub writes: Vec<(SpaceId, SmallBytes)>,
    /// Ranges that it reads.
    pub read_ranges: Vec<KeyRange>,
    /// Ranges that it may write.
    pub write_ranges: Vec<KeyRange>,
    /// It may touch anything.
    pub everything: bool,
}

/// Claims by their owners.
///
/// Invariants: `keys` counts for each key how often it is read and written in what is held, and
/// `wide` has each owner of a claim that is, once.
#[derive(Clone, Debug)]
pub struct FootprintLocks<K> {
    held: BTreeMap<K, Claim>,
    /// How many read and how many write a key.
    keys: BTreeMap<(SpaceId, SmallBytes), (u32, u32)>,
    /// Claims with ranges, or on everything.
    wide: Vec<K>,
}

impl<K> Default for FootprintLocks<K> {
    fn default() -> FootprintLocks<K> {
        FootprintLocks { held: BTreeMap::new(), keys: BTreeMap::new(), wide: Vec::new() }
    }
}

impl Claim {
    /// What an execution touched.
    pub fn of_sets(sets: &TransactionSets) -> Claim {
        Claim {
            reads: sets.reads.iter().map(|read| (read.space, read.key.clone())).collect(),
            writes: sets.writes.iter().map(|write| (write.space, write.key.clone())).collect(),
            read_ranges: sets.scans.clone(),
            ..Claim::default()
        }
    }

    /// All that may be touched; `None`: anything.
    pub fn of_footprint(footprint: Option<&Footprint>) -> Claim {
        let mut claim = Claim { everything: footprint.is_none(), ..Claim::default() };
        let Some(footprint) = footprint else { return claim };
        sort(&footprint.reads, &mut claim.reads, &mut claim.read_ranges);
        sort(&footprint.writes, &mut claim.writes, &mut claim.write_ranges);
        claim
    }

    /// What both touch.
    pub fn join(&mut self, other: Claim) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.read_ranges.extend(other.read_ranges);
        self.write_ranges.extend(other.write_ranges);
        self.everything |= other.everything;
    }

    fn is_empty(&self) -> bool {
        let Claim { reads, writes, read_ranges, write_ranges, everything } = self;
        let keys = reads.is_empty() && writes.is_empty();
        keys && read_ranges.is_empty() && write_ranges.is_empty() && !everything
    }

    /// Whether it is on more than single keys.
    pub(super) fn is_wide(&self) -> bool {
        self.everything || !self.read_ranges.is_empty() || !self.write_ranges.is_empty()
    }

    /// Whether the order of the two could matter.
    pub fn conflicts(&self, other: &Claim) -> bool {
        if self.everything || other.everything {
            return !self.is_empty() && !other.is_empty();
        }
        self.overwrites(other) || other.overwrites(self)
    }

    /// Whether this one writes what the other one touches.
    fn overwrites(&self, other: &Claim) -> bool {
        let touched = other.reads.len() + other.read_ranges.len();
        let written = [self, other].map(|it| it.writes.len() + it.write_ranges.len());
        if written[0].min(touched + written[1]) <= FEW {
            return self.overwrites_one_by_one(other);
        }
        self.overwrites_by_halves(other)
    }

    /// The same, for those that claim little.
    fn overwrites_one_by_one(&self, other: &Claim) -> bool {
        let ranges = || other.read_ranges.iter().chain(&other.write_ranges);
        let key = |(space, key): &(SpaceId, SmallBytes)| {
            let has = |list: &[(SpaceId, SmallBytes)]| {
                list.iter().any(|(of, it)| of == space && it == key)
            };
            has(&other.reads) || has(&other.writes) || ranges().any(|it| it.contains(*space, key))
        };
        let range = |range: &KeyRange| {
            let inside = |list: &[(SpaceId, SmallBytes)]| {
                list.iter().any(|(space, key)| range.contains(*space, key))
            };
            inside(&other.reads) || inside(&other.writes) || ranges().any(|it| overlap(it, range))
        };
        self.writes.iter().any(key) || self.write_ranges.iter().any(range)
    }

    /// The same, for those that claim much: what the one claims that claims less is sorted.
    fn overwrites_by_halves(&self, other: &Claim) -> bool {
        let written = || (self.writes.iter(), self.write_ranges.iter());
        let touched = || {
            let keys = other.reads.iter().chain(&other.writes);
            (keys, other.read_ranges.iter().chain(&other.write_ranges))
        };
        let ((writes, write_ranges), (keys, ranges)) = (written(), touched());
        if self.writes.len() + self.write_ranges.len() < other.reads.len() + other.writes.len() {
            let sorted = Sorted::new(writes, write_ranges);
            let (mut keys, mut ranges) = (keys, ranges);
            return keys.any(|key| sorted.has(key)) || ranges.any(|range| sorted.meets(range));
        }
        let sorted = Sorted::new(keys, ranges);
        let (mut keys, mut ranges) = (writes, write_ranges);
        keys.any(|key| sorted.has(key)) || ranges.any(|range| sorted.meets(range))
    }
}

/// Keys and ranges, in ascending order.
struct Sorted<'a> {
    keys: Vec<&'a (SpaceId, SmallBytes)>,
    /// Those that are not empty, by where they begin; each with the furthest end of its space so
    /// far.
    ranges: Vec<(SpaceId, &'a SmallBytes, Option<&'a SmallBytes>)>,
}

impl<'a> Sorted<'a> {
    fn new(
        keys: impl Iterator<Item = &'a (SpaceId, SmallBytes)>,
        ranges: impl Iterator<Item = &'a KeyRange>,
    ) -> Sorted<'a> {
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        let some = ranges.filter(|range| !is_empty(range));
        let mut ranges: Vec<_> =
            some.map(|range| (range.space, &range.lo, range.hi.as_ref())).collect();
        ranges.sort_unstable();
        for at in 1..ranges.len() {
            let (before, furthest) = (ranges[at - 1].0, ranges[at - 1].2);
            let (space, _, end) = &mut ranges[at];
            if before == *space {
                // `None` is the end of the space.
                *end = furthest.and_then(|furthest| end.map(|end| end.max(furthest)));
            }
        }
        Sorted { keys, ranges }
    }

    /// Whether a key is one of the keys, or in one of the ranges.
    fn has(&self, key: &(SpaceId, SmallBytes)) -> bool {
        self.keys.binary_search(&key).is_ok() || self.reaches(key.0, &key.1, |lo| *lo <= key.1)
    }

    /// Whether a range holds one of the keys, or has one in common with one of the ranges.
    fn meets(&self, range: &KeyRange) -> bool {
        let before =
            |(space, key): &&(SpaceId, SmallBytes)| (*space, key) < (range.space, &range.lo);
        let first = self.keys.get(self.keys.partition_point(before));
        let holds = first.is_some_and(|(space, key)| range.contains(*space, key));
        let begins = |lo: &SmallBytes| range.hi.as_ref().is_none_or(|hi| lo < hi);
        holds || !is_empty(range) && self.reaches(range.space, &range.lo, begins)
    }

    /// Whether one of the ranges that begin in time ends behind `key`.
    fn reaches(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        begins: impl Fn(&SmallBytes) -> bool,
    ) -> bool {
        let in_time = |(of, lo, _): &(SpaceId, &SmallBytes, Option<&SmallBytes>)| {
            *of < space || *of == space && begins(lo)
        };
        let count = self.ranges.partition_point(in_time);
        let last = count.checked_sub(1).map(|last| self.ranges[last]);
        last.is_some_and(|(of, _, end)| of == space && end.is_none_or(|end| key < end))
    }
}

fn sort(touched: &[Touched], keys: &mut Vec<(SpaceId, SmallBytes)>, ranges: &mut Vec<KeyRange>) {
    for touched in touched {
        match touched.clone() {
            Touched::Key(space, key) => keys.push((space, key)),
            Touched::Range(space, lo, hi) => ranges.push(KeyRange { space, lo, hi }),
            Touched::Space(space) => {
                ranges.push(KeyRange { space, lo: SmallBytes::EMPTY, hi: None });
            }
        }
    }
}

fn is_empty(range: &KeyRange) -> bool {
    range.hi.as_ref().is_some_and(|hi| *hi <= range.lo)
}

/// Whether some key can lie in both.
fn overlap(one: &KeyRange, other: &KeyRange) -> bool {
    let before = |lo: &SmallBytes, hi: &Option<SmallBytes>| hi.as_ref().is_none_or(|hi| lo < hi);
    one.space == other.space
        && !is_empty(one)
        && !is_empty(other)
        && before(&one.lo, &other.hi)
        && before(&other.lo, &one.hi)
}

impl<K: Copy + Ord> FootprintLocks<K> {
    /// Whether nobody claims anything.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether some claim is held that conflicts with this one.
    pub fn conflict(&self, claim: &Claim) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let held = |key: &(SpaceId, SmallBytes)| self.keys.get(key).copied().unwrap_or((0, 0));
        if claim.is_wide() {
            return self.held.values().any(|held| held.conflicts(claim));
        }
        claim.reads.iter().any(|key| held(key).1 > 0)
            || claim.writes.iter().any(|key| held(key) != (0, 0))
            || self.wide.iter().any(|owner| self.held[owner].conflicts(claim))
    }

    /// Whose claims conflict with this one.
    pub fn conflicting(&self, claim: &Claim) -> Vec<K> {
        let held = self.held.iter().filter(|(_, held)| held.conflicts(claim));
        held.map(|(owner, _)| *owner).collect()
    }

    /// Claims, whatever others have claimed.
    ///
    /// # Panics
    /// If the owner has a claim already.
    pub fn hold(&mut self, owner: K, claim: Claim) {
        for key in &claim.reads {
            self.keys.entry(key.clone()).or_default().0 += 1;
        }
        for key in &claim.writes {
            self.keys.entry(key.clone()).or_default().1 += 1;
        }
        if claim.is_wide() {
            self.wide.push(owner);
        }
        assert!(self.held.insert(owner, claim).is_none(), "one claim each");
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let mut keys: BTreeMap<&(SpaceId, SmallBytes), (u32, u32)> = BTreeMap::new();
        for claim in self.held.values() {
            claim.reads.iter().for_each(|key| keys.entry(key).or_default().0 += 1);
            claim.writes.iter().for_each(|key| keys.entry(key).or_default().1 += 1);
        }
        assert!(keys.into_iter().eq(self.keys.iter().map(|(key, it)| (key, *it))), "claimed keys");
        let wide = self.held.iter().filter(|(_, claim)| claim.is_wide());
        let mut listed = self.wide.clone();
        listed.sort_unstable();
        assert!(wide.map(|(owner, _)| *owner).eq(listed), "owners of wide claims");
    }

    /// Who has claimed something.
    pub fn owners(&self) -> impl Iterator<Item = K> + '_ {
        self.held.keys().copied()
    }

    /// Gives back what `owner` has claimed; harmless if it has claimed nothing.
    pub fn release(&mut self, owner: K) {
        let Some(claim) = self.held.remove(&owner) else { return };
        for key in &claim.reads {
            self.give_back(key, |counts| counts.0 -= 1);
        }
        for key in &claim.writes {
            self.give_back(key, |counts| counts.1 -= 1);
        }
        self.wide.retain(|other| *other != owner);
    }

    fn give_back(&mut self, key: &(SpaceId, SmallBytes), less: impl Fn(&mut (u32, u32))) {
        let counts = self.keys.get_mut(key).expect("it was claimed");
        less(counts);
        if *counts == (0, 0) {
            self.keys.remove(key);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> SmallBytes {
        SmallBytes::new(&[number])
    }

    pub fn claim() -> impl Strategy<Value = Claim> {
        let keys = || prop::collection::vec((0u16..2, 0u8..8), 0..3);
        let ranges = || prop::collection::vec((0u16..2, 0u8..8, prop::option::of(0u8..9)), 0..2);
        (keys(), keys(), ranges(), ranges(), prop::bool::weighted(0.05)).prop_map(
            |(reads, writes, read_ranges, write_ranges, everything)| {
                let keys = |list: Vec<(u16, u8)>| {
                    list.into_iter().map(|(space, it)| (SpaceId(space), key(it))).collect()
                };
                let ranges = |list: Vec<(u16, u8, Option<u8>)>| {
                    let range = |(space, lo, hi): (u16, u8, Option<u8>)| KeyRange {
                        space: SpaceId(space),
                        lo: key(lo),
                        hi: hi.map(key),
                    };
                    list.into_iter().map(range).collect()
                };
                let (reads, writes) = (keys(reads), keys(writes));
                let (read_ranges, write_ranges) = (ranges(read_ranges), ranges(write_ranges));
                Claim { reads, writes, read_ranges, write_ranges, everything }
            },
        )
    }

    /// How a claim touches a key: not at all, reading, writing.
    fn touches(claim: &Claim, space: SpaceId, key: &SmallBytes) -> u8 {
        let has = |list: &[(SpaceId, SmallBytes)]| list.contains(&(space, key.clone()));
        let inside = |list: &[KeyRange]| list.iter().any(|range| range.contains(space, key));
        if claim.everything || has(&claim.writes) || inside(&claim.write_ranges) {
            return 2;
        }
        u8::from(has(&claim.reads) || inside(&claim.read_ranges))
    }

    /// Key by key, over a universe that holds a key in each gap that ranges can leave.
    fn conflict_by_keys(one: &Claim, other: &Claim) -> bool {
        if one.everything || other.everything {
            return !one.is_empty() && !other.is_empty();
        }
        let universe =
            (0..2u16).flat_map(|space| (0..10u8).map(move |it| (SpaceId(space), key(it))));
        universe.into_iter().any(|(space, key)| {
            let pair = (touches(one, space, &key), touches(other, space, &key));
            matches!(pair, (2, 1 | 2) | (1, 2))
        })
    }

    proptest! {
        #[test]
        fn claims_conflict_where_a_key_is_written_by_one_and_touched_by_another(
            steps in prop::collection::vec((claim(), 0u8..5, any::<bool>()), 1..20),
        ) {
            let (mut footprint_locks, mut model) = (FootprintLocks::default(), BTreeMap::new());
            for (claim, owner, regardless) in steps {
                let wanted: Vec<u8> = model
                    .iter()
                    .filter(|(_, held)| conflict_by_keys(held, &claim))
                    .map(|(owner, _)| *owner)
                    .collect();
                prop_assert_eq!(footprint_locks.conflicting(&claim), wanted.clone());
                prop_assert_eq!(footprint_locks.conflict(&claim), !wanted.is_empty());
                if model.remove(&owner).is_some() {
                    footprint_locks.release(owner);
                } else if regardless || wanted.is_empty() {
                    footprint_locks.hold(owner, claim.clone());
                    model.insert(owner, claim);
                }
                prop_assert_eq!(footprint_locks.is_empty(), model.is_empty());
            }
            for owner in 0..5 {
                footprint_locks.release(owner);
            }
            prop_assert!(footprint_locks.keys.is_empty() && footprint_locks.wide.is_empty());
        }
    }

    proptest! {
        #[test]
        fn sorted_claims_conflict_as_those_that_are_compared_one_by_one(
            some in prop::collection::vec(claim(), 1..6),
            others in prop::collection::vec(claim(), 1..6),
        ) {
            let join = |all: Vec<Claim>| {
                let mut joined = Claim::default();
                all.into_iter().for_each(|claim| joined.join(claim));
                Claim { everything: false, ..joined }
            };
            let (one, other) = (join(some), join(others));
            for (one, other) in [(&one, &other), (&other, &one)] {
                let wanted = one.overwrites_one_by_one(other);
                prop_assert_eq!(one.overwrites_by_halves(other), wanted);
            }
        }
    }

    /// Compared one by one these would take minutes.
    #[test]
    fn claims_of_very_many_keys_and_ranges_are_compared() {
        let key = |at: u32| (SpaceId(1), SmallBytes::new(&at.to_be_bytes()));
        let range = |at: u32| {
            let (lo, hi) = (key(at).1, Some(key(at + 1).1));
            KeyRange { space: SpaceId(1), lo, hi }
        };
        let most = 300_000;
        // Which quarter of the keys each touches in which way.
        let every = |of: u32| (0..most).map(move |it| 4 * it + of);
        let one = Claim {
            reads: every(0).map(key).collect(),
            read_ranges: every(1).map(range).collect(),
            ..Claim::default()
        };
        let mut other = Claim {
            writes: every(2).map(key).collect(),
            write_ranges: every(3).map(range).collect(),
            ..Claim::default()
        };
        assert!(!one.conflicts(&other) && !other.conflicts(&one));
        let mut footprint_locks = FootprintLocks::default();
        footprint_locks.hold(1, one);
        assert!(!footprint_locks.conflict(&other));
        other.writes.push(key(4 * (most / 2) + 1));
        assert_eq!(
            (footprint_locks.conflict(&other), footprint_locks.conflicting(&other)),
            (true, vec![1])
        );
    }

    #[test]
    fn a_footprint_claims_all_it_names() {
        let (space, other) = (SpaceId(1), SpaceId(2));
        let reads = vec![Touched::Key(space, key(1)), Touched::Space(other)];
        let writes = vec![Touched::Range(space, key(3), Some(key(5)))];
        let claim = Claim::of_footprint(Some(&Footprint { reads, writes }));
        assert_eq!(touches(&claim, space, &key(1)), 1);
        assert_eq!(touches(&claim, space, &key(4)), 2);
        assert_eq!(touches(&claim, space, &key(5)), 0);
        assert_eq!(touches(&claim, other, &key(77)), 1);
        assert!(Claim::of_footprint(None).conflicts(&claim));
        assert!(!Claim::of_footprint(None).conflicts(&Claim::default()));
    }
}
