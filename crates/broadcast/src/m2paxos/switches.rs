//! What a user of the broadcast chooses, and the rules that tests break.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

use crate::command::MemberId;

breakable! {
    /// What M²Paxos keeps to. The paper prints other rules in some of these places, the same ones
    /// in others, and says nothing in the rest: the table in `docs/inside/broadcast.md` tells
    /// which.
    enum M2PaxosSwitch {
        /// An owner says one thing for a place in an epoch.
        OneValue = "one_value",
        /// A member's answer counts once, however often it comes. Broken: each answer counts as one
        /// more member's.
        CountsSenders = "counts_senders",
        /// An answer counts for the value that it names. Broken: as printed, for whatever was asked
        /// for last at the same places in the same epoch.
        CountsValues = "counts_values",
        /// Who owns an object has the promise of a majority for its epoch. As printed, it goes by
        /// the largest epoch of which it has heard.
        OwnsByPromise = "owns_by_promise",
        /// Who asks for an object owns it once a majority has promised it. Broken: at once, as its
        /// epoch is the latest one that it knows.
        OwnsByMajority = "owns_by_majority",
        /// Epochs of two members are never the same. Broken: members compare rounds alone.
        UniqueEpochs = "unique_epochs",
        /// A member asks for an object for one command at a time, each time in a new epoch. Broken:
        /// for several commands, in one epoch.
        AsksOnce = "asks_once",
        /// Who asks for an object asks for all from the first place on that it does not know to be
        /// decided. Broken: from behind the latest place that it knows to be decided.
        AsksFromPrefix = "asks_from_prefix",
        /// Who promises an object shows what it has accepted at all places from the one on that it
        /// was asked for. Broken: at this place alone.
        ShowsAllPlaces = "shows_all_places",
        /// Who promises an object shows what is decided there as well. Broken: what it has accepted
        /// alone, and does not know to be decided.
        ShowsDecisions = "shows_decisions",
        /// What an owner asks for is refused if one of its objects is promised to somebody else.
        /// Broken: if the first one is.
        ChecksAllObjects = "checks_all_objects",
        /// What a member has promised it knows after a crash. Broken: it is not written down.
        StoresEpochs = "stores_epochs",
        /// What a member has accepted it knows after a crash. Broken: it is not written down.
        StoresVotes = "stores_votes",
        /// A promise holds for all places that are not decided. Broken: for the first one alone.
        RefusesAtAllPlaces = "refuses_at_all_places",
        /// Who comes to own an object says again what others may have decided.
        ForcesVotes = "forces_votes",
        /// Of what was accepted at a place in several epochs it says again that of the latest one.
        /// Broken: that of the earliest one.
        ForcesLatest = "forces_latest",
        /// At each place it says again what was accepted there. Broken: as printed, one command
        /// alone is said again, and its own commands go to the other places.
        ForcesByPlace = "forces_by_place",
        /// What was accepted in the first epoch of an object counts as accepted. Broken: as
        /// nothing, as if members began with that epoch and no command in it.
        FirstEpochCounts = "first_epoch_counts",
        /// Where nobody has accepted anything, and something was at a place behind, it says that
        /// nothing is there. Broken: it leaves such places open.
        FillsGaps = "fills_gaps",
        /// A command is delivered once it is known of all that come before it what they say and
        /// where they are. Broken: it goes ahead of those of which this is not known.
        AwaitsAncestors = "awaits_ancestors",
        /// What comes before a command at an object is known once all places up to its own are.
        /// Broken: up to the latest place that is known to be decided, nothing is missing.
        AwaitsPrefix = "awaits_prefix",
        /// Commands that come before each other are delivered in the order of their names. Broken:
        /// each member delivers its own ones first.
        OrdersCycles = "orders_cycles",
        /// A command is delivered at the first of its places at an object. Broken: at each of them.
        DeliversOnce = "delivers_once",
        /// Commands that wait for each other are delivered together, by their names.
        DeliversCycles = "delivers_cycles",
        /// A command goes to no second place of an object at which it is decided. Broken: it goes
        /// to all of its objects again.
        SkipsDecided = "skips_decided",
        /// Who has missed what was decided is shown it when it asks. Broken: it is sent once.
        RepeatsDecisions = "repeats_decisions",
        /// Who sees a command at some of its objects alone proposes it at the others.
        HelpsOthers = "helps_others",
        /// A command that was passed on is not passed on again.
        ForwardsOnce = "forwards_once",
        /// Who is refused goes on until so many have refused that no majority is left. Broken: the
        /// first one that refuses ends it.
        AwaitsRefusals = "awaits_refusals",
        /// Who is refused gives up the objects alone that were promised to somebody else. Broken:
        /// all that it asked for at once.
        DropsBeatenAlone = "drops_beaten_alone",
        /// Who is refused knows of the epoch that is in its way, and gives up its own. Broken: it
        /// goes on with its own.
        ObservesRefusals = "observes_refusals",
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
