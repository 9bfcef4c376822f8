//! How far the log of a server has come, as servers tell each other.

use muesli_core::{NodeId, wire_struct};

use crate::wire::ids::DataId;

/// So many servers are told of in a handshake, whose frames are short.
pub(crate) const PROGRESS_REPORTS_MAX: usize = 256;
/// How far the log of a server has come, in a life of its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The server.
    pub node: NodeId,
    /// The life.
    pub data_id: DataId,
    /// When that began: milliseconds since 1970, by the server's clock.
    pub begun: u64,
    /// The process that said so, by a number that it drew.
    pub process: u64,
    /// The last record that is stable; 0 where nothing is kept.
    pub record: u64,
}

wire_struct!(Reached { node: NodeId, data_id: DataId, begun: u64, process: u64, record: u64 });

impl Reached {
    /// Lives of a server's data come in this order.
    pub(crate) fn order(&self) -> (u64, u64) {
        (self.begun, self.data_id.0)
    }
}

/// A sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// So many bytes of messages were taken over this connection.
    pub taken: u64,
    /// The last record of the sender's log that is stable.
    pub record: u64,
}

wire_struct!(Alive { taken: u64, record: u64 });

/// What a server tells of itself, in front of the others; nothing, if it is none.
pub(crate) fn own_of(heights: &[Reached]) -> Reached {
    heights.first().copied().unwrap_or_default()
}
