//! What is said of objects that move, and what must survive.

use muesli_core::parts::locator::Owners;
use muesli_core::parts::single_repository::{NewValues, RepositoryReply, RepositoryRequest};
use muesli_core::{Decision, RepositoryId, SmallBytes, Timestamp, TxnId, wire_enum, wire_struct};

use super::Key;

/// An object: its newest version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// When it was written.
    pub version: Timestamp,
    /// `None`: it is deleted, or never was.
    pub value: Option<SmallBytes>,
}

wire_struct!(Object { version: Timestamp, value: Option<SmallBytes> });

/// What the roles say to each other.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Message {
    /// Coordinator to repository.
    Ask { ask: RepositoryRequest },
    /// Repository to coordinator.
    Tell { tell: RepositoryReply },
    /// Repository to whoever has an object, perhaps passed on: `to` needs it.
    Want { key: Key, to: RepositoryId, hops: u8 },
    /// Repository to repository: you have it from this epoch on; and my latest timestamp.
    Give { key: Key, epoch: u64, object: Object, latest: Timestamp },
    /// Repository to repository: it is stable here.
    Got { key: Key, epoch: u64 },
    /// Repository to directory.
    WhereIs { key: Key },
    /// Repository to directory, and directory to repository.
    Owns { key: Key, owners: Owners },
}

wire_enum!(Message, "message about objects that move" {
    0 => Ask { ask: RepositoryRequest },
    1 => Tell { tell: RepositoryReply },
    2 => Want { key: Key, to: RepositoryId, hops: u8 },
    3 => Give { key: Key, epoch: u64, object: Object, latest: Timestamp },
    4 => Got { key: Key, epoch: u64 },
    5 => WhereIs { key: Key },
    6 => Owns { key: Key, owners: Owners },
});

impl From<RepositoryRequest> for Message {
    fn from(ask: RepositoryRequest) -> Message {
        Message::Ask { ask }
    }
}

impl From<Message> for Option<RepositoryReply> {
    fn from(message: Message) -> Option<RepositoryReply> {
        match message {
            Message::Tell { tell } => Some(tell),
            _ => None,
        }
    }
}

/// What must survive.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Record {
    /// A transaction has ended.
    Ended { txn: TxnId, decision: Decision, writes: NewValues },
    /// An object goes.
    Gave { key: Key, epoch: u64, to: RepositoryId },
    /// An object came.
    Came { key: Key, epoch: u64, object: Object, latest: Timestamp },
    /// The receiver has it.
    Arrived { key: Key, epoch: u64 },
}

wire_enum!(Record, "record about objects that move" {
    0 => Ended { txn: TxnId, decision: Decision, writes: NewValues },
    1 => Gave { key: Key, epoch: u64, to: RepositoryId },
    2 => Came { key: Key, epoch: u64, object: Object, latest: Timestamp },
    3 => Arrived { key: Key, epoch: u64 },
});
