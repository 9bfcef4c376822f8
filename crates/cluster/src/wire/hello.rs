//! Who speaks: the first frames of a connection.
//!
//! Whoever dialled says [`Hello`]; whoever was dialled answers [`Welcome`] with the map of the
//! cluster, or [`ConnectionRefusal`](super::refusal::ConnectionRefusal) and closes. Where the
//! cluster has a secret, servers and administrators are asked to [prove](crate::wire::proof) that
//! they know it before they are welcomed. Until then neither takes anything else, and no frame may
//! be longer than [`HELLO_BYTES_MAX`].
//!
//! A process has a *life*: a number drawn when its data began. Where data live in memory only,
//! each start of a process is a new life, and whoever knew the old one knows that its data are
//! lost: a node that comes back empty among others that hold its transactions would answer reads
//! as if nothing had been written. So lives are told along, and a node of a new life is refused.

use std::ops::Range;

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{NodeId, Tag, wire_struct};

use crate::spaces::parts::MapParts;
use crate::wire::challenge::Challenge;
use crate::wire::ids::{ClusterId, DataId};
use crate::wire::progress::Reached;

/// The longest body of a frame from somebody who has not been welcomed, in bytes: a server says the
/// lives of all others that it knows, 4,096 at most.
pub const HELLO_BYTES_MAX: usize = 64 << 10;

/// The numbers of clients: servers have small ones, and the last one is nobody's.
pub const CLIENT_NUMBERS: Range<u32> = 1 << 31..NodeId::NOWHERE.0;

/// What kind of process speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessKind {
    /// It holds repositories. Where the cluster has a secret, only who has proven it is one.
    Server,
    /// It runs transactions for an application.
    Client,
    /// It wants to be told something, and is no node.
    #[default]
    Probe,
    /// A probe who may change where members live. Where the cluster has a secret, only who has
    /// proven it is one.
    Admin,
}

impl ProcessKind {
    /// Whether it sends and gets messages of the protocol.
    pub fn is_node(self) -> bool {
        matches!(self, ProcessKind::Server | ProcessKind::Client)
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            ProcessKind::Server => "a server",
            ProcessKind::Client => "a client",
            ProcessKind::Probe => "a probe",
            ProcessKind::Admin => "an administrator",
        }
    }
}

/// The first frame of whoever dialled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The cluster it belongs to, or looks for.
    pub cluster: ClusterId,
    /// The protocol it speaks, by name.
    pub protocol: String,
    /// What it is.
    pub process_kind: ProcessKind,
    /// Its name.
    pub node: NodeId,
    /// Its life.
    pub data_id: DataId,
    /// The lives of the servers as it knows them.
    pub data_ids: Vec<(NodeId, DataId)>,
    /// Of a server: how far its own log and those of the others had come, as it knows.
    pub heights: Vec<Reached>,
    /// Whether it has the cluster's secret; then it proves that, and wants the server's proof.
    pub proves: bool,
    /// What the server's proof is for.
    pub challenge: Challenge,
}

/// The answer of whoever was dialled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its name.
    pub node: NodeId,
    /// Its life.
    pub data_id: DataId,
    /// The lives of the servers as it knows them.
    pub data_ids: Vec<(NodeId, DataId)>,
    /// For a server: how far its own log and those of the others had come, as it knows.
    pub heights: Vec<Reached>,
    /// Where everything is.
    pub map: MapParts,
    /// That it knows the cluster's secret, for who has proven that too.
    pub proof: Option<Tag>,
}

const PROCESS_KINDS: [ProcessKind; 4] =
    [ProcessKind::Server, ProcessKind::Client, ProcessKind::Probe, ProcessKind::Admin];

impl Wire for ProcessKind {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn decode(input: &mut Reader<'_>) -> Result<ProcessKind, WireError> {
        let found = input.variant("kind of process", PROCESS_KINDS.len() as u8)?;
        Ok(PROCESS_KINDS[usize::from(found)])
    }
}

wire_struct!(Hello {
    cluster: ClusterId,
    protocol: String,
    process_kind: ProcessKind,
    node: NodeId,
    data_id: DataId,
    data_ids: Vec<(NodeId, DataId)>,
    heights: Vec<Reached>,
    proves: bool,
    challenge: Challenge,
});
wire_struct!(Welcome {
    cluster: ClusterId,
    node: NodeId,
    data_id: DataId,
    data_ids: Vec<(NodeId, DataId)>,
    heights: Vec<Reached>,
    map: MapParts,
    proof: Option<Tag>,
});
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hello_of_a_server_of_the_largest_cluster_fits() {
        let servers = 0..muesli_core::ids::REPOSITORIES_MAX as u32;
        let data_ids = servers.map(|node| (NodeId(node), DataId(u64::MAX))).collect();
        let reached = |node| Reached {
            node: NodeId(node),
            data_id: DataId(u64::MAX),
            begun: u64::MAX,
            process: u64::MAX,
            record: u64::MAX,
        };
        let heights =
            (0..crate::wire::progress::PROGRESS_REPORTS_MAX as u32).map(reached).collect();
        let protocol = "repeatable-read-and-more".to_owned();
        let mut out = Vec::new();
        Hello { data_ids, heights, protocol, ..Hello::default() }.encode(&mut out);
        assert!(out.len() < HELLO_BYTES_MAX, "{} bytes", out.len());
    }

    #[test]
    fn every_kind_of_process_comes_back() {
        for process_kind in PROCESS_KINDS {
            let mut out = Vec::new();
            process_kind.encode(&mut out);
            assert_eq!(ProcessKind::decode_all(&out), Ok(process_kind));
        }
    }
}
