//! What members say to each other, and what they write down.

use muesli_core::{wire_enum, wire_struct};

use crate::command::{CommandId, MemberId};
use crate::m2paxos::FrozenPart;
use crate::m2paxos::message::{self as objects, NamedCommand};

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BoundedMessage<M> {
    /// About objects and their places.
    Objects {
        /// After so many cuts: who has made more of them, or fewer, leaves it out.
        cuts: u64,
        /// What.
        message: objects::Message,
    },
    /// About the order of requests for objects.
    Order(M),
}

/// What a member writes down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BoundedRecord<R> {
    /// About objects and their places.
    Objects(objects::Record),
    /// About the order of requests for objects.
    Order(R),
}

/// What is ordered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum BoundedRequest {
    /// Somebody is to own objects.
    Ownership(OwnershipRequest),
    /// A command touches everything: a cut is to be made for it.
    Everything(NamedCommand),
    /// What a member has that waits for a cut.
    Frozen(FrozenReport),
}

/// A part of what a member has that waits for a cut.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FrozenReport {
    /// The command for which it is made.
    pub id: CommandId,
    pub member: MemberId,
    /// A member that crashed begins anew, under a larger number.
    pub attempt: u64,
    pub part: u32,
    pub parts: u32,
    pub content: FrozenPart,
}

/// Somebody is to own the objects of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OwnershipRequest {
    pub owner: MemberId,
    pub command: NamedCommand,
}

wire_enum!(BoundedMessage<M: muesli_core::wire::Wire>, "message" {
    0 => Objects { cuts: u64, message: objects::Message },
    1 => Order(message: M),
});
wire_enum!(BoundedRecord<R: muesli_core::wire::Wire>, "record" {
    0 => Objects(record: objects::Record),
    1 => Order(record: R),
});
wire_struct!(OwnershipRequest { owner: MemberId, command: NamedCommand });
wire_struct!(FrozenReport {
    id: CommandId,
    member: MemberId,
    attempt: u64,
    part: u32,
    parts: u32,
    content: FrozenPart,
});
wire_enum!(BoundedRequest, "request" {
    0 => Ownership(request: OwnershipRequest),
    1 => Everything(command: NamedCommand),
    2 => Frozen(report: FrozenReport),
});
