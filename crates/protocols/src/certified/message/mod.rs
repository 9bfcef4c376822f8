//! What coordinators and sites say to each other, and what must survive.

pub mod command;
pub mod moment;
pub mod objects;

use muesli_broadcast::epochs::{EpochMessage, EpochRecord, MemberName};
use muesli_broadcast::{ChosenMessage, ChosenRecord, CommandId};
use muesli_core::parts::single_repository::NewValues;
use muesli_core::{
    Abort, Decision, KeyRange, Nanos, NodeId, SmallBytes, SpaceId, Timestamp, TxnId, wire_enum,
    wire_struct,
};

use command::{CallsEnd, CertifiedCommand, ReadKey, ReadRange};
use moment::ReadMoment;

/// A moment of a site: so many commits are applied in that incarnation of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiteSnapshot {
    /// Which incarnation.
    pub incarnation: u64,
    /// How many commits.
    pub clock: u64,
}

wire_struct!(SiteSnapshot { incarnation: u64, clock: u64 });

/// A transaction that reads, by its coordinator's incarnation and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReaderNumber {
    /// The incarnation of its coordinator.
    pub incarnation: u32,
    /// Its number.
    pub number: u32,
}

wire_struct!(ReaderNumber { incarnation: u32, number: u32 });

/// What was found of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey {
    /// The version; zero: there is none.
    pub version: Timestamp,
    /// Its value.
    pub value: Option<SmallBytes>,
    /// For histories: where no version was found, the deletion that was collected.
    pub collected: Timestamp,
    /// How many deletions there had been of keys of its object.
    pub deletions: u64,
}

wire_struct!(FoundKey {
    version: Timestamp,
    value: Option<SmallBytes>,
    collected: Timestamp,
    deletions: u64,
});

impl FoundKey {
    /// No version, and none that was collected.
    pub const ABSENT: FoundKey = FoundKey {
        version: Timestamp::ZERO,
        value: None,
        collected: Timestamp::ZERO,
        deletions: 0,
    };

    /// What was read, for histories.
    pub fn recorded(&self) -> Timestamp {
        self.version.max(self.collected)
    }
}

/// A request to read keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysRequest {
    /// The coordinator's number for the answer.
    pub request: u64,
    /// Who reads.
    pub reader: ReaderNumber,
    /// At which moment.
    pub moment: ReadMoment,
    /// The keys.
    pub keys: Vec<(SpaceId, SmallBytes)>,
}

wire_struct!(KeysRequest {
    request: u64,
    reader: ReaderNumber,
    moment: ReadMoment,
    keys: Vec<(SpaceId, SmallBytes)>,
});

/// The answer to a [`KeysRequest`]: of all keys, or of the first ones, where more would be too much
/// for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysReply {
    /// The number of the request.
    pub request: u64,
    /// What was read at; `None`: nothing is known of that moment any more.
    pub snapshot: Option<SiteSnapshot>,
    /// Where the cut lies in the order of commits that it is of; zero: it is of none.
    pub cut: Timestamp,
    /// What was found, in the order asked.
    pub found: Vec<FoundKey>,
}

wire_struct!(KeysReply {
    request: u64,
    snapshot: Option<SiteSnapshot>,
    cut: Timestamp,
    found: Vec<FoundKey>,
});

/// A request for a page of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The coordinator's number for the answer.
    pub request: u64,
    /// Who reads.
    pub reader: ReaderNumber,
    /// As in [`KeysRequest`].
    pub moment: ReadMoment,
    /// All of the range.
    pub within: KeyRange,
    /// What is still to be seen of it.
    pub range: KeyRange,
    /// From the end backwards.
    pub reverse: bool,
    /// Most rows wanted; deleted keys do not count.
    pub limit: u64,
}

wire_struct!(PageRequest {
    request: u64,
    reader: ReaderNumber,
    moment: ReadMoment,
    within: KeyRange,
    range: KeyRange,
    reverse: bool,
    limit: u64,
});

/// The answer to a [`PageRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageReply {
    /// The number of the request.
    pub request: u64,
    /// As in [`KeysReply`].
    pub snapshot: Option<SiteSnapshot>,
    /// As in [`KeysReply`].
    pub cut: Timestamp,
    /// Keys in the order of the scan; deleted ones too, without a value.
    pub rows: Vec<(SmallBytes, FoundKey)>,
    /// The last key that was looked at, if the range was not seen to its end.
    pub seen_to: Option<SmallBytes>,
    /// How many deletions there had been of keys of the whole range's objects.
    pub deletions: u64,
}

wire_struct!(PageReply {
    request: u64,
    snapshot: Option<SiteSnapshot>,
    cut: Timestamp,
    rows: Vec<(SmallBytes, FoundKey)>,
    seen_to: Option<SmallBytes>,
    deletions: u64,
});

/// What the roles say to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Coordinator to site: read keys.
    Keys(KeysRequest),
    /// The answer.
    KeysReply(KeysReply),
    /// Coordinator to site: read a page of a range.
    Page(PageRequest),
    /// The answer.
    PageReply(PageReply),
    /// Coordinator to site: commit this, forget transactions of mine that are below, and the
    /// reader that it was.
    Commit {
        /// Transactions below have ended, as their coordinator knows.
        settled_below: u64,
        /// Who read for it.
        reader: Option<ReaderNumber>,
        /// Whether it was asked before.
        again: bool,
        /// Of which member of the site, if the coordinator knows one: no other one proposes it.
        member: Option<MemberName>,
        /// Since when it has been tried, where it has lost so often that it is to be let through.
        tried_since: Option<Nanos>,
        /// The commit.
        command: CertifiedCommand,
    },
    /// The answer: so it ended.
    Ended {
        /// The transaction.
        txn: TxnId,
        /// How.
        decision: Decision,
        /// What came of its procedures, if it had any and the site has kept it.
        calls: Option<CallsEnd>,
        /// The member that the site is.
        member: MemberName,
    },
    /// The answer of the site where it has forgotten the transactions of a client that was silent
    /// for too long, or is not the member that was asked: it does not know how it ended, if it was
    /// ever asked for, and will not propose it.
    NotKnown {
        /// The transaction.
        txn: TxnId,
        /// The member that the site is.
        member: MemberName,
    },
    /// Coordinator to another site: how has this ended, which its own site does not answer?
    Ask {
        /// The transaction.
        txn: TxnId,
        /// Transactions below have ended, as their coordinator knows.
        settled_below: u64,
        /// Of which member it was asked.
        member: Option<MemberName>,
    },
    /// Coordinator to site: these read no more.
    Release {
        /// Which.
        readers: Vec<ReaderNumber>,
    },
    /// Coordinator to site: these go on reading.
    Renew {
        /// Which.
        readers: Vec<ReaderNumber>,
    },
    /// Coordinator to site: say when something has changed of what was read.
    Watch {
        /// The coordinator's number for the answer.
        request: u64,
        /// The keys.
        reads: Vec<ReadKey>,
        /// The ranges.
        ranges: Vec<ReadRange>,
    },
    /// Coordinator to site: nobody waits for this change any more.
    Unwatch {
        /// The number of the request.
        request: u64,
    },
    /// The answer to a watch: something has changed, or may have.
    Changed {
        /// The number of the request.
        request: u64,
    },
    /// Site to site.
    Broadcast {
        /// How many spaces the sender knows: no command that it tells of has others.
        spaces: u16,
        /// As which member of the broadcast.
        member: MemberName,
        /// What that says.
        message: EpochMessage<ChosenMessage>,
    },
    /// Site to site: my disk is lost, exchange me for this new member.
    Join {
        /// Under this name.
        member: MemberName,
    },
    /// The answer to a read that is asked for again: it waits for a cut, and is not forgotten.
    Waits {
        /// The number of the request.
        request: u64,
    },
    /// The answer to a read that is not to wait: there is no cut that it can use.
    NotFresh {
        /// The number of the request.
        request: u64,
    },
}

wire_enum!(Message, "message of a certified protocol" {
    0 => Keys(request: KeysRequest),
    1 => KeysReply(reply: KeysReply),
    2 => Page(request: PageRequest),
    3 => PageReply(reply: PageReply),
    4 => Commit {
        settled_below: u64,
        reader: Option<ReaderNumber>,
        again: bool,
        member: Option<MemberName>,
        tried_since: Option<Nanos>,
        command: CertifiedCommand,
    },
    5 => Ended { txn: TxnId, decision: Decision, calls: Option<CallsEnd>, member: MemberName },
    6 => Release { readers: Vec<ReaderNumber> },
    7 => Renew { readers: Vec<ReaderNumber> },
    8 => Broadcast { spaces: u16, member: MemberName, message: EpochMessage<ChosenMessage> },
    9 => NotKnown { txn: TxnId, member: MemberName },
    10 => Watch { request: u64, reads: Vec<ReadKey>, ranges: Vec<ReadRange> },
    11 => Unwatch { request: u64 },
    12 => Changed { request: u64 },
    13 => Join { member: MemberName },
    14 => Waits { request: u64 },
    15 => NotFresh { request: u64 },
    16 => Ask { txn: TxnId, settled_below: u64, member: Option<MemberName> },
});

impl Message {
    /// If it asks for keys or a page: the number of the request, who reads, and at which moment.
    pub fn read(&self) -> Option<(u64, ReaderNumber, ReadMoment)> {
        match self {
            Message::Keys(asked) => Some((asked.request, asked.reader, asked.moment)),
            Message::Page(asked) => Some((asked.request, asked.reader, asked.moment)),
            _ => None,
        }
    }
}

/// What must survive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are the broadcast's")]
pub enum Record {
    /// An incarnation of the site begins.
    Incarnation {
        /// Its number.
        incarnation: u64,
    },
    /// What the broadcast remembers: commits, and where they are in its order.
    Broadcast {
        /// What.
        record: EpochRecord<ChosenRecord>,
    },
    /// What became of a command that was delivered. A checkpoint may have what later commits wrote;
    /// by that, nobody could certify it again.
    Certified {
        /// The command.
        id: CommandId,
        /// What became of it.
        decision: Decision,
    },
    /// The same of a command of procedures: what they wrote, and what came of them if that is kept.
    Ran {
        /// The command.
        id: CommandId,
        /// What became of it.
        decision: Decision,
        /// What they wrote.
        writes: NewValues,
        /// What came of them.
        calls: Option<CallsEnd>,
    },
    /// A transaction was refused before it was proposed.
    Refused {
        /// The transaction.
        txn: TxnId,
        /// Why.
        reason: Abort,
        /// What its procedures came to, if it had any.
        calls: Option<CallsEnd>,
    },
    /// The disk was lost: this is the name of the member that it has been since.
    Named {
        /// The name.
        member: MemberName,
    },
    /// How transactions of a client ended is forgotten.
    Forgotten {
        /// The client.
        client: NodeId,
    },
    /// A cut was delivered.
    Cut {
        /// The command.
        id: CommandId,
        /// The largest counter of a commit before it.
        counter: u64,
    },
}

wire_enum!(Record, "record of a certified protocol" {
    0 => Incarnation { incarnation: u64 },
    1 => Broadcast { record: EpochRecord<ChosenRecord> },
    2 => Certified { id: CommandId, decision: Decision },
    3 => Ran { id: CommandId, decision: Decision, writes: NewValues, calls: Option<CallsEnd> },
    4 => Refused { txn: TxnId, reason: Abort, calls: Option<CallsEnd> },
    5 => Forgotten { client: NodeId },
    6 => Named { member: MemberName },
    7 => Cut { id: CommandId, counter: u64 },
});
