//! Where the leader is placed, and the rules that tests break.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

use crate::command::MemberId;

breakable! {
    /// What Generalized Paxos keeps to.
    enum GeneralizedSwitch {
        /// A new ballot keeps what may have been chosen in an earlier one.
        KeepsReported = "keeps_reported",
        /// Two fast quorums and each classic one have a member in common. Broken: 2, 3 and 5 of 3,
        /// 5 and 7.
        FreeVoteQuorums = "free_vote_quorums",
        /// A command is learned at once where members agree what comes before it. Broken: where
        /// enough of them have voted, after all that some of them named.
        ComparesVotes = "compares_votes",
        /// What a leader orders comes after what it has ordered before.
        KeepsOwnOrder = "keeps_own_order",
        /// Members vote in a new ballot once they know what its leader has ordered.
        StartsComplete = "starts_complete",
        /// Who does not answer that it votes in a ballot is asked less often each time.
        AsksLessOften = "asks_less_often",
        /// A command is said to come after all that conflict with it and were delivered before it
        /// here. Broken: after those of them of which members have agreed that.
        NamesDelivered = "names_delivered",
        /// Commands are forgotten that each member has said it has delivered.
        CollectsDelivered = "collects_delivered",
    }
}

/// Generalized Paxos as it should be, unless a test breaks it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switches {
    /// Who leads the first ballot.
    pub leader: MemberId,
    broken: Broken<GeneralizedSwitch>,
}

impl Switches {
    /// The leader is placed at this member.
    pub fn led_by(leader: MemberId) -> Switches {
        Switches { leader, ..Switches::default() }
    }

    pub(super) fn keeps(&self, switch: GeneralizedSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<GeneralizedSwitch> for Switches {
    fn set(&mut self, switch: GeneralizedSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
