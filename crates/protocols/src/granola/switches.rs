//! What a user of the protocol chooses, and the rules that tests break.

use muesli_core::RepositoryId;
use muesli_core::sabotage::{Broken, Sabotage, breakable};

use super::message::Request;

breakable! {
    /// What the protocol keeps to. Broken, each shows the checker something to notice.
    enum GranolaSwitch {
        /// A vote says of the voter's next ones that they lie above it (section 7.4).
        ImplicitVotes = "implicit_votes",
        /// It says so only to whoever has all votes before it.
        BoundsInOrder = "bounds_in_order",
        /// Transactions are done in the order of their timestamps.
        InOrder = "in_order",
        /// The final timestamp is the highest proposal of all.
        HighestIsFinal = "highest_is_final",
        /// A session's highest timestamp is carried by its requests.
        CarriesLowerBound = "carries_lower_bound",
        /// Whatever is done raises the timestamp of the last one done, and nothing lowers it.
        RaisesLast = "raises_last",
        /// Reads raise it too.
        ReadsRaise = "reads_raise",
        /// A reader that does not wait for its turn has seen nothing that lies above what is done.
        ReadersCheck = "readers_check",
        /// Who does not wait for its turn conflicts with nobody before it.
        OutOfOrderApart = "passes_apart",
        /// Those who are run at the same time conflict with nobody among them.
        ParallelApart = "parallel_apart",
        /// A reader that does not wait for its turn looks who stands below what is done.
        ReadersLook = "readers_look",
        /// Data are told when they can change no more.
        DataSentInOrder = "tells_in_turn",
        /// A copy answers no reader that has seen something later.
        CopiesCheck = "copies_check",
        /// A copy answers nobody where something that was voted on may come to lie below.
        CopiesWait = "copies_wait",
        /// A copy at a coordinator tells a reader's session at which timestamp it was answered.
        CopiesTell = "copies_tell",
        /// A repository that starts again proposes above all that it can have done before.
        UpperBound = "upper_bound",
        /// Votes against a transaction are stable before they are sent.
        StableConflicts = "stable_conflicts",
        /// A master decides once it has all votes.
        MasterWaits = "master_waits",
        /// What a reader was promised is stable where a master decides.
        ReadsLogged = "reads_logged",
        /// Claims for an order that is not known cover all that can be touched in any.
        Supersets = "supersets",
        /// Entering locking mode takes locks for what was voted on.
        LocksQueued = "locks_queued",
        /// A repository refuses what is about a partition that it does not hold, or by an old
        /// epoch.
        EpochsChecked = "epochs_checked",
        /// A partition that moves is at its destination above all that was done on it before.
        MovesRaise = "moves_raise",
        /// A partition moves when nothing that is under way touches it.
        MovesWait = "moves_wait",
        /// A partition moves when all of its keys are at its destination.
        MovesWhole = "moves_whole",
        /// Nothing is taken up on a partition of which a move was voted on.
        MovesHoldStill = "moves_hold_still",
        /// Copies at coordinators are told which partitions came and went.
        CopiesKnow = "copies_know",
        /// What may have been done of a client that was forgotten is refused.
        RefusesForgotten = "refuses_forgotten",
        /// A client that asked more than once does not believe that it was forgotten, or that
        /// another process has come with its number.
        DoubtsForgotten = "doubts_forgotten",
        /// A client is told that answers are missing which a repository has forgotten.
        AnswersForgotten = "answers_forgotten",
        /// What is said of a transaction that was done waits until the vote for it is stable.
        AnswersRestOnVotes = "answers_rest_on_votes",
        /// Whoever runs a plan looks, before its vote, whether the call has a fragment wherever the
        /// arguments say that there is something to do.
        PlacesChecked = "places_checked",
        /// It looks for all of them, and not whether there is one of them.
        PlacesWhole = "places_whole",
        /// A repository that is asked to watch what was read compares that with what is there.
        ComparesWatches = "compares_watches",
    }
}

/// How a repository keeps its transactions apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// By their timestamps, one after the other; by locks while coordinated ones are under way.
    #[default]
    Timestamps,
    /// The same, but whoever conflicts with nobody before it need not wait for its turn.
    OutOfOrder,
    /// By locks, for ever: `granola-locking`.
    Locks,
    /// The same, and participants vote to the coordinator, which decides: `sinfonia`.
    Master,
}

/// How participants decide by data that only one of them has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedData {
    /// The transaction is coordinated: whoever has the data votes.
    #[default]
    Coordinated,
    /// They tell each other, and decide alike.
    WithVotes,
}

/// How a repository leaves locking mode while independent transactions hold locks (appendix B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockingExit {
    /// It undoes them at once: they wait for their turn in timestamp order again.
    #[default]
    UndoNow,
    /// It leaves them their locks, and undoes one when another transaction needs what it locks.
    UndoOnDemand,
    /// It stays in locking mode until there are none.
    Stay,
}

/// What a user chooses. All of it is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// How transactions are kept apart.
    pub ordering: Ordering,
    /// How participants decide by data that only one of them has.
    pub shared_data: SharedData,
    /// How locking mode is left.
    pub locking_exit: LockingExit,
    broken: Broken<GranolaSwitch>,
}

impl Switches {
    /// Whether a rule holds: it does, unless a test broke it.
    #[inline]
    pub(super) fn keeps(&self, switch: GranolaSwitch) -> bool {
        self.broken.keeps(switch)
    }

    /// Whether a repository is held in locking mode.
    pub(super) fn always_locks(&self) -> bool {
        matches!(self.ordering, Ordering::Locks | Ordering::Master)
    }

    /// Whether a master decides by the votes of all.
    pub(super) fn has_master(&self) -> bool {
        self.ordering == Ordering::Master
    }

    /// Whether some need not wait for their turn.
    pub(super) fn is_out_of_order(&self) -> bool {
        self.ordering == Ordering::OutOfOrder
    }

    /// Whether a vote says something of the voter's next ones. Nobody waits for that who is locked.
    pub(super) fn implies_votes(&self) -> bool {
        !self.always_locks() && self.keeps(GranolaSwitch::ImplicitVotes)
    }

    /// Whether a transaction raises the timestamps of a repository.
    pub(super) fn raised_by(&self, request: &Request, repository: RepositoryId) -> bool {
        let raises = |it: RepositoryId| it != repository || self.keeps(GranolaSwitch::MovesRaise);
        request.moving().is_none_or(|order| raises(order.to))
    }

    /// Granola held in locking mode.
    pub fn locking() -> Switches {
        Switches { ordering: Ordering::Locks, ..Switches::default() }
    }

    /// Who conflicts with nobody before it need not wait for its turn; and so those may wait for
    /// each other's data who would have to vote else.
    pub fn out_of_order() -> Switches {
        let (ordering, shared_data) = (Ordering::OutOfOrder, SharedData::WithVotes);
        Switches { ordering, shared_data, ..Switches::default() }
    }

    /// Participants tell each other of data that they decide by.
    pub fn sharing() -> Switches {
        Switches::default().with_shared_data(SharedData::WithVotes)
    }

    /// The same, where participants decide so by data that only one of them has.
    #[must_use]
    pub fn with_shared_data(self, shared_data: SharedData) -> Switches {
        Switches { shared_data, ..self }
    }

    /// The same, where locking mode is left so.
    #[must_use]
    pub fn with_locking_exit(self, locking_exit: LockingExit) -> Switches {
        Switches { locking_exit, ..self }
    }

    /// Locking mode is left at once, and locks are given back to whoever needs them.
    pub fn locks_undone_on_demand() -> Switches {
        Switches { locking_exit: LockingExit::UndoOnDemand, ..Switches::default() }
    }

    /// Locking mode is left when nothing holds locks.
    pub fn locking_until_idle() -> Switches {
        Switches { locking_exit: LockingExit::Stay, ..Switches::default() }
    }

    /// Transactions are done as soon as their votes are there, in no order: **not serializable**.
    /// What the order costs shows beside it (section 6.4).
    pub fn unordered() -> Switches {
        Switches::broken(GranolaSwitch::InOrder)
    }

    /// Sinfonia's minitransactions, with procedures.
    pub fn sinfonia() -> Switches {
        Switches { ordering: Ordering::Master, ..Switches::default() }
    }
}

impl Sabotage<GranolaSwitch> for Switches {
    fn set(&mut self, switch: GranolaSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
