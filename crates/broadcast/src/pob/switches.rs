//! What a user of the broadcast chooses, and the rules that tests break.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

breakable! {
    /// What Partial Order Broadcast keeps to. The paper prints other ones in most of these places.
    enum PobSwitch {
        /// A member stores, and says, in which epoch it accepted a position. As printed it says
        /// the epoch that it is asked in.
        AcceptedEpochs = "accepted_epochs",
        /// A message changes nothing that has come further in its epoch, or is stable.
        StatusAdvances = "status_advances",
        /// Who accepts a position adds all that it knows to conflict. Broken, it adds nothing.
        AcceptsComplete = "accepts_complete",
        /// It adds what has a higher position, too.
        AcceptsUnfiltered = "accepts_unfiltered",
        /// Commands with one position go by their names.
        TieBreak = "tie_break",
        /// Who takes a command over answers itself, too.
        OwnPromise = "own_promise",
        /// A command is taken over that is known by its name alone.
        RecoversUnknown = "recovers_unknown",
        /// A final position is taken in any epoch.
        StableInAnyEpoch = "stable_in_any_epoch",
        /// Quorums for decisions at once are large enough. As printed: 2, 3, 5 of 3, 5, 7.
        FastQuorums = "fast_quorums",
        /// Who takes a command over keeps the position with which it may have been decided at once.
        FastRecovery = "fast_recovery",
        /// A command is said to come after all that conflict with it and were delivered before it
        /// here. Broken: after those of them that its leader named.
        NamesDelivered = "names_delivered",
        /// Commands are forgotten that each member has said it has delivered. Broken, those that
        /// this member has.
        CollectsDelivered = "collects_delivered",
    }
}

/// What its user chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switches {
    /// Whether commands are decided at once where enough members agree with their leader.
    pub fast: bool,
    broken: Broken<PobSwitch>,
}

impl Switches {
    /// With decisions at once.
    pub fn fast() -> Switches {
        Switches { fast: true, ..Switches::default() }
    }

    pub(super) fn keeps(&self, switch: PobSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<PobSwitch> for Switches {
    fn set(&mut self, switch: PobSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
