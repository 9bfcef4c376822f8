//! What undecided updates have read at a repository, and up to where it stays the newest.

use std::collections::BTreeMap;

use muesli_core::ranges::KeyRange;
use muesli_core::{Abort, SmallBytes, SpaceId, Timestamp, TxnId};

use super::{HierarchySwitch, IntervalVote, Intervals, Switches};
use crate::two_phase::message::Few;
use crate::two_phase::{Key, UpdateReads, ValidationResult, VariantState};

/// A read of an undecided update, and its upper bound.
type HeldRead = (TxnId, Timestamp);

/// The reads that writers are kept above.
///
/// Invariants: a key that is kept has been read by somebody, and no bound is that of a vote which
/// binds nobody.
#[derive(Clone, Debug)]
pub struct HeldReads {
    switches: Switches,
    keys: BTreeMap<(SpaceId, SmallBytes), Few<HeldRead>>,
    ranges: Vec<(KeyRange, HeldRead)>,
}

impl HeldReads {
    /// Above all who have read a key, and are undecided.
    fn bound_of(&self, (space, key): Key<'_>) -> Timestamp {
        let read = self.keys.get(&(space, key.clone())).into_iter().flatten();
        let scanned = self.ranges.iter().filter(|(range, _)| range.contains(space, key));
        let all = read.chain(scanned.map(|(_, held)| held)).map(|(_, until)| *until);
        all.max().unwrap_or(Timestamp::ZERO)
    }
}

impl VariantState<Intervals> for HeldReads {
    fn new(switches: &Switches, _: u64) -> HeldReads {
        HeldReads { switches: *switches, keys: BTreeMap::new(), ranges: Vec::new() }
    }

    fn assert_invariants(&self) {
        assert!(self.keys.values().all(|held| !held.is_empty()), "a key that nobody has read");
        let read = self.keys.values().flatten();
        let all = read.chain(self.ranges.iter().map(|(_, held)| held));
        let binds = |(_, until): &HeldRead| *until < Timestamp::MAX;
        assert!(all.into_iter().all(binds), "a read that binds every writer for ever");
    }

    fn note_read(&mut self, _: Key<'_>, _: &Timestamp, _: &Timestamp, (): ()) {}

    fn note_scan(&mut self, _: &KeyRange, _: &Timestamp, _: &Timestamp, (): ()) {}

    fn suffers_stale_reads(&self) -> bool {
        false
    }

    fn note_missed(&self, _: Key<'_>, _: Timestamp, _: &mut ValidationResult) -> Result<(), Abort> {
        unreachable!("stale reads are refused before")
    }

    fn note_write(&self, key: Key<'_>, _: Timestamp, (): (), validation: &mut ValidationResult) {
        if self.switches.keeps(HierarchySwitch::WritersAboveIntervals) {
            validation.lower_bound = validation.lower_bound.max(self.bound_of(key));
        }
    }

    fn note_prepared(&mut self, read: UpdateReads<'_>, yes: &IntervalVote) {
        assert!(yes.proposal < yes.upper_bound, "{} votes for no interval", read.txn);
        if yes.upper_bound == Timestamp::MAX {
            return;
        }
        let held = (read.txn, yes.upper_bound);
        for (space, key, _) in read.keys {
            self.keys.entry((*space, key.clone())).or_default().push(held);
        }
        self.ranges.extend(read.scans.iter().map(|range| (range.clone(), held)));
    }

    fn note_finished(&mut self, read: UpdateReads<'_>) {
        for (space, key, _) in read.keys {
            let key = (*space, key.clone());
            let Some(held) = self.keys.get_mut(&key) else { continue };
            held.retain(|(txn, _)| *txn != read.txn);
            if held.is_empty() {
                self.keys.remove(&key);
            }
        }
        if !read.scans.is_empty() {
            self.ranges.retain(|(_, (txn, _))| *txn != read.txn);
        }
        let is_gone = self.ranges.iter().all(|(_, (txn, _))| *txn != read.txn);
        assert!(is_gone, "{} has ended, and keeps writers out", read.txn);
    }

    fn note_written(&mut self, _: Key<'_>, _: &Timestamp) {}

    fn note_read_by(&mut self, _: Key<'_>, _: &Timestamp) {}

    fn note_scanned_by(&mut self, _: &KeyRange, _: &Timestamp) {}

    fn restarted(&mut self, _: &Timestamp) {}

    fn collect(&mut self, _: &Timestamp) {}
}
