//! The rules that tests break.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

breakable! {
    /// What members of an epoch keep to.
    enum EpochSwitch {
        /// A member with which the group began, and that has no memory any more, is given no
        /// state. Broken, it goes on under its old name.
        FoundersRemember = "founders_remember",
        /// What is delivered after a change in the same epoch is applied nowhere.
        ChangesEndEpochs = "changes_end_epochs",
        /// What is part of a state that was taken is not applied again.
        DeliversOnce = "delivers_requests_once",
        /// What was not delivered in an epoch is proposed anew in the next one.
        ProposesAnew = "proposes_anew",
        /// What records say of the numbers of requests outlasts a crash. Broken, a number is given
        /// anew that a request has had which was delivered.
        RemembersNumbers = "remembers_numbers_of_requests",
    }
}

/// Epochs as they should be, unless a test breaks them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EpochSwitches {
    broken: Broken<EpochSwitch>,
}

impl EpochSwitches {
    pub(super) fn keeps(&self, switch: EpochSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<EpochSwitch> for EpochSwitches {
    fn set(&mut self, switch: EpochSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
