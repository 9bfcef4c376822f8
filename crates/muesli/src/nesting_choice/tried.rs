//! A model in a comparison: how long transactions take with it, and what it could gain.
//!
//! Closed children save attempts that end within a part, as that alone is run again. Open ones save
//! attempts that end after a part, as that has committed. Neither saves more of the time than such
//! attempts and the pauses after them take; and both cost what is observed of their own ends. Where
//! that is less than a model must gain, it need not be tried for long: it goes as soon as it does
//! not gain as much, without there being so many transactions that chance is out of the question.

use serde::{Deserialize, Serialize};

use super::NestingModel;
use super::took::Took;
use super::watch::ChangeWatch;

/// Besides what was seen there may be so many more of which none was, but for one time in twenty
/// (the rule of three).
const UNSEEN: f64 = 3.0;
/// What a model must be able to gain: no more than this is lost by not trying it.
const MUST_GAIN: f64 = 0.05;

/// Why a model is not tried any more in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftOut {
    /// Transactions take longer with it than with another one, and that is no chance.
    Slower,
    /// Too few attempts end so that it would save them, and it is not faster by 5 % (open children
    /// where a node chooses alone: 10 %) as far as it was tried.
    SavesNothing,
}

/// A model in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Tried {
    pub model: NestingModel,
    pub took: Took,
    pub watch: ChangeWatch,
    /// Why it is not tried any more.
    pub left_out: Option<LeftOut>,
}

/// The one with which transactions take the least time.
pub(super) fn fastest<'a>(tried: impl Iterator<Item = &'a Tried>) -> Tried {
    let least = tried.min_by(|a, b| a.took.mean().total_cmp(&b.took.mean()));
    *least.expect("one stays")
}

impl Tried {
    pub fn new(model: NestingModel) -> Tried {
        Tried { model, took: Took::default(), watch: ChangeWatch::default(), left_out: None }
    }

    /// Whether it has no locks and the fastest one has: those of open children are in the way of
    /// places that have chosen otherwise, and the time of who has them does not tell of it.
    pub fn is_less_in_the_way_than(&self, fastest: &Tried) -> bool {
        fastest.model == NestingModel::Open && self.model != NestingModel::Open
    }

    /// Whether it may be chosen in place of the fastest one, whose locks are not worth it unless it
    /// gains so much by them.
    pub fn may_replace(&self, fastest: &Tried, worth_locks: f64) -> bool {
        self.is_less_in_the_way_than(fastest) && self.took.may_be_within(&fastest.took, worth_locks)
    }

    /// What it must gain over a simpler one.
    fn must_gain(&self, worth_locks: f64) -> f64 {
        match self.model {
            NestingModel::Flat | NestingModel::Closed => MUST_GAIN,
            NestingModel::Open => worth_locks,
        }
    }

    /// Whether transactions take so much less time with it, which may be chance.
    pub fn gains_over(&self, simpler: &Took, worth_locks: f64) -> bool {
        simpler.mean() > (1.0 + self.must_gain(worth_locks)) * self.took.mean()
    }

    /// Whether it cannot gain enough over a simpler one: by what attempts of that took which this
    /// one would save, and by what its children's ends take, as far as it was tried.
    pub fn cannot_gain_over(&self, simpler: &Took, worth_locks: f64) -> bool {
        let seen = &simpler.seen;
        if simpler.attempts == 0 {
            return false;
        }
        let saved = match self.model {
            NestingModel::Flat => return false,
            NestingModel::Closed if seen.depth == 0 => return true, // There are no children.
            NestingModel::Closed => seen.within_parts(),
            NestingModel::Open => seen.after_part,
        };
        let (attempt, all) = (simpler.attempt() as f64, simpler.busy() as f64);
        let lost = seen.lost.as_nanos() as f64 / seen.aborted.max(1) as f64;
        let saves_most = (saved as f64 * lost.max(attempt) + UNSEEN * attempt) / all;
        let costs = match self.took.committed {
            0 => 0.0,
            many => self.took.seen.sub_commits.as_nanos() as f64 / many as f64 / simpler.mean(),
        };
        saves_most - costs <= self.must_gain(worth_locks)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::observation::NestingObservation;
    use super::super::took::TimeSlot;
    use super::*;

    /// A model in whose slot a hundred attempts committed, unless `aborted` of them.
    fn tried(model: NestingModel, aborted: u64, seen: NestingObservation) -> Tried {
        let mut tried = Tried::new(model);
        let seen = NestingObservation { aborted, depth: 1, ..seen };
        let slot = TimeSlot { busy: 100_000, committed: 100 - aborted, attempts: 100, seen };
        tried.took.add(&slot);
        tried
    }

    const NOTHING: NestingObservation = NestingObservation {
        aborted: 0,
        in_part: [0; 4],
        after_part: 0,
        partial: [0; 4],
        refused: 0,
        lost: Duration::ZERO,
        sub_commits: Duration::ZERO,
        parts: 0,
        depth: 0,
    };

    #[test]
    fn closed_children_gain_where_conflicts_are_found_within_parts() {
        let closed = Tried::new(NestingModel::Closed);
        let at_commit = NestingObservation { after_part: 30, ..NOTHING };
        assert!(closed.cannot_gain_over(&tried(NestingModel::Flat, 30, at_commit).took, 0.1));
        let within = NestingObservation { in_part: [30, 0, 0, 0], ..NOTHING };
        assert!(!closed.cannot_gain_over(&tried(NestingModel::Flat, 30, within).took, 0.1));
        let few = Tried::new(NestingModel::Flat);
        assert!(!closed.cannot_gain_over(&few.took, 0.1), "nothing was seen yet");
    }

    #[test]
    fn open_children_gain_where_conflicts_follow_parts_by_more_than_they_cost() {
        let open = Tried::new(NestingModel::Open);
        let first = NestingObservation { in_part: [30, 0, 0, 0], ..NOTHING };
        assert!(open.cannot_gain_over(&tried(NestingModel::Flat, 30, first).took, 0.1));
        let after = NestingObservation { after_part: 30, ..NOTHING };
        let flat = tried(NestingModel::Flat, 30, after);
        assert!(!open.cannot_gain_over(&flat.took, 0.1));
        let dear = NestingObservation { sub_commits: Duration::from_micros(50), ..NOTHING };
        assert!(
            tried(NestingModel::Open, 0, dear).cannot_gain_over(&flat.took, 0.1),
            "500 ns a commit"
        );
    }

    #[test]
    fn few_conflicts_with_long_pauses_after_them_may_be_saved_too() {
        let within = |lost| NestingObservation { in_part: [1, 0, 0, 0], lost, ..NOTHING };
        let closed = Tried::new(NestingModel::Closed);
        let short = tried(NestingModel::Flat, 1, within(Duration::from_nanos(1_000)));
        assert!(closed.cannot_gain_over(&short.took, 0.1));
        let long = tried(NestingModel::Flat, 1, within(Duration::from_nanos(30_000)));
        assert!(!closed.cannot_gain_over(&long.took, 0.1));
    }

    #[test]
    fn without_parts_there_are_no_children() {
        let mut flat = Tried::new(NestingModel::Flat);
        flat.took.add(&TimeSlot { busy: 100, committed: 1, attempts: 1, seen: NOTHING });
        assert!(Tried::new(NestingModel::Closed).cannot_gain_over(&flat.took, 0.1));
        assert!(
            !Tried::new(NestingModel::Open).cannot_gain_over(&flat.took, 0.1),
            "one attempt says little"
        );
    }
}
