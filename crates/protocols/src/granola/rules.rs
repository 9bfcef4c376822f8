//! The switches of the protocol.

use muesli_core::RepositoryId;

use super::message::Request;

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

/// Switches that choose how the protocol goes about its work, and such that break it, one rule
/// each, to see the checker notice. The latter are all true in the protocol as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Held in locking mode for ever: `granola-locking`.
    pub always_locks: bool,
    /// In timestamp mode, who conflicts with nobody before it need not wait for its turn.
    pub out_of_order: bool,
    /// Participants tell each other of data that they decide by; else such transactions are
    /// coordinated.
    pub data_in_votes: bool,
    /// Participants vote to the coordinator, which decides: `sinfonia`.
    pub master: bool,
    /// How locking mode is left.
    pub locking_exit: LockingExit,
    /// A vote says of the voter's next ones that they lie above it (section 7.4).
    pub implicit_votes: bool,
    /// It says so only to whoever has all votes before it.
    pub bounds_in_order: bool,
    /// Transactions are done in the order of their timestamps.
    pub in_order: bool,
    /// The final timestamp is the highest proposal of all.
    pub highest_is_final: bool,
    /// A session's highest timestamp is carried by its requests.
    pub carries_floor: bool,
    /// Whatever is done raises the timestamp of the last one done, and nothing lowers it.
    pub raises_last: bool,
    /// Reads raise it too.
    pub reads_raise: bool,
    /// A reader that does not wait for its turn has seen nothing that lies above what is done.
    pub readers_check: bool,
    /// Who does not wait for its turn conflicts with nobody before it.
    pub out_of_order_apart: bool,
    /// Those who are run at the same time conflict with nobody among them.
    pub parallel_apart: bool,
    /// A reader that does not wait for its turn looks who stands below what is done.
    pub readers_look: bool,
    /// Data are told when they can change no more.
    pub data_sent_in_order: bool,
    /// A copy answers no reader that has seen something later.
    pub copies_check: bool,
    /// A copy answers nobody where something that was voted on may come to lie below.
    pub copies_wait: bool,
    /// A copy at a coordinator tells a reader's session at which timestamp it was answered.
    pub copies_tell: bool,
    /// A repository that starts again proposes above all that it can have done before.
    pub ceiling: bool,
    /// Votes against a transaction are stable before they are sent.
    pub stable_conflicts: bool,
    /// A master decides once it has all votes.
    pub master_waits: bool,
    /// What a reader was promised is stable where a master decides.
    pub reads_logged: bool,
    /// Claims for an order that is not known cover all that can be touched in any.
    pub supersets: bool,
    /// Entering locking mode takes locks for what was voted on.
    pub locks_queued: bool,
    /// A repository refuses what is about a partition that it does not hold, or by an old epoch.
    pub epochs_checked: bool,
    /// A partition that moves is at its destination above all that was done on it before.
    pub moves_raise: bool,
    /// A partition moves when nothing that is under way touches it.
    pub moves_wait: bool,
    /// A partition moves when all of its keys are at its destination.
    pub moves_whole: bool,
    /// Nothing is taken up on a partition of which a move was voted on.
    pub moves_hold_still: bool,
    /// Copies at coordinators are told which partitions came and went.
    pub copies_know: bool,
    /// What may have been done of a client that was forgotten is refused.
    pub refuses_forgotten: bool,
    /// A client that asked more than once does not believe that it was forgotten, or that another
    /// process has come with its number.
    pub doubts_forgotten: bool,
    /// What is said of a transaction that was done waits until the vote for it is stable.
    pub answers_rest_on_votes: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            always_locks: false,
            out_of_order: false,
            data_in_votes: false,
            master: false,
            locking_exit: LockingExit::default(),
            implicit_votes: true,
            bounds_in_order: true,
            in_order: true,
            highest_is_final: true,
            carries_floor: true,
            raises_last: true,
            reads_raise: true,
            readers_check: true,
            out_of_order_apart: true,
            parallel_apart: true,
            readers_look: true,
            data_sent_in_order: true,
            copies_check: true,
            copies_wait: true,
            copies_tell: true,
            ceiling: true,
            stable_conflicts: true,
            master_waits: true,
            reads_logged: true,
            supersets: true,
            locks_queued: true,
            epochs_checked: true,
            moves_raise: true,
            moves_wait: true,
            moves_whole: true,
            moves_hold_still: true,
            copies_know: true,
            refuses_forgotten: true,
            doubts_forgotten: true,
            answers_rest_on_votes: true,
        }
    }
}

impl Rules {
    /// Whether a transaction raises the timestamps of a repository.
    pub(super) fn raised_by(&self, request: &Request, repository: RepositoryId) -> bool {
        self.moves_raise || request.moving().is_none_or(|order| order.to != repository)
    }

    /// Granola held in locking mode.
    pub fn locking() -> Rules {
        Rules { always_locks: true, implicit_votes: false, ..Rules::default() }
    }

    /// Who conflicts with nobody before it need not wait for its turn; and so those may wait for
    /// each other's data who would have to vote else.
    pub fn out_of_order() -> Rules {
        Rules { out_of_order: true, data_in_votes: true, ..Rules::default() }
    }

    /// Locking mode is left at once, and locks are given back to whoever needs them.
    pub fn locks_undone_on_demand() -> Rules {
        Rules { locking_exit: LockingExit::UndoOnDemand, ..Rules::default() }
    }

    /// Locking mode is left when nothing holds locks.
    pub fn locking_until_idle() -> Rules {
        Rules { locking_exit: LockingExit::Stay, ..Rules::default() }
    }

    /// Transactions are done as soon as their votes are there, in no order: **not serializable**.
    /// What the order costs shows beside it (section 6.4).
    pub fn unordered() -> Rules {
        Rules { in_order: false, ..Rules::default() }
    }

    /// Sinfonia's minitransactions, with procedures.
    pub fn sinfonia() -> Rules {
        Rules { master: true, ..Rules::locking() }
    }
}
