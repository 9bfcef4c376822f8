//! What a host takes in.

use std::sync::Arc;

use muesli_core::{Catalog, Envelope, MachineTimer, NodeId, OpId, Sender};

use super::message::{Message, SentMessage};

/// What a node's processor takes in.
#[derive(Debug)]
pub(in crate::world) enum HostInput {
    /// A message from another node, and who that is.
    Message(Sender, SentMessage),
    /// A message of a stranger, as whose word it counts.
    Strange(Sender, Envelope<Message>),
    /// A timer of the machine is due.
    Timer(MachineTimer),
    /// A client's sleep is over.
    Awake(OpId),
    /// More of the log is stable.
    Stable,
    /// Repositories live elsewhere now.
    Placement(Arc<Catalog>),
    /// The link to another node is there from now on.
    Linked(NodeId),
    /// It is gone.
    Unlinked(NodeId),
}
