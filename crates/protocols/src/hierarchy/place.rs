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
        let until = || proposal.after(STEPS, RepositoryId(0)).min(Timestamp::FARTHEST);
        let upper_bound = if has_read { until() } else { Timestamp::MAX };
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
