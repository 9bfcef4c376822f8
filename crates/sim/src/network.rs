//! The network: what becomes of a message between two nodes.
//!
//! Between two nodes messages arrive in the order sent and without gaps until the link breaks; when
//! it breaks, an unknown suffix is lost, and both ends learn of it later. That is what a TCP
//! connection gives, and nothing else is modelled: no message is repeated or overtaken.
//!
//! A *link* joins two nodes and consists of two *channels*, one each way. A channel delays a
//! message by the time that its bytes take on the wire, after those sent before it, and by a
//! latency drawn anew; a message never arrives before one sent earlier. Each life of a link is an
//! *epoch*.
//!
//! **Breaking.** For each channel a cut is drawn between now and the last arrival under way: what
//! arrives up to the cut still arrives, the rest is lost. Each end is told after the cut of the
//! channel that leads to it. Whatever is sent into a broken link is lost. After both ends were
//! told, the link can be made anew, under the next epoch.
//!
//! **Partitions** block channels, one or both ways. What is sent meanwhile is held, as a sender's
//! buffer holds it, and so is what would arrive. If the channel opens in time, all that was held
//! arrives, in order; if the driver of the world runs out of patience it breaks the link, and the
//! held messages are the suffix that is lost.
//!
//! **Racks.** Where nodes are in [racks], a message to another rack passes two links that it shares
//! with others, in the order in which messages come there. When it comes depends on the others, so
//! the world asks at each of the two ([`Network::pass`]).
//!
//! **Cores.** Nodes can be [cores] of one machine, which reach each other without a wire.
//!
//! The network keeps state and draws chances. The world schedules the arrivals, asks again when
//! one is due ([`Network::arrive`]), and decides when to break and to reconnect. A channel costs 24
//! bytes, so that 160 nodes, 25,600 channels, fit into a cache.

pub mod cores;
pub mod racks;
pub mod topology;

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::NodeId;
use racks::{RackLinks, RackStop, RackTraffic};
use topology::{Topology, index};

use crate::random::Random;
use crate::time::{Span, VirtualTime};

/// All links among a fixed number of nodes; `M` is what they carry.
#[derive(Debug)]
pub struct Network<M> {
    topology: Topology,
    channels: Vec<Channel>,
    /// Where nodes are in racks.
    rack_links: Option<RackLinks>,
    /// Channels that partitions block, and what waits there. No entry: open.
    blocked: BTreeMap<ChannelId, Blocked<M>>,
    down: BTreeSet<NodeId>,
    /// Whether no link has broken yet: then every message arrives, and its channel need not be
    /// asked.
    unbroken: bool,
    random: Random,
}

type ChannelId = (NodeId, NodeId);

#[derive(Clone, Debug, Default)]
struct Channel {
    /// When the wire has taken all bytes sent so far.
    wire_free: VirtualTime,
    /// When the message sent last arrives; while broken: when the last message arrives that does.
    last_arrival: VirtualTime,
    epoch: u32,
    broken: bool,
}

#[derive(Debug)]
struct Blocked<M> {
    since: VirtualTime,
    /// How many partitions block this channel.
    partitions: u32,
    held: Vec<M>,
}

/// One life of a link, from being made to being broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u32);

/// When a message that was sent is due at its receiver, or at a link on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When to call [`Network::arrive`], or [`Network::pass`] if it is at a link then.
    pub due: VirtualTime,
    /// Where it is then.
    pub stop: RackStop,
    /// The life of the link that carries it.
    pub epoch: Epoch,
}

/// What becomes of a message that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<M> {
    /// It arrives now.
    Delivered(M),
    /// A partition holds it; [`Network::unblock`] may return it later.
    Held,
    /// It was in the suffix that a break lost.
    Lost,
}

/// A link that broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkBreak {
    /// The life that ended.
    pub epoch: Epoch,
    /// When the first of the two nodes given to [`Network::sever`] is told.
    pub first_notified: VirtualTime,
    /// When the second is told.
    pub second_notified: VirtualTime,
}

impl<M> Network<M> {
    /// A network with all links up. Chances are drawn from `random`.
    pub fn new(topology: Topology, random: Random) -> Self {
        let channels = vec![Channel::default(); topology.nodes() * topology.nodes()];
        let (blocked, down) = (BTreeMap::new(), BTreeSet::new());
        let racks = topology.racks().cloned();
        let rack_links = racks.map(|racks| RackLinks::new(racks, topology.nodes()));
        Network { topology, channels, rack_links, blocked, down, unbroken: true, random }
    }

    /// What has passed from racks to others so far.
    pub fn between_racks(&self) -> RackTraffic {
        self.rack_links.as_ref().map_or_else(RackTraffic::default, RackLinks::traffic)
    }

    /// Sends a message of `bytes` bytes; `None` if it is lost because the link is broken, or
    /// because there is no such node.
    pub fn send(
        &mut self,
        now: VirtualTime,
        from: NodeId,
        to: NodeId,
        bytes: u64,
    ) -> Option<Departure> {
        if to.0 as usize >= self.topology.nodes() {
            return None;
        }
        let number = channel_index(self.topology.nodes(), from, to);
        let channel = &mut self.channels[number];
        if channel.broken {
            return None;
        }
        let (class, epoch) = (self.topology.class(from, to), Epoch(channel.epoch));
        channel.wire_free = channel.wire_free.max(now) + class.wire_time(bytes);
        if let Some(links) = self.rack_links.as_mut().filter(|links| links.are_apart(from, to)) {
            let stop = RackStop::Uplink(links.load(number, now, bytes));
            return Some(Departure { due: channel.wire_free, stop, epoch });
        }
        let due = channel.wire_free + class.latency.draw(&mut self.random);
        channel.last_arrival = channel.last_arrival.max(due);
        Some(Departure { due: channel.last_arrival, stop: RackStop::Receiver, epoch })
    }

    /// A message is at a link on its way; `None`: it is at its receiver.
    pub fn pass(
        &mut self,
        now: VirtualTime,
        from: NodeId,
        to: NodeId,
        departure: Departure,
    ) -> Option<Departure> {
        let links = self.rack_links.as_mut()?;
        let number = channel_index(self.topology.nodes(), from, to);
        let (due, stop) = match departure.stop {
            RackStop::Uplink(load) => {
                let latency = self.topology.class(from, to).latency.draw(&mut self.random);
                let due = links.ascend(now, from, load) + latency;
                (links.between(number, due), RackStop::Downlink(load))
            }
            RackStop::Downlink(load) => {
                let (due, channel) = (links.descend(now, to, load), &mut self.channels[number]);
                if channel.epoch == departure.epoch.0 && !channel.broken {
                    assert!(due >= channel.last_arrival, "a message overtakes another one");
                    channel.last_arrival = due;
                }
                (due, RackStop::Receiver)
            }
            RackStop::Receiver => return None,
        };
        Some(Departure { due, stop, ..departure })
    }

    /// Settles a message that is due now.
    pub fn arrive(
        &mut self,
        now: VirtualTime,
        from: NodeId,
        to: NodeId,
        epoch: Epoch,
        message: M,
    ) -> Arrival<M> {
        if self.unbroken && self.blocked.is_empty() {
            return Arrival::Delivered(message);
        }
        let channel = &self.channels[channel_index(self.topology.nodes(), from, to)];
        let cut = channel.broken && now > channel.last_arrival;
        if channel.epoch != epoch.0 || cut {
            return Arrival::Lost;
        }
        match self.blocked.get_mut(&(from, to)) {
            // The hold ended with the break; what is due before the cut of a break still arrives.
            Some(blocked) if !channel.broken => {
                blocked.held.push(message);
                Arrival::Held
            }
            _ => Arrival::Delivered(message),
        }
    }

    /// Breaks the link between two nodes; `None` if it is broken already.
    pub fn sever(&mut self, now: VirtualTime, first: NodeId, second: NodeId) -> Option<LinkBreak> {
        let there = channel_index(self.topology.nodes(), first, second);
        if first == second || self.channels[there].broken {
            return None;
        }
        let epoch = Epoch(self.channels[there].epoch);
        let second_notified = self.cut(now, first, second);
        let first_notified = self.cut(now, second, first);
        Some(LinkBreak { epoch, first_notified, second_notified })
    }

    /// Cuts one channel and draws when its receiver is told.
    fn cut(&mut self, now: VirtualTime, from: NodeId, to: NodeId) -> VirtualTime {
        self.unbroken = false;
        let channel = &mut self.channels[channel_index(self.topology.nodes(), from, to)];
        channel.broken = true;
        let under_way = channel.last_arrival.since(now).as_nanos();
        // All lost and nothing lost are the cases that find faults, so they are not left to luck.
        let survives = match self.random.below(4) {
            0 => 0,
            1 => under_way,
            _ => self.random.between(0, under_way),
        };
        channel.last_arrival = now + Span::from_nanos(survives);
        if let Some(blocked) = self.blocked.get_mut(&(from, to)) {
            blocked.held.clear();
            // Nothing passes a blocked channel, not even what is due before the cut.
            channel.epoch += 1;
        }
        channel.last_arrival.max(now) + self.topology.break_notice.draw(&mut self.random)
    }

    /// A node stops for good or for a while: all its links break, and nothing under way to it
    /// arrives any more. Returns the links that were not broken before, by the other end.
    pub fn crash(&mut self, now: VirtualTime, node: NodeId) -> Vec<(NodeId, LinkBreak)> {
        self.down.insert(node);
        let others = (0..self.topology.nodes() as u32).map(NodeId).filter(|other| *other != node);
        let breaks = others.filter_map(|other| {
            let cut = self.sever(now, node, other);
            let towards = channel_index(self.topology.nodes(), other, node);
            self.channels[towards].epoch += 1;
            cut.map(|cut| (other, cut))
        });
        breaks.collect()
    }

    /// A node that had crashed is there again. Its links have to be made anew.
    pub fn restart(&mut self, node: NodeId) {
        self.down.remove(&node);
    }

    /// Makes a broken link anew; false if it cannot be yet: a channel is blocked, an end is down,
    /// or what the old life still delivers is not through. True also if the link is up.
    pub fn reconnect(&mut self, now: VirtualTime, first: NodeId, second: NodeId) -> bool {
        let nodes = self.topology.nodes();
        let (there, back) =
            (channel_index(nodes, first, second), channel_index(nodes, second, first));
        if !self.channels[there].broken {
            return true;
        }
        let through = now > self.channels[there].last_arrival.max(self.channels[back].last_arrival);
        let blocked = self.is_blocked(first, second) || self.is_blocked(second, first);
        if !through || blocked || self.down.contains(&first) || self.down.contains(&second) {
            return false;
        }
        let epoch = self.channels[there].epoch.max(self.channels[back].epoch) + 1;
        let fresh = Channel { wire_free: now, last_arrival: now, epoch, broken: false };
        self.channels[there] = fresh.clone();
        self.channels[back] = fresh;
        true
    }

    /// Lets one more partition block the channel.
    pub fn block(&mut self, now: VirtualTime, from: NodeId, to: NodeId) {
        let closed = Blocked { since: now, partitions: 0, held: Vec::new() };
        self.blocked.entry((from, to)).or_insert(closed).partitions += 1;
    }

    /// Ends one partition's block of the channel. When it was the last, returns what was held; all
    /// of it arrives now, in this order.
    pub fn unblock(&mut self, from: NodeId, to: NodeId) -> Vec<M> {
        let Some(blocked) = self.blocked.get_mut(&(from, to)) else { return Vec::new() };
        blocked.partitions -= 1;
        if blocked.partitions > 0 {
            return Vec::new();
        }
        self.blocked.remove(&(from, to)).map_or_else(Vec::new, |blocked| blocked.held)
    }

    /// Since when the channel is blocked without a break; `None` if it is open.
    pub fn blocked_since(&self, from: NodeId, to: NodeId) -> Option<VirtualTime> {
        self.blocked.get(&(from, to)).map(|blocked| blocked.since)
    }

    /// Whether partitions block the channel.
    pub fn is_blocked(&self, from: NodeId, to: NodeId) -> bool {
        self.blocked.contains_key(&(from, to))
    }

    /// Whether the link between two nodes is broken.
    pub fn is_broken(&self, first: NodeId, second: NodeId) -> bool {
        self.channels[channel_index(self.topology.nodes(), first, second)].broken
    }

    /// The latencies and bandwidths.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
}

fn channel_index(nodes: usize, from: NodeId, to: NodeId) -> usize {
    index(from) * nodes + index(to)
}

#[cfg(test)]
mod tests;
