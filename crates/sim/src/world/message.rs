//! Messages and records of whatever protocol, as nodes wrote them.

use muesli_core::machine::MessageInfo;
use muesli_core::{AnyProtocol, NodeId, OutgoingMessage};

/// A message, encoded.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The name of its kind.
    pub(super) name: &'static str,
    /// Its size on the wire, in bytes.
    pub(super) bytes: u64,
    pub(super) body: Vec<u8>,
}

impl Message {
    /// What a node says.
    pub(super) fn of(said: &OutgoingMessage<'_>) -> Message {
        let mut body = Vec::new();
        said.message.encode_to(&mut body);
        Message { name: said.name, bytes: said.bytes as u64, body }
    }

    /// What these bytes say, if they are a message.
    pub(super) fn decoded(protocol: &dyn AnyProtocol, body: Vec<u8>) -> Option<Message> {
        let MessageInfo { name, bytes } = protocol.look(&body)?;
        Some(Message { name, bytes: bytes as u64, body })
    }

    /// As a client on `node` would say it of a transaction of its own; see
    /// [`Protocol::as_client`](muesli_core::Protocol::as_client).
    pub(super) fn as_client(&self, protocol: &dyn AnyProtocol, node: NodeId) -> Option<Message> {
        Message::decoded(protocol, protocol.as_client(&self.body, node)?)
    }
}

/// A record, encoded: its repository, then what it says.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) body: Vec<u8>,
    /// Its size on the disk, in bytes.
    pub(super) bytes: u64,
}
