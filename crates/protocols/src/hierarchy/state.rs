//! What a leaf keeps beside versions and locks: what undecided updates have read there, and up to
//! where it stays the newest; and, as printed, `LATEST`.

use std::collections::BTreeMap;

use muesli_core::ranges::KeyRange;
use muesli_core::{Abort, Nanos, SmallBytes, SpaceId, Timestamp, TxnId};

use super::{IntervalVote, Leaves, Switches};
use crate::two_phase::message::Few;
use crate::two_phase::policy::{TreeChoice, TreeSwitch};
use crate::two_phase::{Key, PreparedKeys, ValidationResult, VariantState};

/// A read of an undecided update, and its upper bound.
type HeldRead = (TxnId, Timestamp);

/// What a leaf keeps.
///
/// Invariants: a key that is held has been read by somebody, no bound is that of a vote which binds
/// nobody, and nothing is kept as printed where all rules hold.
#[derive(Clone, Debug)]
pub struct LeafState {
    choice: TreeChoice,
    /// The reads that writers are kept above.
    keys: BTreeMap<(SpaceId, SmallBytes), Few<HeldRead>>,
    ranges: Vec<(KeyRange, HeldRead)>,
    latest: Latest,
    /// Whether `LATEST` is kept, because of what is wrong with it.
    keeps_latest: bool,
}

/// `LATEST_OBJECT_VERSIONS`, as the thesis prints it and in other ways that are wrong.
#[derive(Clone, Debug, Default)]
struct Latest {
    versions: BTreeMap<(SpaceId, SmallBytes), Timestamp>,
    /// How many undecided updates write a key.
    undecided: BTreeMap<(SpaceId, SmallBytes), u32>,
}

impl LeafState {
    /// Above all who have read a key, and are undecided.
    #[inline(always)]
    fn bound_of(&self, key: Key<'_>) -> Timestamp {
        if self.keys.is_empty() && self.ranges.is_empty() {
            return Timestamp::ZERO;
        }
        self.bound_among_reads(key)
    }

    // Not in line: where nobody is undecided nothing of it is needed.
    #[inline(never)]
    fn bound_among_reads(&self, (space, key): Key<'_>) -> Timestamp {
        let read = self.keys.get(&(space, key.clone())).into_iter().flatten();
        let scanned = self.ranges.iter().filter(|(range, _)| range.contains(space, key));
        let all = read.chain(scanned.map(|(_, held)| held)).map(|(_, until)| *until);
        all.max().unwrap_or(Timestamp::ZERO)
    }

    #[inline(never)]
    fn note_latest(&mut self, key: Key<'_>, at: Timestamp) {
        // As printed nobody raises what was set when the leaf voted.
        let has_voted = self.latest.undecided.contains_key(&(key.0, key.1.clone()));
        if self.choice.keeps(TreeSwitch::NewestAsInstalled) || !has_voted {
            self.set_latest(key, at);
        }
    }

    fn set_latest(&mut self, (space, key): Key<'_>, at: Timestamp) {
        assert!(self.keeps_latest, "`LATEST` is set, and nothing is wrong with it");
        assert!(at > Timestamp::ZERO, "nobody writes at zero");
        self.latest.versions.insert((space, key.clone()), at);
    }
}

impl VariantState<Leaves> for LeafState {
    fn new(switches: &Switches, _: u64) -> LeafState {
        let wrong = [
            TreeSwitch::NewestAsInstalled,
            TreeSwitch::NewestRises,
            TreeSwitch::ReadsLeaveNoVersion,
        ];
        LeafState {
            choice: switches.choice,
            keys: BTreeMap::new(),
            ranges: Vec::new(),
            latest: Latest::default(),
            keeps_latest: wrong.into_iter().any(|switch| !switches.choice.keeps(switch)),
        }
    }

    fn assert_invariants(&self) {
        assert!(self.keys.values().all(|held| !held.is_empty()), "a key that nobody has read");
        let read = self.keys.values().flatten();
        let all = read.chain(self.ranges.iter().map(|(_, held)| held));
        let binds = |(_, until): &HeldRead| *until < Timestamp::MAX;
        assert!(all.into_iter().all(binds), "a read that binds every writer for ever");
        let is_right = self.latest.versions.is_empty() && self.latest.undecided.is_empty();
        assert!(is_right || self.keeps_latest, "`LATEST` is kept, and nothing is wrong with it");
    }

    fn note_read(&mut self, _: Key<'_>, _: &Timestamp, _: &Timestamp, _: (), _: Nanos) {}

    fn is_kept_from(&self, _: Key<'_>, _: (), _: Nanos) -> bool {
        false
    }

    fn note_passed(&mut self, _: ()) {}

    fn note_scan(&mut self, _: &KeyRange, _: &Timestamp, _: &Timestamp, _: ()) {}

    fn suffers_stale_reads(&self) -> bool {
        false
    }

    #[inline]
    fn newest(&self, (space, key): Key<'_>, installed: Timestamp) -> Timestamp {
        if self.latest.versions.is_empty() {
            return installed;
        }
        let known = self.latest.versions.get(&(space, key.clone()));
        known.copied().unwrap_or(installed)
    }

    fn note_missed(&self, _: Key<'_>, _: Timestamp, _: &mut ValidationResult) -> Result<(), Abort> {
        unreachable!("stale reads are refused before")
    }

    #[inline(always)]
    fn note_write(&self, key: Key<'_>, _: Timestamp, _: (), result: &mut ValidationResult) {
        if self.choice.keeps(TreeSwitch::WritersAboveIntervals) {
            result.lower_bound = result.lower_bound.max(self.bound_of(key));
        }
    }

    fn note_prepared(&mut self, keys: PreparedKeys<'_>, yes: &IntervalVote) {
        let IntervalVote { proposal, upper_bound: until } = *yes;
        assert!(proposal < until, "{} votes for no interval", keys.txn);
        if self.keeps_latest {
            for (space, key, _) in keys.writes {
                *self.latest.undecided.entry((*space, key.clone())).or_default() += 1;
                if !self.choice.keeps(TreeSwitch::NewestAsInstalled) {
                    self.set_latest((*space, key), proposal);
                }
            }
        }
        if until == Timestamp::MAX {
            return;
        }
        let held = (keys.txn, until);
        for (space, key, _) in keys.reads {
            self.keys.entry((*space, key.clone())).or_default().push(held);
        }
        self.ranges.extend(keys.scans.iter().map(|range| (range.clone(), held)));
    }

    fn note_finished(&mut self, keys: PreparedKeys<'_>) {
        if !self.latest.undecided.is_empty() {
            for (space, key, _) in keys.writes {
                let key = (*space, key.clone());
                let left = self.latest.undecided.get(&key).copied().unwrap_or_default();
                match left {
                    0 | 1 => drop(self.latest.undecided.remove(&key)),
                    _ => drop(self.latest.undecided.insert(key, left - 1)),
                }
            }
        }
        for (space, key, _) in keys.reads {
            let key = (*space, key.clone());
            let Some(held) = self.keys.get_mut(&key) else { continue };
            held.retain(|(txn, _)| *txn != keys.txn);
            assert!(held.iter().all(|(_, until)| *until < Timestamp::MAX), "a read binds for ever");
            if held.is_empty() {
                self.keys.remove(&key);
            }
        }
        if !keys.scans.is_empty() {
            self.ranges.retain(|(_, (txn, _))| *txn != keys.txn);
        }
        let is_gone = self.ranges.iter().all(|(_, (txn, _))| *txn != keys.txn);
        assert!(is_gone, "{} has ended, and keeps writers out", keys.txn);
    }

    #[inline(always)]
    fn note_written(&mut self, key: Key<'_>, place: &Timestamp) {
        if self.keeps_latest {
            self.note_latest(key, *place);
        }
    }

    #[inline]
    fn note_read_by(&mut self, key: Key<'_>, place: &Timestamp) {
        if !self.choice.keeps(TreeSwitch::ReadsLeaveNoVersion) {
            self.set_latest(key, *place);
        }
    }

    fn note_scanned_by(&mut self, _: &KeyRange, _: &Timestamp) {}

    fn restarted(&mut self, _: &Timestamp) {}

    fn collect(&mut self, low: &Timestamp) {
        self.latest.versions.retain(|_, at| *at > *low);
    }
}
