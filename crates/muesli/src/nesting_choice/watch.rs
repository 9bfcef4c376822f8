//! Whether transactions take another time than before, or their attempts end otherwise.

use serde::{Deserialize, Serialize};

use super::took::{TimeSlot, Took};

/// So many slots are compared with the first ones; more, where transactions are so few that not
/// even so many would have committed if nothing had changed.
const LOOK: u64 = 4;
const LOOK_COMMITS: u64 = 16;
/// The time has changed where it differs by this share, so many times in a row.
const CHANGE: f64 = 0.3;
const CHANGES: u32 = 2;
/// Attempts end otherwise where this share of them does, as many times in a row.
const OBSERVED_CHANGE: f64 = 0.2;

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotChange {
    /// The time that transactions take.
    Time,
    /// Where attempts end, and how many of them; and not so the time.
    Observed,
}

/// Slots in which transactions had the same model, the first ones and the latest ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ChangeWatch {
    first: Took,
    latest: Took,
    changes: u32,
    observed: u32,
    /// Attempts that end well are no reason: the model is the simplest one.
    only_more: bool,
}

impl ChangeWatch {
    /// Of a model that is the simplest one, or is not.
    pub fn of(is_simplest: bool) -> ChangeWatch {
        ChangeWatch { only_more: is_simplest, ..ChangeWatch::default() }
    }

    /// Whether it can be added to: what is read from a row may be anything.
    pub fn is_plausible(&self) -> bool {
        let counts = self.changes.max(self.observed) < u32::MAX / 2;
        counts && self.first.is_plausible() && self.latest.is_plausible()
    }

    /// Another slot; what has changed by now.
    pub fn add(&mut self, slot: &TimeSlot) -> Option<SlotChange> {
        if self.first.slots() < LOOK || self.first.committed < LOOK_COMMITS {
            self.first.add(slot);
            return None;
        }
        self.latest.add(slot);
        if self.latest.slots() < LOOK || self.latest.expected(&self.first) < LOOK_COMMITS {
            return None;
        }
        let latest = std::mem::take(&mut self.latest);
        let count = |changes: u32, is_changed: bool| if is_changed { changes + 1 } else { 0 };
        self.changes = count(self.changes, latest.differs_from(&self.first, CHANGE));
        let (first, only_more) = (&self.first, self.only_more);
        let ends_otherwise = latest.ends_otherwise_than(first, OBSERVED_CHANGE, only_more);
        self.observed = count(self.observed, ends_otherwise);
        match (self.changes >= CHANGES, self.observed >= CHANGES) {
            (true, _) => Some(SlotChange::Time),
            (false, true) => Some(SlotChange::Observed),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::observation::NestingObservation;
    use super::*;

    /// After how many slots a change is seen, if so many commit in each.
    fn seen_after(watch: &mut ChangeWatch, slots: usize, committed: u64) -> Option<usize> {
        let slot = TimeSlot { busy: 1_000, committed, attempts: committed, ..TimeSlot::default() };
        (1..=slots).find(|_| watch.add(&slot) == Some(SlotChange::Time))
    }

    #[test]
    fn a_change_is_seen_after_two_looks() {
        let mut watch = ChangeWatch::default();
        assert_eq!(seen_after(&mut watch, 100, 20), None);
        assert_eq!(seen_after(&mut watch, 100, 18), None, "that may be chance");
        assert_eq!(seen_after(&mut watch.clone(), 100, 8), Some(8));
        assert_eq!(seen_after(&mut watch.clone(), 100, 0), Some(8));
        assert_eq!(seen_after(&mut watch, 100, 60), Some(8));
    }

    #[test]
    fn attempts_that_end_otherwise_are_seen_where_the_time_is_the_same() {
        let slot = |refused| {
            let seen = NestingObservation { refused, ..NestingObservation::default() };
            TimeSlot { busy: 1_000, committed: 20, attempts: 40, seen }
        };
        let mut watch = ChangeWatch::default();
        assert!((0..100).all(|_| watch.add(&slot(2)).is_none()));
        let seen = (1..100).find(|_| watch.add(&slot(16)) == Some(SlotChange::Observed));
        assert_eq!(seen, Some(8));
        let mut simplest = ChangeWatch::of(true);
        assert!((0..100).all(|_| simplest.add(&slot(16)).is_none()));
        assert!((0..100).all(|_| simplest.add(&slot(2)).is_none()), "it has less to save");
    }

    #[test]
    fn where_few_commit_more_slots_are_looked_at() {
        let mut watch = ChangeWatch::default();
        assert_eq!(seen_after(&mut watch, 160, 1), None);
        assert_eq!(seen_after(&mut watch, 160, 4), Some(32));
    }
}
