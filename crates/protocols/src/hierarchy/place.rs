//! What a vote of a leaf tells.

use std::fmt;

use muesli_core::{RepositoryId, Timestamp, wire_struct};

/// What was read stays the newest for so many steps of the clock above the proposal at least, or up
/// to the end of its transaction. Clocks leave room between proposals for commits in one step:
/// these are some sixteen proposals.
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
    /// The vote of a transaction. If it has read something here that is not locked, `reach` is how
    /// many steps above what was proposed here others have lately come to lie: its interval is
    /// twice as long, as what takes part elsewhere may propose as much.
    pub(super) fn new(proposal: Timestamp, reach: Option<u64>) -> IntervalVote {
        let Some(reach) = reach else { return proposal.into() };
        let wanted = STEPS + 2 * reach;
        // Where clocks have come to their end, the next step is all that there is.
        let is_at_end = proposal.counter() + wanted > Timestamp::FARTHEST.counter();
        let upper_bound = proposal.after(if is_at_end { 1 } else { wanted }, RepositoryId(0));
        assert!(upper_bound < Timestamp::MAX, "what was read at {proposal} is the newest for ever");
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
            let vote = IntervalVote::new(proposal, Some(7));
            assert!(vote.upper_bound > proposal && vote.upper_bound < Timestamp::MAX, "{vote}");
            assert_eq!(IntervalVote::new(proposal, None).upper_bound, Timestamp::MAX);
        }
    }
}
