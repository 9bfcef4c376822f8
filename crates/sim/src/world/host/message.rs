//! Messages and records of whatever protocol, as nodes wrote them.

use muesli_core::machine::MessageInfo;
use muesli_core::{AnyProtocol, Envelope, NodeId, OutgoingMessage, Timestamp};

/// A message, encoded.
#[derive(Clone, Debug)]
pub(in crate::world) struct Message {
    /// The name of its kind.
    pub(in crate::world) name: &'static str,
    /// Its size on the wire, in bytes.
    pub(in crate::world) bytes: u64,
    pub(in crate::world) body: Vec<u8>,
}

impl Message {
    /// What a node says.
    pub(in crate::world) fn of(outgoing: &OutgoingMessage<'_>) -> Message {
        let mut body = Vec::new();
        outgoing.message.encode_to(&mut body);
        Message { name: outgoing.name, bytes: outgoing.bytes as u64, body }
    }

    /// What these bytes say, if they are a message.
    pub(in crate::world) fn decoded(protocol: &dyn AnyProtocol, body: Vec<u8>) -> Option<Message> {
        let MessageInfo { name, bytes } = protocol.look(&body)?;
        Some(Message { name, bytes: bytes as u64, body })
    }

    /// As a client on `node` would say it of a transaction of its own; see
    /// [`Protocol::as_client`](muesli_core::Protocol::as_client).
    pub(in crate::world) fn as_client(
        &self,
        protocol: &dyn AnyProtocol,
        node: NodeId,
    ) -> Option<Message> {
        Message::decoded(protocol, protocol.as_client(&self.body, node)?)
    }
}

/// A message between two nodes, as it passes over a link.
#[derive(Clone, Debug)]
pub(in crate::world) struct SentMessage {
    pub(in crate::world) envelope: Envelope<Message>,
    /// Up to where timestamps are proven to be issued; nothing between members.
    pub(in crate::world) proven: Timestamp,
}

/// A record, encoded: its repository, then what it says.
#[derive(Clone, Debug)]
pub(in crate::world) struct Logged {
    pub(in crate::world) body: Vec<u8>,
    /// Its size on the disk, in bytes.
    pub(in crate::world) bytes: u64,
}
