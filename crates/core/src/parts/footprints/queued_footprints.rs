//! What those who stand in a queue may touch: who must not be passed by whom.
//!
//! The problem: whoever stands first in a queue may have to wait, and most of those behind it have
//! nothing to do with it. The idea: all of them tell what they may touch, and whoever touches
//! nothing that somebody before it writes, and writes nothing that somebody before it touches, may
//! go first, as the order of the two cannot be seen.
//! [`FootprintLocks`](super::footprint_locks::FootprintLocks) ask whether *anybody* is in the way;
//! here the places count, so claims are kept by key in the order of the queue, and the answer is
//! somebody to wait for: nothing need be asked again before it has gone.

use std::collections::{BTreeMap, BTreeSet};

use super::footprint_locks::Claim;
use crate::bytes::SmallBytes;
use crate::ids::SpaceId;

/// Who touches a key.
#[derive(Clone, Debug)]
struct Touching<K> {
    readers: BTreeSet<K>,
    writers: BTreeSet<K>,
}

impl<K> Default for Touching<K> {
    fn default() -> Touching<K> {
        Touching { readers: BTreeSet::new(), writers: BTreeSet::new() }
    }
}

/// Claims by their places.
///
/// Invariants: a key is known for as long as somebody who stands claims it, as its reader or its
/// writer, and `wide` are those of the claims that are.
#[derive(Clone, Debug)]
pub struct QueuedFootprints<K> {
    held: BTreeMap<K, Claim>,
    keys: BTreeMap<(SpaceId, SmallBytes), Touching<K>>,
    /// Claims with ranges, or on everything.
    wide: BTreeSet<K>,
}

impl<K> Default for QueuedFootprints<K> {
    fn default() -> QueuedFootprints<K> {
        QueuedFootprints { held: BTreeMap::new(), keys: BTreeMap::new(), wide: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> QueuedFootprints<K> {
    /// Somebody comes to stand at a place that was free.
    ///
    /// # Panics
    /// If somebody stands there.
    pub fn stand(&mut self, place: K, claim: Claim) {
        for key in &claim.reads {
            self.keys.entry(key.clone()).or_default().readers.insert(place);
        }
        for key in &claim.writes {
            self.keys.entry(key.clone()).or_default().writers.insert(place);
        }
        if claim.is_wide() {
            self.wide.insert(place);
        }
        assert!(self.held.insert(place, claim).is_none(), "one at each place");
    }

    /// Who stood there is gone; its claim, if there was somebody.
    pub fn leave(&mut self, place: K) -> Option<Claim> {
        let claim = self.held.remove(&place)?;
        for key in claim.reads.iter().chain(&claim.writes) {
            // A key that is claimed twice is gone by the second time.
            let Some(touching) = self.keys.get_mut(key) else { continue };
            touching.readers.remove(&place);
            touching.writers.remove(&place);
            if touching.readers.is_empty() && touching.writers.is_empty() {
                self.keys.remove(key);
            }
        }
        self.wide.remove(&place);
        Some(claim)
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for (key, touching) in &self.keys {
            let reads = |it: &K| self.held.get(it).is_some_and(|claim| claim.reads.contains(key));
            let writes = |it: &K| self.held.get(it).is_some_and(|claim| claim.writes.contains(key));
            let is_touched = !touching.readers.is_empty() || !touching.writers.is_empty();
            assert!(is_touched, "{key:?} is kept for nobody");
            assert!(touching.readers.iter().all(reads), "{key:?} has a reader that claims it not");
            assert!(touching.writers.iter().all(writes), "{key:?} has a writer that claims it not");
        }
        for (place, claim) in &self.held {
            assert_eq!(self.wide.contains(place), claim.is_wide(), "whether a claim is wide");
            let mut keys = claim.reads.iter().chain(&claim.writes);
            assert!(keys.all(|key| self.keys.contains_key(key)), "a claim on an unknown key");
        }
        assert!(self.wide.iter().all(|place| self.held.contains_key(place)), "nobody's wide claim");
    }

    /// How many stand.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nobody stands.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// What is claimed at a place.
    pub fn at(&self, place: K) -> Option<&Claim> {
        self.held.get(&place)
    }

    /// Nobody stands anywhere.
    pub fn clear(&mut self) {
        *self = QueuedFootprints::default();
    }

    /// Somebody who stands below `end`, `counts`, and has a claim that conflicts with this one.
    pub fn in_the_way(&self, claim: &Claim, end: K, counts: impl Fn(K) -> bool) -> Option<K> {
        let conflicts = |place: &K| counts(*place) && self.held[place].conflicts(claim);
        if claim.is_wide() {
            return self.held.range(..end).map(|(place, _)| *place).find(conflicts);
        }
        let first = |of: &BTreeSet<K>| of.range(..end).copied().find(|place| counts(*place));
        let touching = |key: &(SpaceId, SmallBytes)| self.keys.get(key);
        let read = || claim.reads.iter().filter_map(touching).find_map(|it| first(&it.writers));
        let written = |it: &Touching<K>| first(&it.writers).or_else(|| first(&it.readers));
        let write = || claim.writes.iter().filter_map(touching).find_map(written);
        let wide = || self.wide.range(..end).copied().find(conflicts);
        read().or_else(write).or_else(wide)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parts::footprint_locks::tests::claim;

    proptest! {
        /// Against asking everybody.
        #[test]
        fn in_the_way_is_who_stands_below_and_conflicts(
            steps in prop::collection::vec((claim(), 0u8..8, 0u8..9, 0u8..8), 1..24),
        ) {
            let (mut queued, mut model) = (QueuedFootprints::default(), BTreeMap::new());
            for (claim, place, end, skipped) in steps {
                let counts = |it: u8| it != skipped;
                let wanted: Vec<u8> = model
                    .iter()
                    .filter(|(it, held): &(&u8, &Claim)| {
                        **it < end && counts(**it) && held.conflicts(&claim)
                    })
                    .map(|(it, _)| *it)
                    .collect();
                let found = queued.in_the_way(&claim, end, counts);
                prop_assert_eq!(found.is_some(), !wanted.is_empty());
                prop_assert!(found.is_none_or(|it| wanted.contains(&it)));
                prop_assert_eq!(queued.leave(place), model.remove(&place));
                if end > 2 {
                    queued.stand(place, claim.clone());
                    model.insert(place, claim);
                }
                prop_assert_eq!(queued.at(place), model.get(&place));
            }
            for place in 0..8 {
                queued.leave(place);
            }
            prop_assert!(queued.keys.is_empty() && queued.wide.is_empty());
        }
    }
}
