//! Whether transactions take another time than before.

use super::took::{TimeSlot, Took};

/// So many slots are compared with the first ones; more, where transactions are so few that not
/// even so many would have committed if nothing had changed.
const LOOK: u64 = 4;
const LOOK_COMMITS: u64 = 16;
/// The time has changed where it differs by this share, so many times in a row.
const CHANGE: f64 = 0.3;
const CHANGES: u32 = 2;

/// Slots in which transactions had the same model, the first ones and the latest ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChangeWatch {
    first: Took,
    latest: Took,
    changes: u32,
}

impl ChangeWatch {
    /// Another slot; whether the time has changed.
    pub fn add(&mut self, slot: &TimeSlot) -> bool {
        if self.first.slots() < LOOK || self.first.committed < LOOK_COMMITS {
            self.first.add(slot);
            return false;
        }
        self.latest.add(slot);
        if self.latest.slots() < LOOK || self.latest.expected(&self.first) < LOOK_COMMITS {
            return false;
        }
        let is_changed = std::mem::take(&mut self.latest).differs_from(&self.first, CHANGE);
        self.changes = if is_changed { self.changes + 1 } else { 0 };
        self.changes >= CHANGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many slots a change is seen, if so many commit in each.
    fn seen_after(watch: &mut ChangeWatch, slots: usize, committed: u64) -> Option<usize> {
        let slot = TimeSlot { busy: 1_000, committed, attempts: committed };
        (1..=slots).find(|_| watch.add(&slot))
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
    fn where_few_commit_more_slots_are_looked_at() {
        let mut watch = ChangeWatch::default();
        assert_eq!(seen_after(&mut watch, 160, 1), None);
        assert_eq!(seen_after(&mut watch, 160, 4), Some(32));
    }
}
