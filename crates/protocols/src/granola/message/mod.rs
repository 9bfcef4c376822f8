//! What the roles say to each other, and what they keep (Granola thesis, appendix A).
//!
//! | message | from | to | answered by |
//! | --- | --- | --- | --- |
//! | `Request` | coordinator | every participant | `Reply` |
//! | `Request` | coordinator | its master, on another node | the same `Request` to participants |
//! | `Vote` | participant | the other participants | their own `Vote`s, sent unasked |
//! | `WhichPosition` | participant that has missed votes | who cast them | `Position` |
//! | `Vote` | the same, under a master | the master, a coordinator | `Decide` |
//! | `Decide` | master | every participant | `Reply` |
//! | `Tell` | participant | the other participants | |
//! | `Ask` | participant that misses votes | whoever has not voted | `Vote` |
//! | `Reply` | participant | the coordinator of the transaction | |
//! | `Acknowledge` | participant | the same | |
//! | `AskDoubts` | participant that keeps what was told | all other ones | `NoDoubts` |
//! | `Follow` | coordinator that keeps a copy | the repository's participant | `News` |
//! | `Fetch` | participant that a partition moves to | the one that it moves from | `Load` |

pub(super) mod evidence;
pub(super) mod sizes;
pub(super) mod wire;

use std::sync::Arc;

use muesli_core::parts::locks::KeyRange;
use muesli_core::parts::spaces::Newest;
use muesli_core::recorder::Operations;
use muesli_core::{
    Abort, NodeId, ProcedureId, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId,
};
use smallvec::SmallVec;

use crate::doubts::ClientsUntil;
use crate::granola::naming::{Held, Move, Owners};
use crate::granola::participant::migration::loading::{Fetched, Load};

/// Most transactions have a part or two.
pub type Few<T> = SmallVec<[T; 2]>;

/// The repositories that take part in a transaction.
pub type Repositories = SmallVec<[RepositoryId; 8]>;

/// What the keys of a part have at the transaction's place: the part's number, and the keys.
pub type Told = (u16, Vec<(SpaceId, SmallBytes, Found)>);

/// A key that is written, and what with.
pub type Write = (SpaceId, SmallBytes, Option<SmallBytes>);

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
        ballot: Ballot,
        /// What stands for the request, where its client is not believed; zero elsewhere.
        about: u64,
        /// To a client: that a member has said so, for the client to show. Zero elsewhere.
        tag: u64,
        /// Its number, if it is told for the first time, and to whom it may imply something.
        order: Option<Order>,
    },
    /// Participant to participant: this is what I have at the transaction's place, for all to
    /// decide by. Everything that it follows from is stable before it is said.
    Tell {
        /// The transaction.
        txn: TxnId,
        /// What keys have.
        told: Vec<Told>,
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
        order: Order,
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
        ballot: Ballot,
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
        ballot: Ballot,
    },
    /// Participant to coordinator: how it ended here.
    Reply {
        /// The transaction.
        txn: TxnId,
        /// Who answers.
        repository: RepositoryId,
        /// The end.
        end: End,
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
}

/// What a coordinator that follows a repository has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Which of its attempts this is; later ones have higher numbers.
    pub stream: u64,
    /// How many pieces it has.
    pub pieces: u32,
    /// It has all changes up to this.
    pub upto: Timestamp,
}

/// What those who follow a repository are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The next piece of all keys.
    Piece {
        /// From 1.
        number: u32,
        /// Keys with their newest versions.
        bytes: SmallBytes,
    },
    /// All pieces are there; this was done since, and nothing else will be done at `upto` or below.
    Changes {
        /// Up to where.
        upto: Timestamp,
        /// What was written where, in ascending order.
        changes: Vec<(Timestamp, Vec<Write>)>,
        /// Which partitions the repository holds at `upto`, of those that came or went.
        held: Vec<(u16, Held)>,
    },
    /// This attempt is not known here: begin anew.
    Unknown,
}

/// How the participants of a transaction agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// There is only one.
    Alone,
    /// All come to the same decision: only the timestamp is voted on.
    Independent,
    /// Each may refuse.
    Coordinated,
}

/// A one-round transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its id; another attempt is another transaction.
    pub txn: TxnId,
    /// All transactions of this coordinator's life with a smaller sequence number are settled
    /// everywhere.
    pub settled_below: u64,
    /// The highest timestamp that the session has seen (thesis: highTS).
    pub floor: Timestamp,
    /// How its participants agree.
    pub agreement: Agreement,
    /// It writes nothing.
    pub read_only: bool,
    /// Any copy of its one repository will do (section 7.2).
    pub nearby: bool,
    /// Who counts the votes, where somebody does, and it is not the coordinator itself.
    pub master: Option<NodeId>,
    /// Everyone who takes part, in ascending order.
    pub participants: Repositories,
    /// What is to be done; each participant does what is about partitions that it holds.
    pub parts: Few<Part>,
}

/// What is to be done with the keys of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The partition.
    pub partition: u16,
    /// Who holds it, as far as its coordinator knows; `None`: it was never moved.
    pub owners: Option<Arc<Owners>>,
    /// What.
    pub task: Task,
}

/// What a part does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Runs a procedure.
    Call {
        /// Which one.
        procedure: ProcedureId,
        /// What it is given.
        arguments: SmallBytes,
        /// Whether all participants are told of keys that it declares so.
        tells: bool,
        /// How many spaces the caller knows: the arguments may name any of these, and who knows
        /// fewer would divide their keys otherwise.
        spaces: u16,
    },
    /// Reads keys, for an interactive transaction.
    Read(Vec<(SpaceId, SmallBytes)>),
    /// Reads a range, for an interactive transaction.
    Scan {
        /// The range.
        range: KeyRange,
        /// From the end backwards.
        reverse: bool,
        /// Most rows wanted; deleted keys do not count.
        limit: u64,
    },
    /// The end of an interactive transaction: if what it read has not changed, writes.
    Install(Box<Install>),
    /// Fetches the partition's keys from another repository: an answer for each piece of them.
    Take {
        /// Who holds them.
        from: RepositoryId,
    },
    /// The partition changes its repository, here and now.
    Move(Box<Move>),
    /// Tells where partitions are: for repositories that keep names.
    Names,
}

/// What an interactive transaction read and is going to write in one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Install {
    /// Keys read, with the versions read.
    pub reads: Vec<(SpaceId, SmallBytes, Timestamp)>,
    /// Ranges read.
    pub scans: Vec<Seen>,
    /// Keys written.
    pub writes: Vec<Write>,
}

/// A range of a partition as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The range.
    pub range: KeyRange,
    /// When it was seen: nothing in it is to have a later version.
    pub at: Timestamp,
    /// How many keys of the partition it held.
    pub live: u64,
}

/// How a participant votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ballot {
    /// To be done, at this timestamp or later.
    Commit(Timestamp),
    /// Another transaction is in the way; the coordinator is to try again.
    Conflict,
    /// It is refused, for a reason of its own.
    Abort(Timestamp, Refusal),
    /// A partition is not here: it was moved at this timestamp or later, or is about to be.
    Moved(Timestamp),
}

/// A vote as a client was told it, to be shown to those who take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Who voted.
    pub repository: RepositoryId,
    /// How.
    pub ballot: Ballot,
    /// On what.
    pub about: u64,
    /// That a member has said so.
    pub tag: u64,
}

/// Where a vote stands among those of its voter for one other repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The voter's life: its first proposal in it.
    pub stream: Timestamp,
    /// From 1, without gaps.
    pub number: u64,
}

/// Why a transaction is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// By a procedure, for a reason of its own.
    Refused(SmallBytes),
    /// A procedure did what it may not do; the text says what.
    Faulty(String),
    /// What an interactive transaction read has changed since.
    Aborted(Abort),
}

/// How a transaction ended at a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It was done.
    Done {
        /// Its place in the serial order.
        at: Timestamp,
        /// What the parts done here gave, by their number in the request.
        answers: Few<(u16, PartAnswer)>,
    },
    /// It is not done, as another one was in the way.
    Conflict,
    /// It is not done, as a partition of it is elsewhere.
    Moved {
        /// Where that is known to whoever looks at this timestamp or later.
        at: Timestamp,
    },
    /// It has no effect here: somebody refused.
    Refused {
        /// The highest timestamp that the refusal depends on.
        at: Timestamp,
        /// Why.
        refusal: Refusal,
    },
}

/// What procedures did, by the numbers of their parts, as the client is told of it: histories are
/// judged by that. Only drivers that record histories have it, and they do not turn it into bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted(pub Option<Arc<Vec<(u16, Operations)>>>);

/// What a part gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartAnswer {
    /// The result of a procedure.
    Given(SmallBytes),
    /// Keys, in the order asked.
    Found(Vec<Found>),
    /// The keys of a range in ascending order, deleted ones too; and the last key that was looked
    /// at, of whatever partition, if the range was not seen to its end.
    Rows(Vec<(SmallBytes, Found)>, Option<SmallBytes>),
    /// What was read has not changed, and what was to be written is; or a partition was moved.
    Installed,
    /// How much of a partition is fetched.
    Taken {
        /// What is here.
        has: Fetched,
        /// It was all that there was.
        whole: bool,
    },
    /// Who holds the partitions that were moved.
    Names(Vec<(u16, Owners)>),
    /// As [`Installed`](PartAnswer::Installed); and for histories, where collected deletions are
    /// recorded: the deletions of keys that the transaction has read and that are absent. These it
    /// ended with, whichever it found when it read.
    Absent(Vec<(SpaceId, SmallBytes, Timestamp)>),
}

/// A version of a key as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The version.
    pub version: Timestamp,
    /// Its value.
    pub value: Option<SmallBytes>,
    /// For histories: where no version was found, the collected deletion that was read.
    pub collected: Timestamp,
}

impl Found {
    /// What was read, for histories.
    pub fn recorded(&self) -> Timestamp {
        self.version.max(self.collected)
    }
}

/// What a repository's log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Voted to commit.
    Voted {
        /// What was asked.
        request: Arc<Request>,
        /// What was proposed.
        at: Timestamp,
    },
    /// Voted against, or is to be refused for ever.
    Against {
        /// The transaction.
        txn: TxnId,
        /// How.
        ballot: Ballot,
    },
    /// Done: everything before it in the log was done before.
    Done {
        /// The transaction.
        txn: TxnId,
        /// Its place in the serial order.
        at: Timestamp,
        /// What it wrote.
        writes: Vec<Write>,
        /// What its coordinator is told, until it has heard.
        end: End,
    },
    /// What the others are told of the keys here, at the transaction's place.
    Told {
        /// The transaction.
        txn: TxnId,
        /// What keys have.
        told: Vec<Told>,
    },
    /// Voted on, and not done: somebody else voted against it.
    Dropped {
        /// The transaction.
        txn: TxnId,
        /// What its coordinator is told.
        end: End,
    },
    /// Keys of a partition that is to move here, as they are elsewhere.
    Staged {
        /// The partition.
        partition: u16,
        /// What was fetched of it before counts no more.
        anew: bool,
        /// The keys.
        keys: Vec<Newest>,
    },
    /// Whatever this log does not know of lies above this: for copies that replay it.
    Reached {
        /// The bound.
        at: Timestamp,
    },
    /// Nothing is done or proposed above this before the next such record is stable.
    Ceiling {
        /// The bound.
        at: Timestamp,
    },
}

impl Request {
    /// Whether anything must be known of it after a crash.
    pub(super) fn is_update(&self) -> bool {
        !self.read_only
    }
}

impl Message {
    /// Its kind, for traces.
    pub fn name(&self) -> &'static str {
        match self {
            Message::Request(_) => "Request",
            Message::Vote { .. } => "Vote",
            Message::Tell { .. } => "Tell",
            Message::WhichPosition { .. } => "WhichPosition",
            Message::Position { .. } => "Position",
            Message::AskDoubts { .. } => "AskDoubts",
            Message::NoDoubts { .. } => "NoDoubts",
            Message::Decide { .. } => "Decide",
            Message::Ask { .. } => "Ask",
            Message::Reply { .. } => "Reply",
            Message::Acknowledge { .. } => "Acknowledge",
            Message::Follow { .. } => "Follow",
            Message::News { .. } => "News",
            Message::Fetch { .. } => "Fetch",
            Message::Load { .. } => "Load",
        }
    }
}
