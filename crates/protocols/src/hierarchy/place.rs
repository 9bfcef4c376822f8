//! What a vote of the timestamps' variant tells.

use std::fmt;

use muesli_core::{RepositoryId, Timestamp, wire_struct};

/// What was read stays the newest for so many steps of the clock above the proposal, or up to the
/// end of its transaction. Clocks leave room between proposals for commits in one step: these are
/// some sixteen proposals.
const STEPS: u64 = 1_024;

/// A vote of yes: the proposal p and the bound u of the interval in which it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntervalVote {
    /// The timestamp proposed.
    pub proposal: Timestamp,
    /// Up to here nobody writes what was read; [`Timestamp::MAX`] if nothing was.
    pub upper_bound: Timestamp,
}

wire_struct!(IntervalVote { proposal: Timestamp, upper_bound: Timestamp });

impl IntervalVote {
    /// The vote of a transaction that has read something here, or has not.
    pub(super) fn new(proposal: Timestamp, has_read: bool) -> IntervalVote {
        // Where clocks have come to their end, the next step is all that there is.
        let is_at_end = proposal.counter() + STEPS > Timestamp::FARTHEST.counter();
        let steps = if is_at_end { 1 } else { STEPS };
        let upper_bound =
            if has_read { proposal.after(steps, RepositoryId(0)) } else { Timestamp::MAX };
        assert!(proposal < upper_bound, "the interval of {proposal} is empty");
        IntervalVote { proposal, upper_bound }
    }
}

/// It binds nobody who writes.
impl From<Timestamp> for IntervalVote {
    fn from(proposal: Timestamp) -> IntervalVote {
        IntervalVote { proposal, upper_bound: Timestamp::MAX }
    }
}

impl From<IntervalVote> for Timestamp {
    fn from(vote: IntervalVote) -> Timestamp {
        vote.proposal
    }
}

impl fmt::Display for IntervalVote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.upper_bound {
            Timestamp::MAX => write!(f, "{}", self.proposal),
            until => write!(f, "{} until {until}", self.proposal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_never_empty() {
        for counter in
            [1, STEPS, Timestamp::FARTHEST.counter() - STEPS, Timestamp::FARTHEST.counter()]
        {
            let proposal = Timestamp::new(counter, RepositoryId(3));
            let vote = IntervalVote::new(proposal, true);
            assert!(vote.upper_bound > proposal && vote.upper_bound < Timestamp::MAX, "{vote}");
            assert_eq!(IntervalVote::new(proposal, false).upper_bound, Timestamp::MAX);
        }
    }
}
