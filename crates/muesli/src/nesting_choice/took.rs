//! How long transactions take with a model, from the slots that it had.
//!
//! By Little's law that is the time that transactions ran, all together, over how many committed.
//! How sure it is comes from how much the numbers of commits differ from slot to slot.

use serde::{Deserialize, Serialize};

use super::observation::{COUNTS_MOST, NestingObservation};

/// A model goes that is slower by more than so many standard errors. (One that goes by chance is
/// hardly better than those that stay.)
const ERRORS: f64 = 2.5;
/// An earlier choice, or else the simpler model, stays where it is slower by no more than this, or
/// by this part of a standard error.
const CLOSE: f64 = 0.03;
const CLOSE_ERRORS: f64 = 0.3;
/// How many commit in a slot varies by so many times what it would if each came by itself, as is
/// thought before anything is seen; and as many slots must say something else to be half believed.
const DISPERSION: f64 = 2.0;
const BELIEF: f64 = 4.0;

/// How long transactions took in some slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Took {
    slots: u64,
    /// Nanoseconds that transactions ran, all together.
    busy: u64,
    pub committed: u64,
    pub attempts: u64,
    /// What else was seen of them.
    pub seen: NestingObservation,
    /// The sum of squares of how many committed, each over the time that transactions ran.
    squares: f64,
}

impl Took {
    pub fn add(&mut self, slot: &TimeSlot) {
        if slot.busy > 0 {
            self.slots += 1;
            self.busy += slot.busy;
            self.committed += slot.committed;
            self.attempts += slot.attempts;
            self.seen.add(&slot.seen);
            self.squares += (slot.committed as f64).powi(2) / slot.busy as f64;
        }
    }

    /// In nanoseconds. Where none committed, as if one had.
    pub fn mean(&self) -> f64 {
        self.busy as f64 / self.committed.max(1) as f64
    }

    /// How many would have committed if they had taken as long as others.
    pub fn expected(&self, others: &Took) -> u64 {
        (self.busy as f64 / others.mean()) as u64
    }

    /// How long an attempt takes, with the pause before it, in nanoseconds.
    pub fn attempt(&self) -> u64 {
        self.busy / self.attempts.max(1)
    }

    /// Nanoseconds that transactions ran, all together.
    pub fn busy(&self) -> u64 {
        self.busy
    }

    /// Whether it can be added to: what is read from a row may be anything.
    pub fn is_plausible(&self) -> bool {
        let Took { slots, busy, committed, attempts, seen, squares } = *self;
        let slot = TimeSlot { busy, committed, attempts, seen };
        slots < COUNTS_MOST && slot.is_plausible() && squares.is_finite()
    }

    /// Of how many slots.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// The variance of how many commit, over what it would be if each came by itself.
    fn dispersion(&self) -> f64 {
        let others = self.slots.saturating_sub(1) as f64;
        let seen = (self.mean() * self.squares - self.committed as f64).max(0.0);
        ((BELIEF * DISPERSION + seen) / (BELIEF + others)).max(1.0)
    }

    /// By which factor it is slower, as a logarithm.
    fn slower_by(&self, other: &Took) -> f64 {
        (self.mean() / other.mean()).ln()
    }

    /// The standard error of that.
    fn error(&self, other: &Took) -> f64 {
        let square = |it: &Took| it.dispersion() / it.committed.max(1) as f64;
        (square(self) + square(other)).sqrt()
    }

    /// By how many standard errors the commits of both are off from what they would be if both took
    /// the same. Where none commits that says more than the error of a logarithm.
    fn commits_off(&self, other: &Took) -> f64 {
        let all = (self.committed + other.committed) as f64;
        let share = self.busy as f64 / (self.busy + other.busy).max(1) as f64;
        let dispersion = self.dispersion().max(other.dispersion());
        let variance = dispersion * all * share * (1.0 - share);
        (self.committed as f64 - all * share).abs() / variance.max(1.0).sqrt()
    }

    /// Whether it differs by this share, and that is no chance.
    pub fn differs_from(&self, other: &Took, share: f64) -> bool {
        self.slower_by(other).abs() > (1.0 + share).ln() && self.commits_off(other) > ERRORS
    }

    /// Whether another share of attempts ended within parts, after parts, or by a lock that was
    /// refused, by so much, and that is no chance; or a larger one, if only that is asked.
    pub fn ends_otherwise_than(&self, other: &Took, share: f64, only_more: bool) -> bool {
        let ends = |it: &Took| [it.seen.within_parts(), it.seen.after_part, it.seen.refused];
        let (mine, others) = (self.attempts.max(1) as f64, other.attempts.max(1) as f64);
        let dispersion = self.dispersion().max(other.dispersion());
        ends(self).into_iter().zip(ends(other)).any(|(own, before)| {
            let apart = own as f64 / mine - before as f64 / others;
            let all = (own + before) as f64 / (mine + others);
            let error = (dispersion * all * (1.0 / mine + 1.0 / others)).sqrt();
            let is_asked = apart > 0.0 || !only_more;
            is_asked && apart.abs() > share && apart.abs() > ERRORS * error
        })
    }

    /// Whether it is slower by more than this share, and that is no chance.
    pub fn is_slower_than(&self, best: &Took, share: f64) -> bool {
        self.slower_by(best) > 0.0 && self.differs_from(best, share)
    }

    /// Whether it is not slower by more than this share, or that may be chance.
    pub fn may_be_within(&self, best: &Took, share: f64) -> bool {
        let by = self.slower_by(best);
        by <= (1.0 + share).ln() || by <= self.error(best)
    }

    /// Whether it is not slower by much, or that may well be chance.
    pub fn is_close_to(&self, best: &Took) -> bool {
        let by = self.slower_by(best);
        by <= (1.0 + CLOSE).ln() || by <= CLOSE_ERRORS * self.error(best)
    }
}

/// What happened in the slot that is under way, after its first part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TimeSlot {
    /// Nanoseconds that transactions ran.
    pub busy: u64,
    pub committed: u64,
    /// How many attempts began.
    pub attempts: u64,
    /// What else was seen of those that ended.
    pub seen: NestingObservation,
}

impl TimeSlot {
    /// What happened elsewhere in the same slot.
    pub fn add(&mut self, other: &TimeSlot) {
        self.busy += other.busy;
        self.committed += other.committed;
        self.attempts += other.attempts;
        self.seen.add(&other.seen);
    }

    /// Whether it can be added to others without end: what is read from a row may be anything.
    pub fn is_plausible(&self) -> bool {
        let TimeSlot { busy, committed, attempts, seen } = self;
        [busy, committed, attempts].into_iter().all(|it| *it < COUNTS_MOST) && seen.is_plausible()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(slots: u64, busy: u64, committed: &[u64]) -> Took {
        let mut took = Took::default();
        for slot in 0..slots {
            let committed = committed[slot as usize % committed.len()];
            took.add(&TimeSlot { busy, committed, attempts: 2 * committed, ..TimeSlot::default() });
        }
        took
    }

    #[test]
    fn few_slots_are_enough_where_the_difference_is_large() {
        let fast = took(2, 1_000, &[30]);
        assert!(took(2, 1_000, &[10]).is_slower_than(&fast, 0.03));
        assert!(!took(2, 1_000, &[22]).is_slower_than(&fast, 0.03), "that may be chance");
        assert!(took(24, 1_000, &[22]).is_slower_than(&took(24, 1_000, &[30]), 0.03));
    }

    #[test]
    fn a_model_with_which_nothing_commits_is_slower() {
        assert!(took(2, 1_000, &[0]).is_slower_than(&took(2, 1_000, &[12]), 0.03));
        assert!(!took(2, 1_000, &[0]).is_slower_than(&took(2, 1_000, &[1]), 0.03));
    }

    #[test]
    fn attempts_that_end_elsewhere_are_told_from_chance() {
        let ending = |after_part| {
            let seen = NestingObservation { after_part, ..NestingObservation::default() };
            let slot = TimeSlot { busy: 1_000, committed: 20, attempts: 40, seen };
            let mut took = Took::default();
            (0..4).for_each(|_| took.add(&slot));
            took
        };
        assert!(ending(20).ends_otherwise_than(&ending(2), 0.2, true));
        assert!(ending(2).ends_otherwise_than(&ending(20), 0.2, false));
        assert!(!ending(2).ends_otherwise_than(&ending(20), 0.2, true));
        assert!(!ending(20).ends_otherwise_than(&ending(16), 0.2, false));
        assert!(!ending(0).ends_otherwise_than(&ending(0), 0.2, false));
    }

    #[test]
    fn what_differs_from_slot_to_slot_takes_more_of_them() {
        let (even, uneven) = (took(12, 1_000, &[14]), took(12, 1_000, &[0, 0, 42]));
        assert!(even.is_slower_than(&took(12, 1_000, &[22]), 0.03));
        assert!(!uneven.is_slower_than(&took(12, 1_000, &[0, 0, 66]), 0.03));
        assert!(uneven.dispersion() > 3.0 * even.dispersion());
    }
}
