//! What the roles say to each other, and what they keep.
//!
//! Which role sends what to which is in `docs/inside/messages.md`, as searches have seen it; what a
//! message says, and what its sender promises by it, is written on it here. [`wire`] has the bytes,
//! [`sizes`] how many there are for models of networks and disks.

pub mod merged_decision;
pub mod merged_vote;
pub mod moves;
pub mod reads;
pub mod record;
pub(super) mod sizes;
pub mod voted_footprint;
pub(super) mod wire;

use std::sync::Arc;

use muesli_core::ranges::KeyRange;
use muesli_core::{
    Abort, Action, Decision, DelayedCall, Gave, Nanos, NodeId, RepositoryId, SmallBytes, SpaceId,
    Timestamp, TxnId,
};

use smallvec::SmallVec;

use self::merged_decision::MergedDecision;
use self::merged_vote::MergedVote;
use self::moves::{ArrivingWrite, LeavingWrite, MovedKey, OwnedPage, OwnedQuestion, WhereKeysMove};
use crate::doubts::ClientsUntil;
use crate::two_phase::{PreparedKeys, Variant};

pub use self::reads::{
    Found, LockRequest, ReadReply, ReadRequest, ReadWants, ScanReply, ScanRequest, WatchRequest,
};
pub use self::record::Record;

/// Most transactions touch a key or two of a repository; so many need no memory of their own.
pub type Few<T> = SmallVec<[T; 2]>;

/// Most requests are for one key.
pub type Mostly<T> = SmallVec<[T; 1]>;

/// Keys with their new values; `None` deletes.
pub type Writes = Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>;

/// The repositories that take part in a transaction.
pub type Repositories = SmallVec<[RepositoryId; 8]>;

/// Everything that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<V: Variant> {
    /// Coordinator to a replica: read these keys.
    Read(ReadRequest<V>),
    /// Replica to coordinator: what was read. The clock passed the snapshot before.
    ReadReply(ReadReply<V>),
    /// Coordinator to a replica: scan these partitions.
    Scan(Box<ScanRequest<V>>),
    /// Replica to coordinator: what the scan saw.
    ScanReply(Box<ScanReply<V>>),
    /// Coordinator to participant: lock, validate, propose.
    Prepare(Arc<Prepare<V>>),
    /// Participant to whoever asked: stable before it is said, and never taken back.
    Vote {
        /// The transaction.
        txn: TxnId,
        /// Who votes.
        repository: RepositoryId,
        /// How.
        vote: Vote<V>,
        /// The last transaction applied there: what is refused as stale now is not stale at a
        /// snapshot of at least this.
        committed: V::Snapshot,
        /// What was voted on, where the transaction is a client's and keys have copies.
        about: Option<Box<About>>,
        /// To a client: that a member has said so, for the client to show. Otherwise zero.
        tag: u64,
    },
    /// To a participant: final. May be repeated, is never contradicted.
    Decide {
        /// The transaction.
        txn: TxnId,
        /// Its end.
        decision: Decision<V::Place>,
        /// From a client: the votes that decided it. Members need not show them.
        ballots: Mostly<RepositoryVote<V>>,
    },
    /// Participant to the validator above it, or validator to the one above: how all below have
    /// voted, or that one has refused. What a participant says so is stable before, and is not
    /// taken back.
    MergedVote(Box<MergedVote>),
    /// Validator to one below it: how a transaction ended, for it to tell those below who take
    /// part. Nobody waits for it alone: a coordinator tells those who do not acknowledge the end.
    MergedDecision(Box<MergedDecision<V>>),
    /// Validator to coordinator: how its transaction ended. All who take part are told as well.
    Ended {
        /// The transaction.
        txn: TxnId,
        /// Its end.
        decision: Decision<V::Place>,
        /// The largest proposal among the votes: what is refused as stale now is not stale at a
        /// snapshot of at least this.
        newest: V::Snapshot,
        /// To a client: that a member has said how it ended, as the vote of the first one who
        /// takes part, for the client to show. Otherwise zero.
        tag: u64,
    },
    /// Participant to coordinator: these decisions are stable here.
    Acknowledge {
        /// Who acknowledges.
        repository: RepositoryId,
        /// The transactions.
        txns: Vec<TxnId>,
    },
    /// Participant to coordinator: what delayed actions gave in their turn; or, before a vote of
    /// no, why they cannot be left to it.
    Ran {
        /// The transaction.
        txn: TxnId,
        /// What they gave, by the numbers that the coordinator gave them.
        answers: Answers,
        /// Why they cannot be left to their turn.
        violation: Option<SmallBytes>,
    },
    /// Participant to participant: how did you vote? Whoever has not voted votes no.
    Ask {
        /// The transaction.
        txn: TxnId,
    },
    /// Coordinator to every replica of a key that a running transaction writes: lock it.
    Lock(LockRequest<V>),
    /// Replica to coordinator: it is locked, or why it is not.
    Locked {
        /// The number of the request.
        request: u64,
        /// Why it is not.
        refused: Option<Abort>,
    },
    /// Coordinator to a replica: a transaction with locks has ended without a prepare.
    Unlock {
        /// Who has them.
        reader: V::Reader,
    },
    /// Coordinator to participant, where it is a client that has nothing under way: all its
    /// transactions below this one are settled everywhere.
    Settled {
        /// The next transaction.
        txn: TxnId,
    },
    /// To the gatherer of bounds: nothing here reads below this.
    Bound {
        /// No transaction of the sender reads below it, now or later.
        bound: V::Snapshot,
        /// The largest timestamp the sender knows of.
        newest: V::Snapshot,
    },
    /// From the gatherer of bounds: nobody reads below this.
    Watermark {
        /// No transaction anywhere reads below it.
        low: V::Snapshot,
        /// The largest timestamp heard of.
        newest: V::Snapshot,
    },
    /// Where keys move: these have new owners. A participant says so to the repository where static
    /// placement puts them, again until that knows; and to a coordinator that was to write them
    /// here, with its vote.
    NewOwners {
        /// The keys.
        moved: Vec<MovedKey>,
    },
    /// The answer, stable before it is said: I know owners of these keys since these times or later
    /// ones, or have the keys back.
    KnownOwners {
        /// The keys, as they were told.
        moved: Vec<MovedKey>,
    },
    /// Where keys move, a participant that has lost its disk to all others: which keys do you own
    /// that are not where static placement puts them, where did such keys go, and which do you take
    /// to be with me? Again until it is answered.
    AskOwned(OwnedQuestion),
    /// The answer, a page of it.
    Owned(Box<OwnedPage<V>>),
    /// Coordinator to a repository: say when one of these keys has another version, or a range
    /// another row. Repeated while its client waits.
    Watch(Box<WatchRequest<V>>),
    /// Coordinator to a repository: its client does not wait any more.
    Unwatch {
        /// The number of the request.
        request: u64,
    },
    /// To a coordinator, from a repository or from the coordinator of what changed it: something
    /// has changed of what it watches, or may have.
    Changed {
        /// The number of the request.
        request: u64,
    },
    /// A voter to the transaction's coordinator, with its vote: these wait for a change of what
    /// this transaction writes. (So they hear of it when it is decided, not when it is applied.)
    Waiting {
        /// The transaction.
        txn: TxnId,
        /// The nodes whose coordinators wait, with the numbers of their requests.
        waiting: Vec<(NodeId, u64)>,
    },
    /// Participant to all other ones: are you in doubt of anything that these clients began? It
    /// makes nobody refuse anything.
    AskDoubts {
        /// When it is asked, by the clock of who asks.
        asked: Nanos,
        /// The clients, each with the incarnation before which everything is meant.
        clients: Vec<ClientsUntil>,
    },
    /// The answer, stable before it is said: of these I am not, and all that I voted yes on of what
    /// they began is over here.
    NoDoubts {
        /// Who answers.
        repository: RepositoryId,
        /// As in the question.
        asked: Nanos,
        /// Those of the question of which this holds.
        clients: Vec<ClientsUntil>,
    },
}

/// The messages that participants are asked by: a pattern, which stands for all of them where
/// others are matched one by one.
macro_rules! requests {
    () => {
        Message::Read(_)
            | Message::Scan(_)
            | Message::Lock(_)
            | Message::Unlock { .. }
            | Message::Prepare(_)
            | Message::Decide { .. }
            | Message::Settled { .. }
            | Message::KnownOwners { .. }
            | Message::AskOwned(_)
            | Message::Owned(_)
            | Message::Watch(_)
            | Message::Unwatch { .. }
            | Message::AskDoubts { .. }
            | Message::NoDoubts { .. }
            | Message::Ask { .. }
    };
}

pub(in crate::two_phase) use requests;

/// A transaction that asks to commit, as one participant needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare<V: Variant> {
    /// The transaction.
    pub txn: TxnId,
    /// All transactions of this coordinator's life with a smaller sequence number are settled
    /// everywhere.
    pub settled_below: u64,
    /// Everyone who votes.
    pub participants: Repositories,
    /// The transaction's snapshot: it is proposed a later timestamp.
    pub snapshot: V::Snapshot,
    /// Who it was as it read.
    pub reader: V::Reader,
    /// Whether it must take effect while it is under way.
    pub strict: bool,
    /// Keys read that this participant holds, with the versions read.
    pub reads: Few<(SpaceId, SmallBytes, Timestamp)>,
    /// Keys written that this participant holds.
    pub writes: Few<(SpaceId, SmallBytes, Option<SmallBytes>)>,
    /// Ranges scanned.
    pub scans: Vec<KeyRange>,
    /// Delayed actions on keys that this participant holds, in the order they were asked for.
    pub delayed: Vec<(SpaceId, SmallBytes, Action)>,
    /// What few transactions have.
    pub extra: Option<Box<Extra>>,
    /// Writes that move their keys away from this participant; they have no values here.
    pub leaving: WhereKeysMove<V, LeavingWrite>,
    /// Writes that move their keys to this participant.
    pub arriving: WhereKeysMove<V, ArrivingWrite>,
}

impl<V: Variant> Prepare<V> {
    /// A transaction of this reader, which read at this snapshot: nothing of it yet, and nothing
    /// before it is settled.
    pub fn new(txn: TxnId, snapshot: V::Snapshot, reader: V::Reader) -> Prepare<V> {
        Prepare {
            txn,
            settled_below: 0,
            participants: Repositories::new(),
            snapshot,
            reader,
            strict: false,
            reads: Few::new(),
            writes: Few::new(),
            scans: Vec::new(),
            delayed: Vec::new(),
            extra: None,
            leaving: WhereKeysMove::default(),
            arriving: WhereKeysMove::default(),
        }
    }
}

/// What delayed actions gave, by the numbers that the coordinator gave them.
pub type Answers = Vec<(u32, Gave)>;

/// Delayed procedures, and what is to be told of what was delayed; and whether votes go another way
/// than usually.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Procedures that this participant runs in the transaction's turn.
    pub calls: Vec<DelayedCall>,
    /// What the coordinator wants to know: the place of an action among those that are delayed, or
    /// after them that of a procedure, and the number under which it is told.
    pub asked: Vec<(u32, u32)>,
    /// Where delayed actions may leave more bytes than they are given: at most so many. It goes
    /// with the transaction, so that all who run it, and run it again, do the same.
    pub result_bytes: u64,
    /// Its coordinator gathers the votes itself, whoever else would: it cannot reach that one.
    pub votes_directly: bool,
}

impl<V: Variant> Prepare<V> {
    /// What it has read and writes.
    pub fn prepared_keys(&self) -> PreparedKeys<'_> {
        let Prepare { txn, reads, scans, writes, .. } = self;
        PreparedKeys { txn: *txn, reads, scans, writes }
    }

    /// The delayed procedures.
    pub fn calls(&self) -> &[DelayedCall] {
        self.extra.as_ref().map_or(&[], |extra| &extra.calls)
    }

    /// What the coordinator wants to be told: places and numbers.
    pub fn asked(&self) -> &[(u32, u32)] {
        self.extra.as_ref().map_or(&[], |extra| &extra.asked)
    }

    /// How many bytes a delayed action may leave that was given fewer.
    pub fn result_bytes(&self) -> u64 {
        self.extra.as_ref().map_or(0, |extra| extra.result_bytes)
    }

    /// Whether its coordinator gathers the votes itself, whoever else would.
    pub fn votes_directly(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.votes_directly)
    }

    /// The number under which the answer of what is at a place is told, if it is.
    pub fn number_of(&self, place: usize) -> Option<u32> {
        let asked = self.asked().iter().find(|(at, _)| *at as usize == place);
        asked.map(|(_, number)| *number)
    }

    /// Whether anything of it is left to its turn.
    pub fn delays(&self) -> bool {
        !self.delayed.is_empty() || !self.calls().is_empty()
    }
}

/// How a participant stands to a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote<V: Variant> {
    /// Prepared, and proposes this.
    Yes(V::Yes),
    /// Refused.
    No(Abort),
    /// It is over already.
    Decided(Decision<V::Place>),
}

/// What a vote is about, so that others are sure to have been asked the same: a client that tells
/// the copies of a key different things has told them of different transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Stands for all who take part, as the voter was told.
    pub participants: u64,
    /// Of each partition that changes, what stands for its changes; nothing once they are made.
    pub changes: Vec<(u16, u64)>,
    /// Of each repository that gives keys to another one, what stands for these keys; nothing once
    /// they have moved.
    pub moves: Vec<(RepositoryId, RepositoryId, u64)>,
}

/// A vote as a client was told it, to be shown to the others who take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryVote<V: Variant> {
    /// Who voted.
    pub repository: RepositoryId,
    /// How.
    pub vote: Vote<V>,
    /// On what.
    pub about: Option<Box<About>>,
    /// That a member has said so.
    pub tag: u64,
}
