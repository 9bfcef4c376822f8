//! What coordinators and members of shards say to each other, and what must survive.

pub mod command;

use muesli_broadcast::{ChosenMessage, ChosenRecord};
use muesli_core::parts::single_repository::NewValues;
use muesli_core::{
    Abort, Decision, KeyRange, Nanos, SmallBytes, SpaceId, Timestamp, TxnId, wire_enum, wire_struct,
};

use super::locator::ShardId;
use crate::certified::message::command::{CallsEnd, CertifiedCommand, ReadKey, ReadRange};
use crate::certified::message::{FoundKey, ReaderNumber};

/// How old what a shard's clock says may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBound {
    /// Nothing that anybody was answered so long before is missing, by the member's own clock;
    /// zero: before the member was asked.
    pub most: Nanos,
    /// Whether to wait where the member does not know such a clock yet; else it says so.
    pub waits: bool,
    /// The largest clock of a shard that the coordinator was told of.
    pub seen: u64,
}

wire_struct!(ClockBound { most: Nanos, waits: bool, seen: u64 });

/// A request to read keys of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardKeysRequest {
    /// The coordinator's number for the answer.
    pub request: u64,
    /// Who reads.
    pub reader: ReaderNumber,
    /// At which timestamp; `None`: the member says.
    pub snapshot: Option<Timestamp>,
    /// It says one that is not below.
    pub at_least: Timestamp,
    /// The keys.
    pub keys: Vec<(SpaceId, SmallBytes)>,
}

wire_struct!(ShardKeysRequest {
    request: u64,
    reader: ReaderNumber,
    snapshot: Option<Timestamp>,
    at_least: Timestamp,
    keys: Vec<(SpaceId, SmallBytes)>,
});

/// The answer to a [`ShardKeysRequest`]: of all keys, or of the first ones, where more would be too
/// much for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardKeysReply {
    /// The number of the request.
    pub request: u64,
    /// What was read at; `None`: versions of that time are gone.
    pub snapshot: Option<Timestamp>,
    /// The shard's clock, as far as the member has come.
    pub clock: u64,
    /// What was found, in the order asked.
    pub found: Vec<FoundKey>,
}

wire_struct!(ShardKeysReply {
    request: u64,
    snapshot: Option<Timestamp>,
    clock: u64,
    found: Vec<FoundKey>,
});

/// A request for a page of a range, of the keys of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPageRequest {
    /// The coordinator's number for the answer.
    pub request: u64,
    /// Who reads.
    pub reader: ReaderNumber,
    /// As in [`ShardKeysRequest`].
    pub snapshot: Option<Timestamp>,
    /// As in [`ShardKeysRequest`].
    pub at_least: Timestamp,
    /// All of the range.
    pub within: KeyRange,
    /// What is still to be seen of it.
    pub range: KeyRange,
    /// From the end backwards.
    pub reverse: bool,
    /// Most rows wanted; deleted keys do not count.
    pub limit: u64,
}

wire_struct!(ShardPageRequest {
    request: u64,
    reader: ReaderNumber,
    snapshot: Option<Timestamp>,
    at_least: Timestamp,
    within: KeyRange,
    range: KeyRange,
    reverse: bool,
    limit: u64,
});

/// The answer to a [`ShardPageRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPageReply {
    /// The number of the request.
    pub request: u64,
    /// As in [`ShardKeysReply`].
    pub snapshot: Option<Timestamp>,
    /// As in [`ShardKeysReply`].
    pub clock: u64,
    /// The rows, deleted ones too, in the order of the scan.
    pub rows: Vec<(SmallBytes, FoundKey)>,
    /// Up to which key it was seen; `None`: to its end.
    pub seen_to: Option<SmallBytes>,
    /// How many deletions there had been of keys of its objects.
    pub deletions: u64,
}

wire_struct!(ShardPageReply {
    request: u64,
    snapshot: Option<Timestamp>,
    clock: u64,
    rows: Vec<(SmallBytes, FoundKey)>,
    seen_to: Option<SmallBytes>,
    deletions: u64,
});

/// What a shard says of a transaction to the others that take part: each of its members the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardAnswer {
    /// It comes here at this timestamp at the earliest.
    Proposed {
        /// Which.
        at: Timestamp,
    },
    /// It was certified here, at the timestamp that all its shards have given it.
    Voted {
        /// Which.
        at: Timestamp,
        /// Why it is not to commit, if it is not.
        objection: Option<Abort>,
    },
    /// So it ended.
    Ended {
        /// How.
        decision: Decision,
    },
    /// Its end is in the order here: nobody need say anything of it to this shard any more.
    Settled,
}

wire_enum!(ShardAnswer, "answer of a shard" {
    0 => Proposed { at: Timestamp },
    1 => Voted { at: Timestamp, objection: Option<Abort> },
    2 => Ended { decision: Decision },
    3 => Settled,
});

/// What the roles say to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Coordinator to a member of a shard: read keys.
    Keys(ShardKeysRequest),
    /// The answer.
    KeysReply(ShardKeysReply),
    /// Coordinator to a member of a shard: read a page of a range.
    Page(ShardPageRequest),
    /// The answer.
    PageReply(ShardPageReply),
    /// Coordinator to a member of each shard: commit this, and forget transactions of mine that are
    /// below.
    Commit {
        /// Transactions below have ended, as their coordinator knows.
        settled_below: u64,
        /// Whether it was asked before.
        again: bool,
        /// The shards that take part.
        participants: Vec<ShardId>,
        /// What this one has to do with it.
        command: CertifiedCommand,
    },
    /// The answer: so it ended.
    Ended {
        /// The transaction.
        txn: TxnId,
        /// How.
        decision: Decision,
        /// What came of its procedures at this shard, if it had any.
        calls: Option<CallsEnd>,
    },
    /// The answer where the shard has forgotten the transactions of a client that was silent for
    /// too long: nobody knows how it ended, if it was ever asked for.
    NotKnown {
        /// The transaction.
        txn: TxnId,
    },
    /// Coordinator to a member: these read no more.
    Release {
        /// Which.
        readers: Vec<ReaderNumber>,
    },
    /// Coordinator to a member: these go on reading.
    Renew {
        /// Which.
        readers: Vec<ReaderNumber>,
    },
    /// Member to another one of its shard.
    Broadcast {
        /// How many spaces the sender knows: no command that it tells of has others.
        spaces: u16,
        /// What the broadcast says.
        message: ChosenMessage,
    },
    /// Member to one of another shard.
    Answer {
        /// The transaction.
        txn: TxnId,
        /// What the sender's shard says of it.
        answer: ShardAnswer,
    },
    /// Member to one of another shard: what is said of this transaction there?
    Ask {
        /// The transaction.
        txn: TxnId,
        /// The shards that take part.
        participants: Vec<ShardId>,
        /// It was waited for long enough: a shard that does not know it is to refuse it.
        in_doubt: bool,
        /// The sender knows how it ended.
        has_ended: bool,
    },
    /// Coordinator to a member of each shard: what does the clock say, after all that anybody was
    /// answered, or was a while ago?
    AskClock {
        /// The coordinator's number for the answer.
        request: u64,
        /// How long ago.
        bound: ClockBound,
    },
    /// The answer.
    ClockReply {
        /// The number of the request.
        request: u64,
        /// What it says.
        clock: u64,
    },
    /// The answer to who is not to wait: such a clock is not known yet.
    NotFresh {
        /// The number of the request.
        request: u64,
    },
    /// Coordinator to a member of each shard: say when something of this has changed.
    Watch {
        /// The coordinator's number for the answer.
        request: u64,
        /// Keys of this shard, as they were seen.
        reads: Vec<ReadKey>,
        /// Ranges, as this shard's part of them was seen.
        ranges: Vec<ReadRange>,
    },
    /// The same: nobody waits any more.
    Unwatch {
        /// The number of the request.
        request: u64,
    },
    /// Member to a coordinator: something has changed, or may have.
    Changed {
        /// The number of the request.
        request: u64,
        /// The member's clock: what is read from there on sees the change.
        clock: u64,
    },
}

wire_enum!(Message, "message of a sharded protocol" {
    0 => Keys(request: ShardKeysRequest),
    1 => KeysReply(reply: ShardKeysReply),
    2 => Page(request: ShardPageRequest),
    3 => PageReply(reply: ShardPageReply),
    4 => Commit {
        settled_below: u64,
        again: bool,
        participants: Vec<ShardId>,
        command: CertifiedCommand,
    },
    5 => Ended { txn: TxnId, decision: Decision, calls: Option<CallsEnd> },
    6 => NotKnown { txn: TxnId },
    7 => Release { readers: Vec<ReaderNumber> },
    8 => Renew { readers: Vec<ReaderNumber> },
    9 => Broadcast { spaces: u16, message: ChosenMessage },
    10 => Answer { txn: TxnId, answer: ShardAnswer },
    11 => Ask { txn: TxnId, participants: Vec<ShardId>, in_doubt: bool, has_ended: bool },
    12 => AskClock { request: u64, bound: ClockBound },
    13 => ClockReply { request: u64, clock: u64 },
    14 => Watch { request: u64, reads: Vec<ReadKey>, ranges: Vec<ReadRange> },
    15 => Unwatch { request: u64 },
    16 => Changed { request: u64, clock: u64 },
    17 => NotFresh { request: u64 },
});

/// What must survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// What the broadcast remembers: commands, and where they are in its order.
    Broadcast {
        /// What.
        record: ChosenRecord,
    },
    /// A transaction was certified, or its procedures were run.
    Voted {
        /// The transaction.
        txn: TxnId,
        /// At the timestamp that all its shards have given it.
        at: Timestamp,
        /// Why it is not to commit, if it is not.
        objection: Option<Abort>,
        /// What its procedures wrote.
        writes: NewValues,
        /// What came of them.
        calls: Option<CallsEnd>,
    },
    /// A transaction has ended.
    Ended {
        /// The transaction.
        txn: TxnId,
        /// How.
        decision: Decision,
    },
}

wire_enum!(Record, "record of a sharded protocol" {
    0 => Broadcast { record: ChosenRecord },
    1 => Voted {
        txn: TxnId,
        at: Timestamp,
        objection: Option<Abort>,
        writes: NewValues,
        calls: Option<CallsEnd>,
    },
    2 => Ended { txn: TxnId, decision: Decision },
});
