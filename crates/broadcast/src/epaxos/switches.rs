//! The rules that tests break.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

breakable! {
    /// What EPaxos keeps to.
    enum EpaxosSwitch {
        /// A member says in which ballot it accepted dependencies. As printed first, it says the
        /// ballot that it is asked in (found by Sutra in 2020).
        AcceptedBallots = "accepted_ballots",
        /// Who takes a command over makes sure that no other one is in its way before it keeps what
        /// may have been decided at once.
        Validates = "validates",
        /// A command is said to come after all that conflict with it and were delivered before it
        /// here. Broken: after those of them of which members have agreed that.
        NamesDelivered = "names_delivered",
        /// Commands are forgotten that each member has said it has delivered.
        CollectsExecuted = "collects_executed",
    }
}

/// EPaxos as it should be, unless a test breaks it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switches {
    broken: Broken<EpaxosSwitch>,
}

impl Switches {
    pub(super) fn keeps(&self, switch: EpaxosSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<EpaxosSwitch> for Switches {
    fn set(&mut self, switch: EpaxosSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
