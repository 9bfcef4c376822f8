//! What the roles say to each other, and what they keep (Granola thesis, appendix A).
//!
//! Which role sends what to which is in `docs/inside/messages.md`, as searches have seen it; what a
//! message says, and what its sender promises by it, is written on it here.

mod copies;
pub(super) mod evidence;
pub(super) mod limits;
mod outcome;
mod record;
mod request;
pub(super) mod sizes;
mod vote;
pub(super) mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::{RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId};
use smallvec::SmallVec;

use crate::doubts::ClientsUntil;

pub use copies::{Followed, News};
pub use muesli_core::parts::locator::{Holding, Owners, Repositories};
pub use muesli_core::parts::migration::{Fetched, Load, Move, Write};
pub use outcome::{FoundVersion, Noted, PartAnswer, Refusal, ReplyOutcome};
pub use record::Record;
pub use request::{Agreement, Install, Part, Request, SeenRange, Task, WatchedReads};
pub(super) use vote::{Ballots, Vote};
pub use vote::{Shown, TimestampVote, VoteOrder};

/// Most transactions have a part or two.
pub type Few<T> = SmallVec<[T; 2]>;

/// What the keys of a part have at the transaction's place: the part's number, and the keys.
pub type PartData = (u16, Vec<(SpaceId, SmallBytes, FoundVersion)>);

/// What participants tell of keys, by the numbers of the parts that these belong to.
pub(super) type DataByPart = BTreeMap<u16, Vec<(SpaceId, SmallBytes, FoundVersion)>>;

/// Everything that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Coordinator to participant: run this.
    Request(Arc<Request>),
    /// Participant to participant, or to a master: how I vote. Stable before it is said, and never
    /// taken back.
    Vote {
        /// The transaction.
        txn: TxnId,
        /// Who votes.
        repository: RepositoryId,
        /// How.
        ballot: TimestampVote,
        /// What stands for the request, where its client is not believed; zero elsewhere.
        about: u64,
        /// To a client: that a member has said so, for the client to show. Zero elsewhere.
        tag: u64,
        /// Its number, if it is told for the first time, and to whom it may imply something.
        order: Option<VoteOrder>,
    },
    /// Participant to participant: this is what I have at the transaction's place, for all to
    /// decide by. Everything that it follows from is stable before it is said.
    Tell {
        /// The transaction.
        txn: TxnId,
        /// What keys have.
        shared: Vec<PartData>,
    },
    /// Participant to participant: I do not know whether I have all votes of yours.
    WhichPosition {
        /// Who asks.
        repository: RepositoryId,
    },
    /// Participant to participant: this is where I am in my votes for you. Whatever I vote on from
    /// now on lies above `at`.
    Position {
        /// Who votes.
        repository: RepositoryId,
        /// Its last vote for the other one.
        order: VoteOrder,
        /// Its last proposal.
        at: Timestamp,
        /// Of each coordinator, the newest transaction that it has voted on.
        voted: Vec<TxnId>,
    },
    /// Master to participant: what all votes come to.
    Decide {
        /// The transaction.
        txn: TxnId,
        /// To be done, at this very timestamp; or why not.
        ballot: TimestampVote,
        /// From a client: the votes that decide it. Members need not show them.
        shown: Vec<Shown>,
    },
    /// Participant to participant: this is the transaction, that is my vote; which one is yours?
    Ask {
        /// The transaction: whoever does not know it yet takes it for asked by its coordinator.
        request: Arc<Request>,
        /// Who asks.
        repository: RepositoryId,
        /// How it voted.
        ballot: TimestampVote,
    },
    /// Participant to coordinator: how it ended here.
    Reply {
        /// The transaction.
        txn: TxnId,
        /// Who answers.
        repository: RepositoryId,
        /// The end.
        end: ReplyOutcome,
        /// For a history.
        noted: Noted,
    },
    /// Coordinator to participant: I keep a copy, and have so much of it.
    Follow {
        /// What.
        has: Followed,
    },
    /// Participant to coordinator that follows it: what it has to know next.
    News {
        /// Who tells.
        repository: RepositoryId,
        /// Which attempt to follow.
        stream: u64,
        /// What.
        news: News,
    },
    /// Participant that a partition is to move to, to the one that holds it: I have so much of it.
    Fetch {
        /// Who asks.
        repository: RepositoryId,
        /// The partition.
        partition: u16,
        /// What it has.
        has: Fetched,
    },
    /// The answer: what it has to have next.
    Load {
        /// Who tells.
        repository: RepositoryId,
        /// The partition.
        partition: u16,
        /// Which attempt to fetch it.
        stream: Timestamp,
        /// Its name here.
        source: Timestamp,
        /// What.
        load: Load,
    },
    /// Participant to all other ones: are you in doubt of anything that these clients began?
    AskDoubts {
        /// When it is asked, in nanoseconds, by the clock of who asks.
        asked: u64,
        /// The clients, each with the incarnation before which everything is meant.
        clients: Vec<ClientsUntil>,
    },
    /// The answer, stable before it is said: nothing of these is under way here.
    NoDoubts {
        /// Who answers.
        repository: RepositoryId,
        /// As in the question.
        asked: u64,
        /// Those of the question of which this holds.
        clients: Vec<ClientsUntil>,
    },
    /// Participant to coordinator: the ends of these are stable here.
    Acknowledge {
        /// Who acknowledges.
        repository: RepositoryId,
        /// The transactions.
        txns: Vec<TxnId>,
    },
    /// Coordinator to participant: a client waits until something of this has changed.
    Watch {
        /// Its number, for the answer.
        request: u64,
        /// What was read.
        reads: Box<WatchedReads>,
    },
    /// Coordinator to participant: nobody waits for it any more.
    Unwatch {
        /// Its number.
        request: u64,
    },
    /// Participant to coordinator: something has changed of what it watches, or may have. Said
    /// once; nothing has changed of what is watched and was not answered so.
    Changed {
        /// Who tells.
        repository: RepositoryId,
        /// The number of the watch.
        request: u64,
    },
}
