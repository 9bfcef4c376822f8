//! What a user of the broadcast chooses, and the rules that tests break.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

use crate::command::MemberId;

breakable! {
    /// What M²Paxos keeps to. The paper prints other ones in most of these places.
    enum M2PaxosSwitch {
        /// An owner says one thing for a place in an epoch.
        OneValue = "one_value",
        /// Who owns an object has the promise of a majority for its epoch. As printed, it goes by
        /// the largest epoch of which it has heard.
        OwnsByPromise = "owns_by_promise",
        /// Who comes to own an object says again what others may have decided.
        ForcesVotes = "forces_votes",
        /// Commands that wait for each other are delivered together, by their names.
        DeliversCycles = "delivers_cycles",
        /// Who sees a command at some of its objects alone proposes it at the others.
        HelpsOthers = "helps_others",
        /// A command that was passed on is not passed on again.
        ForwardsOnce = "forwards_once",
        /// An object that has moved stays where it is for a while.
        HoldsObjects = "holds_objects",
        /// Who has waited for objects to stay where they are, and lacks some again, waits longer
        /// each time, members of higher numbers most.
        YieldsObjects = "yields_objects",
        /// Where objects move, a command of several owners that own as many of its objects goes to
        /// the same one, whoever proposes it. Broken: whoever proposes it acquires the others.
        AgreesOnOwners = "agrees_on_owners",
        /// By grants: a command of several objects is placed once those of all grants before it are
        /// decided with which it shares an object.
        PlacesInOrder = "places_in_order",
        /// By grants: an owner acts once all grants before its own are over, or suspected.
        WaitsForGrants = "waits_for_grants",
        /// By grants: who is granted objects has them promised.
        PreparesGranted = "prepares_granted",
        /// Who waits for a cut promises and accepts nothing.
        FreezesForCuts = "freezes_for_cuts",
        /// What a command says that is decided is reported for a cut by whoever knows it. Broken:
        /// not where somebody else has reported the decision alone.
        NamesForCuts = "names_for_cuts",
        /// What a member says after a cut is not taken by one that has not made it, nor the other
        /// way.
        KeepsCutsApart = "keeps_cuts_apart",
        /// A further place of a command that all have delivered is shown as nothing to who does not
        /// know of it. Broken: it is forgotten, like the first one.
        KeepsRepetitions = "keeps_repetitions",
        /// Commands are forgotten that each member has said it has delivered.
        CollectsDelivered = "collects_delivered_places",
    }
}

/// What its user chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switches {
    /// All commands are of one object, whatever they touch, which this member owns unless it is
    /// taken for dead.
    pub one_log: Option<MemberId>,
    /// An owner waits for as many members as decide at once in other broadcasts, where a majority
    /// would do: to see what such quorums cost (Turcu 2015, section 10.3.1).
    pub large_quorums: bool,
    broken: Broken<M2PaxosSwitch>,
}

impl Switches {
    /// One log, with its leader placed at this member.
    pub fn one_log(leader: MemberId) -> Switches {
        Switches { one_log: Some(leader), ..Switches::default() }
    }

    /// With the quorums of other broadcasts.
    pub fn large_quorums() -> Switches {
        Switches { large_quorums: true, ..Switches::default() }
    }

    pub(super) fn keeps(&self, switch: M2PaxosSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<M2PaxosSwitch> for Switches {
    fn set(&mut self, switch: M2PaxosSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
