//! The timestamps of a repository.
//!
//! A proposal is the time of the node's clock, or one step above all that the repository has done
//! or proposed and all that the session has seen, whichever is later. So proposals of a repository
//! ascend, and as each bears its number, no two repositories ever propose the same one. That
//! transactions of two repositories are proposed nearly the same timestamp, where clocks agree, is
//! what makes them fast; nothing depends on it.

use muesli_core::{Nanos, RepositoryId, Timestamp};

/// A step of timestamps is so many nanoseconds, as a power of two: a little over a microsecond.
pub(in crate::granola) const STEP_BITS: u32 = 10;

/// Timestamps done, proposed, and allowed.
///
/// Invariants: none of them ever falls, and what an earlier life may have done lies below all that
/// is proposed, and below the upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    repository: RepositoryId,
    /// The highest at which anything was done (thesis: lastExecTS).
    pub done: Timestamp,
    /// The highest proposed here.
    pub proposed: Timestamp,
    /// The highest place that is known of what is to be done here.
    pub placed: Timestamp,
    /// Nothing is done or proposed above it.
    pub upper_bound: Timestamp,
    /// An earlier life may have done anything up to this.
    pub earlier: Timestamp,
}

impl Clock {
    pub fn new(repository: RepositoryId) -> Clock {
        let zero = Timestamp::ZERO;
        let (done, proposed, placed) = (zero, zero, zero);
        Clock { repository, done, proposed, placed, upper_bound: zero, earlier: zero }
    }

    /// A proposal above `lower_bound` and all that was done, proposed and placed here.
    pub fn propose(&mut self, lower_bound: Timestamp, now: Nanos) -> Timestamp {
        let above = lower_bound.max(self.done).max(self.proposed).max(self.placed);
        let counter = (now.0 >> STEP_BITS).max(above.counter() + 1);
        self.proposed = Timestamp::new(counter, self.repository);
        assert!(self.proposed > above, "{} is proposed, and {above} is known", self.proposed);
        self.proposed
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let Clock { earlier, proposed, upper_bound, .. } = *self;
        assert!(earlier <= proposed, "{proposed} is proposed, and an earlier life did {earlier}");
        assert!(
            earlier <= upper_bound,
            "an earlier life did {earlier}, above the ceiling {upper_bound}"
        );
    }

    /// Something was done at `at`.
    pub fn raise(&mut self, at: Timestamp) {
        self.done = self.done.max(at);
    }

    /// Something will be done at `at`: whoever comes now goes behind it, and it need not wait for
    /// their votes.
    pub fn place(&mut self, at: Timestamp) {
        self.placed = self.placed.max(at);
    }

    /// The next upper bound, so many steps ahead, if one is needed before anything is done or
    /// proposed at `at`.
    pub fn upper_bound_for(&mut self, at: Timestamp, steps: u64) -> Option<Timestamp> {
        if at <= self.upper_bound {
            return None;
        }
        self.upper_bound = at.after(steps, self.repository);
        Some(self.upper_bound)
    }

    /// An earlier life may have done and proposed anything up to `upper_bound`.
    pub fn restart_above(&mut self, upper_bound: Timestamp) {
        self.upper_bound = self.upper_bound.max(upper_bound);
        self.proposed = self.proposed.max(upper_bound);
        self.earlier = self.earlier.max(upper_bound);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn proposals_ascend_and_lie_above_all_that_is_known(
            steps in prop::collection::vec((0u64..5_000, 0u64..3, 0u64..3), 1..60),
        ) {
            let mut clock = Clock::new(RepositoryId(3));
            let mut last = Timestamp::ZERO;
            for (now, lower_bound, done) in steps {
                let near = |steps| last.after(steps, RepositoryId(9));
                let (lower_bound, done) = (near(lower_bound), near(done));
                clock.raise(done);
                let at = clock.propose(lower_bound, Nanos(now << STEP_BITS));
                prop_assert!(at > lower_bound && at > done && at > last && at.counter() >= now);
                prop_assert_eq!(at.repository(), RepositoryId(3));
                last = at;
                let upper_bound = clock.upper_bound_for(at, 1 << 19);
                let is_new = upper_bound.is_none_or(|it| it == clock.upper_bound);
                prop_assert!(clock.upper_bound >= at && is_new);
                let mut next = Clock::new(RepositoryId(3));
                next.restart_above(clock.upper_bound);
                prop_assert!(next.propose(Timestamp::ZERO, Nanos(0)) > last);
            }
        }
    }
}
