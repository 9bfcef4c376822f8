//! Who speaks: the first frames of a connection.
//!
//! Whoever dialled says [`Hello`]; whoever was dialled answers [`Welcome`] with the map of the
//! cluster, or [`Refusal`] and closes. Where the cluster has a secret, servers and administrators
//! are asked to [prove](crate::proof) that they know it before they are welcomed. Until then
//! neither takes anything else, and no frame may be longer than [`HELLO_BYTES_MAX`].
//!
//! A process has a *life*: a number drawn when its data began. Where data live in memory only,
//! each start of a process is a new life, and whoever knew the old one knows that its data are
//! lost: a node that comes back empty among others that hold its transactions would answer reads
//! as if nothing had been written. So lives are told along, and a node of a new life is refused.

use std::fmt;
use std::mem::discriminant;
use std::ops::Range;

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{NodeId, Tag, wire_struct};

use crate::heights::Reached;
use crate::map::MapParts;
use crate::proof::Challenge;

/// The longest body of a frame from somebody who has not been welcomed, in bytes: a server says the
/// lives of all others that it knows, 4,096 at most.
pub const HELLO_BYTES_MAX: usize = 64 << 10;

/// The numbers of clients: servers have small ones, and the last one is nobody's.
pub const CLIENT_NUMBERS: Range<u32> = 1 << 31..NodeId::NOWHERE.0;

/// The cluster that a process belongs to; zero asks for whichever answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(pub u64);

/// A life of a process's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life(pub u64);

/// What kind of process speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Station {
    /// It holds repositories. Where the cluster has a secret, only who has proven it is one.
    Server,
    /// It runs transactions for an application.
    Client,
    /// It wants to be told something, and is no node.
    #[default]
    Visitor,
    /// A visitor who may change where members live. Where the cluster has a secret, only who has
    /// proven it is one.
    Admin,
}

impl Station {
    /// Whether it sends and gets messages of the protocol.
    pub fn is_node(self) -> bool {
        matches!(self, Station::Server | Station::Client)
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Station::Server => "a server",
            Station::Client => "a client",
            Station::Visitor => "a visitor",
            Station::Admin => "an administrator",
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
    pub station: Station,
    /// Its name.
    pub node: NodeId,
    /// Its life.
    pub life: Life,
    /// The lives of the servers as it knows them.
    pub lives: Vec<(NodeId, Life)>,
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
    pub life: Life,
    /// The lives of the servers as it knows them.
    pub lives: Vec<(NodeId, Life)>,
    /// For a server: how far its own log and those of the others had come, as it knows.
    pub heights: Vec<Reached>,
    /// Where everything is.
    pub map: MapParts,
    /// That it knows the cluster's secret, for who has proven that too.
    pub proof: Option<Tag>,
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// What came is no frame, or not what belongs there.
    Misunderstood,
    /// Another cluster.
    Cluster,
    /// Another protocol.
    Protocol,
    /// Somebody else of that name is here.
    Taken,
    /// The data of an earlier life are lost.
    Lost,
    /// So many connections are open already.
    Full,
    /// The node is still looking for the others; try again.
    NotReady,
    /// The node is stopping.
    Stopping,
    /// The server was taken off the cluster's list.
    Left,
    /// It did not prove the cluster's secret, which it must for what it wants.
    Unproven,
    /// Its data are an older copy of what it had. Where others have followed them: when those
    /// began, in milliseconds since 1970.
    Older(Option<u64>),
}

/// The last frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub text: String,
    /// That the server knows the cluster's secret, for who said that it knows it too.
    pub proof: Option<Tag>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Wire for ClusterId {
    const LEAST_BYTES: usize = 8;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<ClusterId, WireError> {
        u64::decode(input).map(ClusterId)
    }
}

impl Wire for Life {
    const LEAST_BYTES: usize = 8;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Life, WireError> {
        u64::decode(input).map(Life)
    }
}

const STATIONS: [Station; 4] = [Station::Server, Station::Client, Station::Visitor, Station::Admin];

impl Wire for Station {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Station, WireError> {
        let found = input.variant("station", STATIONS.len() as u8)?;
        Ok(STATIONS[usize::from(found)])
    }
}

/// All reasons, by their numbers.
pub(crate) const REASONS: [Reason; 11] = [
    Reason::Misunderstood,
    Reason::Cluster,
    Reason::Protocol,
    Reason::Taken,
    Reason::Lost,
    Reason::Full,
    Reason::NotReady,
    Reason::Stopping,
    Reason::Left,
    Reason::Unproven,
    Reason::Older(None),
];

impl Wire for Reason {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        let is_same = |it: &Reason| discriminant(it) == discriminant(self);
        let place = REASONS.iter().position(is_same).expect("all are listed");
        out.push(place as u8);
        if let Reason::Older(begun) = self {
            begun.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Reason, WireError> {
        let found = input.variant("reason of a refusal", REASONS.len() as u8)?;
        match REASONS[usize::from(found)] {
            Reason::Older(_) => Wire::decode(input).map(Reason::Older),
            other => Ok(other),
        }
    }
}

wire_struct!(Hello {
    cluster: ClusterId,
    protocol: String,
    station: Station,
    node: NodeId,
    life: Life,
    lives: Vec<(NodeId, Life)>,
    heights: Vec<Reached>,
    proves: bool,
    challenge: Challenge,
});
wire_struct!(Welcome {
    cluster: ClusterId,
    node: NodeId,
    life: Life,
    lives: Vec<(NodeId, Life)>,
    heights: Vec<Reached>,
    map: MapParts,
    proof: Option<Tag>,
});
wire_struct!(Refusal { reason: Reason, text: String, proof: Option<Tag> });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hello_of_a_server_of_the_largest_cluster_fits() {
        let servers = 0..muesli_core::ids::REPOSITORIES_MAX as u32;
        let lives = servers.map(|node| (NodeId(node), Life(u64::MAX))).collect();
        let reached = |node| Reached {
            node: NodeId(node),
            life: Life(u64::MAX),
            begun: u64::MAX,
            process: u64::MAX,
            record: u64::MAX,
        };
        let heights = (0..crate::heights::TOLD_MAX as u32).map(reached).collect();
        let protocol = "repeatable-read-and-more".to_owned();
        let mut out = Vec::new();
        Hello { lives, heights, protocol, ..Hello::default() }.encode(&mut out);
        assert!(out.len() < HELLO_BYTES_MAX, "{} bytes", out.len());
    }

    #[test]
    fn every_station_and_reason_comes_back() {
        for station in STATIONS {
            let mut out = Vec::new();
            station.encode(&mut out);
            assert_eq!(Station::decode_all(&out), Ok(station));
        }
        for reason in REASONS {
            let mut out = Vec::new();
            let refusal = Refusal { reason, text: format!("{reason:?}"), proof: None };
            refusal.encode(&mut out);
            assert_eq!(Refusal::decode_all(&out), Ok(refusal));
        }
        assert!(Reason::decode_all(&[REASONS.len() as u8]).is_err());
    }
}
