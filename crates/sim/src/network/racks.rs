//! Racks: nodes that share a link to all others.
//!
//! What a node says to one of another rack passes two links that it shares with its neighbours: the
//! *uplink* of its own rack, and the *downlink* of the other one. Each is a server that takes what
//! comes in the order in which it comes, and is occupied by each packet for a time and by each byte
//! for a time. Within a rack there is nothing to share.
//!
//! What a node says to another one at one moment leaves in as few packets as it fits into.
//!
//! Messages of one channel stay in order: both links serve in order, and between them none
//! overtakes another. A break decides about what is under way when it arrives, so what has not
//! passed both links by then is lost with the suffix, and has occupied them all the same.

use std::ops::AddAssign;

use muesli_core::NodeId;

use crate::time::{Span, VirtualTime};

/// Bytes of a packet: what TCP puts into one on Ethernet.
pub const PACKET_BYTES: u64 = 1_448;

/// In which rack each node is, and what joins the racks.
#[derive(Clone, Debug, PartialEq)]
pub struct Racks {
    /// By the numbers of the nodes.
    rack_of: Vec<u16>,
    link: RackLink,
}

/// What a rack's uplink and its downlink can take, each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RackLink {
    /// Packets a second; zero means without limit.
    pub packets: u64,
    /// Bytes a second; zero means without limit.
    pub bandwidth: u64,
}

impl RackLink {
    /// How long so much occupies it.
    pub fn time(self, load: RackLoad) -> Span {
        let share = |count: u64, rate: u64| {
            count.saturating_mul(1_000_000_000).checked_div(rate).unwrap_or(0)
        };
        Span::from_nanos(share(load.packets, self.packets) + share(load.bytes, self.bandwidth))
    }
}

/// What passes a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RackLoad {
    /// Packets: none for what fits into one that leaves anyway.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Racks {
    /// Nodes in the racks of these numbers.
    pub fn new(rack_of: Vec<u16>, link: RackLink) -> Racks {
        Racks { rack_of, link }
    }

    /// How many nodes are in racks.
    pub fn nodes(&self) -> usize {
        self.rack_of.len()
    }

    /// How many racks there are, counted up to the highest number.
    pub fn count(&self) -> usize {
        self.rack_of.iter().max().map_or(0, |last| usize::from(*last) + 1)
    }

    /// The rack of a node.
    pub fn rack_of(&self, node: NodeId) -> u16 {
        self.rack_of[node.0 as usize]
    }

    /// What joins them.
    pub fn link(&self) -> RackLink {
        self.link
    }
}

/// What has passed from racks to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RackTraffic {
    /// Messages.
    pub messages: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// For how long uplinks were occupied, all together.
    pub occupied: Span,
}

impl RackTraffic {
    /// What has passed after `before`, an earlier look at the same counts.
    pub fn since(self, before: RackTraffic) -> RackTraffic {
        let occupied = self.occupied.as_nanos().saturating_sub(before.occupied.as_nanos());
        RackTraffic {
            messages: self.messages.saturating_sub(before.messages),
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
            occupied: Span::from_nanos(occupied),
        }
    }
}

impl AddAssign<(RackLoad, Span)> for RackTraffic {
    fn add_assign(&mut self, (load, occupied): (RackLoad, Span)) {
        self.messages += 1;
        self.packets += load.packets;
        self.bytes += load.bytes;
        self.occupied = self.occupied + occupied;
    }
}

/// Where a message under way is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackStop {
    /// At the uplink of the sender's rack.
    Uplink(RackLoad),
    /// At the downlink of the receiver's rack.
    Downlink(RackLoad),
    /// At its receiver.
    Receiver,
}

/// The links of all racks, and how far what they carry is.
#[derive(Debug)]
pub(super) struct RackLinks {
    racks: Racks,
    /// When each rack's uplink and downlink have served what has come.
    up_free: Vec<VirtualTime>,
    down_free: Vec<VirtualTime>,
    /// By the numbers of channels.
    channels: Vec<RackChannel>,
    traffic: RackTraffic,
}

/// What is between the racks of one channel.
#[derive(Clone, Debug, Default)]
struct RackChannel {
    /// When what was sent last left, and how many bytes at that moment.
    left_at: VirtualTime,
    left_bytes: u64,
    /// When the last message between the links is at the downlink.
    last_between: VirtualTime,
}

impl RackLinks {
    /// Idle links.
    pub fn new(racks: Racks, nodes: usize) -> RackLinks {
        assert_eq!(racks.nodes(), nodes, "each node is in a rack");
        let free = vec![VirtualTime::ZERO; racks.count()];
        let channels = vec![RackChannel::default(); nodes * nodes];
        let traffic = RackTraffic::default();
        RackLinks { racks, up_free: free.clone(), down_free: free, channels, traffic }
    }

    /// What has passed.
    pub fn traffic(&self) -> RackTraffic {
        self.traffic
    }

    /// Whether two nodes are in different racks.
    pub fn are_apart(&self, from: NodeId, to: NodeId) -> bool {
        self.racks.rack_of(from) != self.racks.rack_of(to)
    }

    /// What a message is for the links that leaves at `now`, behind what left at the same moment.
    pub fn load(&mut self, channel: usize, now: VirtualTime, bytes: u64) -> RackLoad {
        let channel = &mut self.channels[channel];
        if channel.left_at != now {
            (channel.left_at, channel.left_bytes) = (now, 0);
        }
        let before = channel.left_bytes.div_ceil(PACKET_BYTES);
        channel.left_bytes += bytes.max(1);
        RackLoad { packets: channel.left_bytes.div_ceil(PACKET_BYTES) - before, bytes }
    }

    /// A message has come to its uplink; when that has taken it.
    pub fn ascend(&mut self, now: VirtualTime, from: NodeId, load: RackLoad) -> VirtualTime {
        let occupied = self.racks.link.time(load);
        self.traffic += (load, occupied);
        serve(&mut self.up_free[usize::from(self.racks.rack_of(from))], now, occupied)
    }

    /// A message that would be at the downlink at `due`; when it is, behind those before it.
    pub fn between(&mut self, channel: usize, due: VirtualTime) -> VirtualTime {
        let last = &mut self.channels[channel].last_between;
        *last = due.max(*last);
        *last
    }

    /// A message has come to its downlink; when that has taken it.
    pub fn descend(&mut self, now: VirtualTime, to: NodeId, load: RackLoad) -> VirtualTime {
        let occupied = self.racks.link.time(load);
        serve(&mut self.down_free[usize::from(self.racks.rack_of(to))], now, occupied)
    }
}

/// Serves what has come at `now`, after what came before it.
fn serve(free: &mut VirtualTime, now: VirtualTime, occupied: Span) -> VirtualTime {
    *free = now.max(*free) + occupied;
    *free
}
