//! What the roles say to each other, and what they keep (Granola thesis, appendix A).
//!
//! | message | from | to | answered by |
//! | --- | --- | --- | --- |
//! | `Request` | coordinator | every participant | `Reply` |
//! | `Vote` | participant | the other participants | their own `Vote`s, sent unasked |
//! | `WhichPosition` | participant that has missed votes | who cast them | `Position` |
//! | `Vote` | the same, under a master | the coordinator | `Decide` |
//! | `Decide` | coordinator that is a master | every participant | `Reply` |
//! | `Tell` | participant | the other participants | |
//! | `Ask` | participant that misses votes | whoever has not voted | `Vote` |
//! | `Reply` | participant | the coordinator of the transaction | |
//! | `Acknowledge` | participant | the same | |
//! | `Follow` | coordinator that keeps a copy | the repository's participant | `News` |

use std::sync::Arc;

use muesli_core::parts::locks::KeyRange;
use muesli_core::recorder::Operations;
use muesli_core::{Abort, ProcedureId, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId};
use smallvec::SmallVec;

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
        answers: Few<(u16, Answer)>,
    },
    /// It is not done, as another one was in the way.
    Conflict,
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
pub enum Answer {
    /// The result of a procedure.
    Given(SmallBytes),
    /// Keys, in the order asked.
    Found(Vec<Found>),
    /// The keys of a range in ascending order, deleted ones too; and whether it was seen to its
    /// end.
    Rows(Vec<(SmallBytes, Found)>, bool),
    /// What was read has not changed, and what was to be written is.
    Installed,
}

/// A version of a key as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The version.
    pub version: Timestamp,
    /// Its value.
    pub value: Option<SmallBytes>,
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

/// Bytes of a key with its space and a timestamp, beside the key's own.
const KEY_BYTES: usize = 12;
/// Bytes of a message's addresses, kind and transaction.
const HEADER_BYTES: usize = 40;

fn value_bytes(value: Option<&SmallBytes>) -> usize {
    4 + value.map_or(0, SmallBytes::len)
}

fn range_bytes(range: &KeyRange) -> usize {
    KEY_BYTES + range.lo.len() + range.hi.as_ref().map_or(0, SmallBytes::len)
}

pub(super) fn writes_bytes(writes: &[Write]) -> usize {
    writes.iter().map(|(_, key, value)| KEY_BYTES + key.len() + value_bytes(value.as_ref())).sum()
}

fn told_bytes(told: &[Told]) -> usize {
    let keys = told.iter().flat_map(|(_, keys)| keys);
    keys.map(|(_, key, found)| KEY_BYTES + key.len() + 8 + value_bytes(found.value.as_ref())).sum()
}

impl Task {
    fn bytes(&self) -> usize {
        match self {
            Task::Call { procedure, arguments, .. } => 9 + procedure.name.len() + arguments.len(),
            Task::Read(keys) => keys.iter().map(|(_, key)| KEY_BYTES + key.len()).sum(),
            Task::Scan { range, .. } => 9 + range_bytes(range),
            Task::Install(install) => {
                let Install { reads, scans, writes } = &**install;
                let reads: usize = reads.iter().map(|(_, key, _)| KEY_BYTES + key.len()).sum();
                let scans: usize = scans.iter().map(|seen| 16 + range_bytes(&seen.range)).sum();
                reads + scans + writes_bytes(writes)
            }
        }
    }
}

impl Request {
    fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(|part| 3 + part.task.bytes()).sum();
        25 + 2 * self.participants.len() + parts
    }

    /// Whether anything must be known of it after a crash.
    pub(super) fn is_update(&self) -> bool {
        !self.read_only
    }
}

impl End {
    fn bytes(&self) -> usize {
        let found = |found: &Found| 8 + value_bytes(found.value.as_ref());
        let answer = |(_, answer): &(u16, Answer)| match answer {
            Answer::Given(result) => 6 + result.len(),
            Answer::Found(all) => 6 + all.iter().map(found).sum::<usize>(),
            Answer::Rows(rows, _) => {
                6 + rows.iter().map(|(key, row)| KEY_BYTES + key.len() + found(row)).sum::<usize>()
            }
            Answer::Installed => 3,
        };
        match self {
            End::Done { answers, .. } => 8 + answers.iter().map(answer).sum::<usize>(),
            End::Conflict => 1,
            End::Refused { .. } => 24,
        }
    }
}

impl News {
    fn bytes(&self) -> usize {
        match self {
            News::Piece { bytes, .. } => 16 + bytes.len(),
            News::Changes { changes, .. } => {
                20 + changes.iter().map(|(_, writes)| 12 + writes_bytes(writes)).sum::<usize>()
            }
            News::Unknown => 12,
        }
    }
}

impl Message {
    /// Its size on a wire, in bytes: headers of fixed size, keys and values as they are.
    pub fn wire_bytes(&self) -> usize {
        let body = match self {
            Message::Request(request) => request.bytes(),
            Message::Ask { request, .. } => request.bytes() + 12,
            Message::Vote { order, .. } => 12 + 16 * usize::from(order.is_some()),
            Message::Decide { .. } => 12,
            Message::Tell { told, .. } => told_bytes(told),
            Message::WhichPosition { .. } => 2,
            Message::Position { voted, .. } => 26 + 16 * voted.len(),
            Message::Reply { end, .. } => end.bytes(),
            Message::Acknowledge { txns, .. } => 16 * txns.len(),
            Message::Follow { .. } => 20,
            Message::News { news, .. } => news.bytes(),
        };
        HEADER_BYTES + body
    }

    /// Its kind, for traces.
    pub fn name(&self) -> &'static str {
        match self {
            Message::Request(_) => "Request",
            Message::Vote { .. } => "Vote",
            Message::Tell { .. } => "Tell",
            Message::WhichPosition { .. } => "WhichPosition",
            Message::Position { .. } => "Position",
            Message::Decide { .. } => "Decide",
            Message::Ask { .. } => "Ask",
            Message::Reply { .. } => "Reply",
            Message::Acknowledge { .. } => "Acknowledge",
            Message::Follow { .. } => "Follow",
            Message::News { .. } => "News",
        }
    }
}

impl Record {
    /// Its size on disk, in bytes.
    pub fn bytes(&self) -> usize {
        let body = match self {
            Record::Voted { request, .. } => 8 + request.bytes(),
            Record::Done { writes, end, .. } => 8 + writes_bytes(writes) + end.bytes(),
            Record::Told { told, .. } => told_bytes(told),
            Record::Dropped { end, .. } => end.bytes(),
            Record::Against { .. } => 24,
            Record::Ceiling { .. } | Record::Reached { .. } => 8,
        };
        HEADER_BYTES + body
    }
}
