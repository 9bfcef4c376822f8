//! Age priority: who has lost often is let through.
//!
//! The owner of an object commits in no time, and by then whoever is elsewhere has but read it: its
//! reads are no longer the newest when its commit arrives, however often it tries. So a transaction
//! that has lost some times says with its reads since when it has been tried. What it reads is then
//! kept for it for a while: younger writers of these objects are refused. Nothing is waited for, so
//! nobody waits for each other; and what is kept is in nobody's log, since it is no lock:
//! validation decides, as it does without it.
//!
//! A repository keeps objects for one transaction at a time, the oldest of those that ask. Where
//! many meet, all have an age before long; if each kept what it reads they would keep each other
//! out, and everybody else.
//!
//! Source: A. Turcu's dissertation (2015), section 3.1, has strong progressiveness for one object;
//! beyond that somebody may lose for ever.

use std::collections::BTreeMap;

use muesli_core::ranges::KeyRange;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Abort, Nanos, NodeId, SmallBytes, SpaceId, Timestamp, Txn};

use super::{OwnedObjects, Switches};
use crate::two_phase::{Key, PreparedKeys, ReaderBounds, ValidationResult, VariantState};

/// An object is kept for so long after it was read: a commit over slow links comes within that, and
/// where it does not, others wait for no longer.
const KEPT_FOR: Nanos = Nanos(50_000_000);
/// So many objects are kept at a repository; of further ones nothing is noted.
const KEPT_MAX: usize = 4_096;

/// Since when a transaction has been tried that has lost often, and its node; what orders ages. Of
/// one that has not lost often there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionAge {
    /// By its node's clock; zero: it has no age.
    since: Nanos,
    node: NodeId,
}

impl TransactionAge {
    fn is_known(self) -> bool {
        self.since > Nanos(0)
    }
}

impl ReaderBounds for TransactionAge {
    fn new(node: NodeId, _: u32, _: Txn, since: Nanos) -> TransactionAge {
        if since > Nanos(0) { TransactionAge { since, node } } else { TransactionAge::default() }
    }

    fn is_of(self, node: NodeId) -> bool {
        !self.is_known() || self.node == node
    }
}

/// A byte where there is none.
impl Wire for TransactionAge {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        self.is_known().then_some((self.since.0, self.node)).encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<TransactionAge, WireError> {
        let known = Option::<(u64, NodeId)>::decode(input)?;
        let age = known.map(|(since, node)| TransactionAge { since: Nanos(since), node });
        Ok(age.filter(|age| age.is_known()).unwrap_or_default())
    }
}

/// The objects that a repository keeps for a transaction that has lost often.
///
/// Invariants: it has an age if anything is kept; they are so many at most; none is kept for longer
/// than is said of all.
#[derive(Clone, Debug, Default)]
pub struct KeptKeys {
    /// Whose they are.
    age: TransactionAge,
    /// Until when each is kept. Another attempt may read others.
    kept: BTreeMap<(SpaceId, SmallBytes), Nanos>,
    /// From then on nothing is kept, so that who writes need not look.
    until: Nanos,
}

impl VariantState<OwnedObjects> for KeptKeys {
    fn new(_: &Switches, _: u64) -> KeptKeys {
        KeptKeys::default()
    }

    fn assert_invariants(&self) {
        assert!(self.kept.len() <= KEPT_MAX, "more objects are kept than may be");
        let in_time = self.kept.values().all(|until| *until <= self.until);
        assert!(in_time, "an object is kept for longer than who writes looks");
        let has_age = self.kept.is_empty() || self.age.is_known();
        assert!(has_age, "an object is kept for one that has no age");
    }

    #[inline]
    fn note_read(
        &mut self,
        (space, key): Key<'_>,
        _: &Timestamp,
        _: &Timestamp,
        age: TransactionAge,
        now: Nanos,
    ) {
        let is_kept_from = now < self.until && self.age < age;
        if !age.is_known() || is_kept_from {
            return;
        }
        if self.age != age || now >= self.until {
            self.kept.clear();
        }
        (self.age, self.until) = (age, now + KEPT_FOR);
        if let Some(until) = self.kept.get_mut(&(space, key.clone())) {
            *until = self.until;
            return;
        }
        if self.kept.len() >= KEPT_MAX {
            self.kept.retain(|_, until| *until > now);
        }
        assert!(self.until > now, "what is kept is kept for a while");
        if self.kept.len() < KEPT_MAX {
            self.kept.insert((space, key.clone()), self.until);
        }
    }

    #[inline]
    fn is_kept_from(&self, (space, key): Key<'_>, age: TransactionAge, now: Nanos) -> bool {
        if self.until <= now || age.is_known() && age <= self.age {
            return false;
        }
        self.kept.get(&(space, key.clone())).is_some_and(|until| now < *until)
    }

    #[inline]
    fn note_passed(&mut self, age: TransactionAge) {
        if age.is_known() && age == self.age {
            *self = KeptKeys::default();
        }
    }

    fn note_scan(&mut self, _: &KeyRange, _: &Timestamp, _: &Timestamp, _: TransactionAge) {}

    #[inline]
    fn suffers_stale_reads(&self) -> bool {
        false
    }

    #[inline]
    fn newest(&self, _: Key<'_>, installed: Timestamp) -> Timestamp {
        installed
    }

    fn note_missed(&self, _: Key<'_>, _: Timestamp, _: &mut ValidationResult) -> Result<(), Abort> {
        unreachable!("stale reads are refused before")
    }

    #[inline]
    fn note_write(&self, _: Key<'_>, _: Timestamp, _: TransactionAge, _: &mut ValidationResult) {}

    #[inline]
    fn note_prepared(&mut self, _: PreparedKeys<'_>, _: &Timestamp) {}

    #[inline]
    fn note_finished(&mut self, _: PreparedKeys<'_>) {}

    #[inline]
    fn note_written(&mut self, _: Key<'_>, _: &Timestamp) {}

    #[inline]
    fn note_read_by(&mut self, _: Key<'_>, _: &Timestamp) {}

    #[inline]
    fn note_scanned_by(&mut self, _: &KeyRange, _: &Timestamp) {}

    #[inline]
    fn restarted(&mut self, _: &Timestamp) {}

    #[inline]
    fn collect(&mut self, _: &Timestamp) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId(0);
    const NOBODY: TransactionAge = TransactionAge { since: Nanos(0), node: NodeId(0) };

    fn age(since: u64) -> TransactionAge {
        TransactionAge::new(NodeId(7), 1, Txn { slot: 0, generation: 0 }, Nanos(since))
    }

    fn read(kept: &mut KeptKeys, key: &SmallBytes, age: TransactionAge, now: u64) {
        kept.note_read((SPACE, key), &Timestamp::ZERO, &Timestamp::ZERO, age, Nanos(now));
        kept.assert_invariants();
    }

    #[test]
    fn what_who_has_an_age_reads_is_kept_from_younger_writers() {
        let (mut kept, key) = (KeptKeys::default(), SmallBytes::from("key"));
        read(&mut kept, &key, NOBODY, 1);
        assert!(!kept.is_kept_from((SPACE, &key), NOBODY, Nanos(1)), "nobody has an age");
        read(&mut kept, &key, age(5), 1);
        let is_kept = |kept: &KeptKeys, age| kept.is_kept_from((SPACE, &key), age, Nanos(2));
        assert!(is_kept(&kept, NOBODY) && is_kept(&kept, age(6)));
        assert!(!is_kept(&kept, age(5)) && !is_kept(&kept, age(4)));
        let other = SmallBytes::from("other");
        assert!(!kept.is_kept_from((SPACE, &other), NOBODY, Nanos(2)));
        read(&mut kept, &other, age(6), 2);
        assert!(is_kept(&kept, age(6)), "the older one keeps it");
        assert!(!kept.is_kept_from((SPACE, &other), NOBODY, Nanos(2)), "and nobody else does");
        read(&mut kept, &key, age(3), 2);
        assert!(is_kept(&kept, age(5)) && !is_kept(&kept, age(3)));
        kept.note_passed(age(5));
        assert!(is_kept(&kept, NOBODY), "that was another's");
        kept.note_passed(age(3));
        assert!(!is_kept(&kept, NOBODY));
    }

    #[test]
    fn nothing_is_kept_for_ever_nor_without_bound() {
        let (mut kept, key) = (KeptKeys::default(), SmallBytes::from("key"));
        read(&mut kept, &key, age(5), 1);
        let end = KEPT_FOR.0 + 1;
        assert!(kept.is_kept_from((SPACE, &key), NOBODY, Nanos(end - 1)));
        assert!(!kept.is_kept_from((SPACE, &key), NOBODY, Nanos(end)));
        read(&mut kept, &key, age(6), end);
        assert!(kept.is_kept_from((SPACE, &key), age(7), Nanos(end)), "a younger one follows");
        let keys = (0..2 * KEPT_MAX as u32).map(|number| SmallBytes::new(&number.to_be_bytes()));
        let keys: Vec<_> = keys.collect();
        keys.iter().for_each(|key| read(&mut kept, key, age(5), end));
        assert_eq!(kept.kept.len(), KEPT_MAX);
        read(&mut kept, &keys[0], age(5), 2 * end - 1);
        read(&mut kept, &SmallBytes::from("last"), age(5), 2 * end);
        assert_eq!(kept.kept.len(), 2, "what it read in earlier attempts makes room");
        assert!(kept.is_kept_from((SPACE, &keys[0]), NOBODY, Nanos(2 * end)));
        assert!(!kept.is_kept_from((SPACE, &keys[1]), NOBODY, Nanos(2 * end)));
        read(&mut kept, &keys[0], age(6), 4 * end);
        assert_eq!(kept.kept.len(), 1, "another's are over with it");
    }

    #[test]
    #[should_panic(expected = "an object is kept for one that has no age")]
    fn who_has_no_age_keeps_nothing() {
        let kept = [((SPACE, "key".into()), Nanos(1))].into();
        KeptKeys { age: NOBODY, kept, until: Nanos(1) }.assert_invariants();
    }

    #[test]
    fn ages_are_sent_where_there_are_some() {
        for (age, bytes) in [(NOBODY, 1), (age(5), 2)] {
            let mut out = Vec::new();
            age.encode(&mut out);
            assert!(out.len() >= bytes);
            assert_eq!(TransactionAge::decode(&mut Reader::new(&out)), Ok(age));
        }
        assert!(NOBODY.is_of(NodeId(3)) && age(5).is_of(NodeId(7)) && !age(5).is_of(NodeId(3)));
    }
}
