//! What members of an epoch say to each other, what they write down, and what they want done.

use muesli_core::bytes::SmallBytes;
use muesli_core::{Nanos, wire_enum, wire_struct};

use super::list::{GroupEpoch, MemberList, MemberName};
use super::request::RequestId;
use crate::broadcast::Broadcast;
use crate::command::{Command, CommandId};
use crate::id_set::IdSet;

/// The state of a group at one moment, without what its user has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotHead {
    /// The epoch in which it is, and its members.
    pub list: MemberList,
    /// The requests of these members that the user's state has in it: by place, and number.
    pub delivered: IdSet,
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EpochMessage<M> {
    /// What the broadcast says in an epoch.
    Ordered {
        /// In which.
        epoch: GroupEpoch,
        /// What.
        message: M,
    },
    /// To who says something of an epoch that is over here: this one is running.
    Running(MemberList),
    /// To a member: what is the state of the group?
    AskState {
        /// The epoch in which the one who asks is; none: it has no memory.
        from: GroupEpoch,
    },
    /// To who has no memory, and a name that had one: this name cannot be a member again.
    Refused,
    /// To who has asked: such is the state, without what the user has.
    State {
        /// Which snapshot of the giver's.
        snapshot: u64,
        /// What.
        head: SnapshotHead,
    },
    /// To who gives a snapshot: more of what the user has, from this piece on.
    AskPieces {
        /// Which snapshot.
        snapshot: u64,
        /// The first piece that is wanted.
        first: u32,
        /// So many.
        count: u32,
    },
    /// The answer, piece by piece.
    Piece {
        /// Which snapshot.
        snapshot: u64,
        /// Which piece.
        number: u32,
        /// What it is.
        piece: SnapshotPiece,
    },
    /// To who asks for pieces: this snapshot is given no more.
    NotGiven {
        /// Which.
        snapshot: u64,
    },
    /// To who has given a snapshot: it is written down.
    Taken {
        /// Which.
        snapshot: u64,
    },
}

/// A piece of what the user has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotPiece {
    /// Bytes that mean something to the user.
    pub bytes: SmallBytes,
    /// Whether it is the last one.
    pub is_last: bool,
}

/// Requests of this member that a record proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProposedRequests {
    /// As which command.
    pub id: CommandId,
    /// The number of the last of them.
    pub last: u64,
}

/// What a member writes down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EpochRecord<R> {
    /// What the broadcast writes down in an epoch.
    Ordered {
        /// In which.
        epoch: GroupEpoch,
        /// What.
        record: R,
        /// The requests that are proposed by it.
        proposed: Option<ProposedRequests>,
    },
    /// All members of this epoch that were in the last one have left that: it is forgotten.
    PreviousForgotten,
    /// It has begun to give a snapshot, of this number.
    Given {
        /// Its number.
        snapshot: u64,
    },
    /// It has begun to take a snapshot.
    TakingBegan(SnapshotHead),
    /// It has taken the next piece of it.
    PieceTaken(SmallBytes),
    /// It has taken all of it, and is a member from now on.
    AllTaken,
    /// It was told that it is no member any more.
    Replaced(MemberList),
}

/// A command of the user whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeliveredRequest {
    /// Which, by the name under which it was asked for.
    pub request: RequestId,
    /// As which command of this epoch it was ordered: perhaps with others, which are delivered one
    /// after the other then, and have the predecessors of the whole.
    pub id: CommandId,
    /// What it says.
    pub command: Command,
    /// Commands of this epoch after which it is to be applied. It comes after all that was
    /// delivered in earlier ones.
    pub predecessors: IdSet,
}

/// Something to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EpochEffect<M, R> {
    /// Send a message, once all records before it are stable.
    Send {
        /// To whom; never to the member itself.
        to: MemberName,
        /// What.
        message: EpochMessage<M>,
    },
    /// Write a record down.
    Log(EpochRecord<R>),
    /// Apply a command. Nobody may hear of that before all records before it are stable.
    Deliver(DeliveredRequest),
    /// A command of this member is part of the state that was taken, and is not delivered.
    TakenAsDelivered(RequestId),
    /// A change that this member has asked for had no effect: another one came before it.
    ChangeVoid(RequestId),
    /// These are the members from now on.
    EpochBegan(MemberList),
    /// This one is no member any more, and takes part in nothing.
    Replaced,
    /// This name had a memory that is lost, and cannot be a member again: a new one is needed.
    Refused,
    /// Keep the state of this moment, and be ready to give it in pieces. That is to be done in no
    /// time, whatever the size of the state: by [`KeptSnapshots`](super::KeptSnapshots), or by what
    /// else copies as it changes.
    KeepSnapshot {
        /// As which snapshot.
        snapshot: u64,
    },
    /// Give a piece of it, by [`EpochMember::give`](super::EpochMember::give), if there is one.
    ReadPiece {
        /// To whom.
        to: MemberName,
        /// Of which snapshot.
        snapshot: u64,
        /// Which, from 0.
        number: u32,
    },
    /// The state that was kept is asked for no more.
    FreeSnapshot {
        /// As which snapshot.
        snapshot: u64,
    },
    /// A state begins to come, piece by piece; what came of another one is void. What the member
    /// has applied stays until all has come.
    BeginTaking,
    /// The next piece of it.
    TakePiece(SmallBytes),
    /// All has come: it takes the place of what the member has applied.
    Install,
}

/// What a member wants done in one step, and the time of that step.
#[derive(Clone, Debug)]
pub struct EpochEffects<M, R> {
    /// The time of the step.
    pub now: Nanos,
    /// What is to be done, in this order.
    pub effects: Vec<EpochEffect<M, R>>,
}

/// What a member over a broadcast wants done.
pub type EpochEffectsOf<B> = EpochEffects<<B as Broadcast>::Message, <B as Broadcast>::Record>;

impl<M, R> EpochEffects<M, R> {
    /// For a step at this time.
    pub fn at(now: Nanos) -> EpochEffects<M, R> {
        EpochEffects { now, effects: Vec::new() }
    }

    pub(super) fn send(&mut self, to: MemberName, message: EpochMessage<M>) {
        self.effects.push(EpochEffect::Send { to, message });
    }

    pub(super) fn log(&mut self, record: EpochRecord<R>) {
        self.effects.push(EpochEffect::Log(record));
    }

    pub(super) fn add(&mut self, effect: EpochEffect<M, R>) {
        self.effects.push(effect);
    }
}

wire_struct!(SnapshotHead { list: MemberList, delivered: IdSet });
wire_struct!(SnapshotPiece { bytes: SmallBytes, is_last: bool });
wire_struct!(ProposedRequests { id: CommandId, last: u64 });
wire_enum!(EpochMessage<M: muesli_core::wire::Wire>, "message" {
    0 => Ordered { epoch: GroupEpoch, message: M },
    1 => Running(list: MemberList),
    2 => AskState { from: GroupEpoch },
    3 => Refused,
    4 => State { snapshot: u64, head: SnapshotHead },
    5 => AskPieces { snapshot: u64, first: u32, count: u32 },
    6 => Piece { snapshot: u64, number: u32, piece: SnapshotPiece },
    7 => NotGiven { snapshot: u64 },
    8 => Taken { snapshot: u64 },
});
wire_enum!(EpochRecord<R: muesli_core::wire::Wire>, "record" {
    0 => Ordered { epoch: GroupEpoch, record: R, proposed: Option<ProposedRequests> },
    1 => PreviousForgotten,
    2 => Given { snapshot: u64 },
    3 => TakingBegan(head: SnapshotHead),
    4 => PieceTaken(bytes: SmallBytes),
    5 => AllTaken,
    6 => Replaced(list: MemberList),
});
