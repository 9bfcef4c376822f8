//! Who is how far from whom: the latency and the bandwidth of every channel.
//!
//! Channels belong to classes (within a rack, across a region), and a table holds one byte per
//! channel, so that every pair may differ and 160 nodes still cost 25 KB.

use std::ops::Range;

use muesli_core::NodeId;

use super::cores::Cores;
use super::racks::Racks;
use crate::latency::Latency;
use crate::time::Span;

/// The latencies and bandwidths between all nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    nodes: usize,
    classes: Vec<ChannelClass>,
    /// The class of the channel from a to b, at a * nodes + b.
    class_of: Vec<u8>,
    /// How long after a break its ends are told of it.
    pub break_notice: Latency,
    /// Which nodes share links to all others; `None`: no link is shared.
    racks: Option<Racks>,
    /// Which nodes are cores of one machine; `None`: each is a machine.
    cores: Option<Cores>,
}

/// What channels of one class are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelClass {
    /// From the last byte leaving the sender to its arrival.
    pub latency: Latency,
    /// Bytes a second; zero means without limit.
    pub bandwidth: u64,
}

impl ChannelClass {
    /// How long `bytes` bytes occupy the wire.
    pub fn wire_time(&self, bytes: u64) -> Span {
        Span::from_nanos(
            bytes.saturating_mul(1_000_000_000).checked_div(self.bandwidth).unwrap_or(0),
        )
    }
}

/// The place of a node in a table of nodes.
pub(crate) fn index(node: NodeId) -> usize {
    node.0 as usize
}

/// A node talking to itself: no wire at all.
const LOOPBACK: ChannelClass =
    ChannelClass { latency: Latency::Constant(Span::from_nanos(100)), bandwidth: 0 };

impl Topology {
    /// The most classes that one topology tells apart.
    pub const CLASSES_MAX: usize = 256;

    /// `nodes` nodes, all alike.
    pub fn uniform(nodes: usize, class: ChannelClass) -> Self {
        let mut class_of = vec![1; nodes * nodes];
        for node in 0..nodes {
            class_of[node * nodes + node] = 0;
        }
        let break_notice = Latency::Exponential {
            least: class.latency.median(),
            mean_tail: class.latency.median().times(4),
        };
        let (classes, racks, cores) = (vec![LOOPBACK, class], None, None);
        Topology { nodes, classes, class_of, break_notice, racks, cores }
    }

    /// The same nodes in racks.
    ///
    /// # Panics
    /// If there are racks for more or fewer nodes.
    pub fn with_racks(self, racks: Racks) -> Self {
        assert_eq!(racks.nodes(), self.nodes, "each node is in a rack");
        Topology { racks: Some(racks), ..self }
    }

    /// The racks, if there are some.
    pub fn racks(&self) -> Option<&Racks> {
        self.racks.as_ref()
    }

    /// The same nodes, some of which are cores of one machine: these reach each other as a node
    /// reaches itself.
    ///
    /// # Panics
    /// If there are cores for more nodes.
    pub fn with_cores(self, cores: Cores) -> Self {
        assert!(cores.nodes() <= self.nodes, "each core is a node");
        let mut topology = Topology { cores: Some(cores), ..self };
        for from in (0..topology.nodes as u32).map(NodeId) {
            for to in cores.of(from) {
                topology.class_of[index(from) * topology.nodes + to as usize] = 0;
            }
        }
        topology
    }

    /// The cores of the machine of this node, by their numbers.
    pub fn cores_of(&self, node: NodeId) -> Range<u32> {
        self.cores.map_or(node.0..node.0 + 1, |cores| cores.of(node))
    }

    /// Nodes in regions of `region_nodes`: one class within a region, another across.
    pub fn regions(
        nodes: usize,
        region_nodes: usize,
        near: ChannelClass,
        far: ChannelClass,
    ) -> Self {
        let mut topology = Topology::uniform(nodes, near);
        let region = |node: usize| node / region_nodes.max(1);
        let far_class = topology.add_class(far);
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            if region(from) != region(to) {
                topology.class_of[from * nodes + to] = far_class;
            }
        }
        topology
    }

    /// Gives one channel a class of its own.
    ///
    /// # Panics
    /// If there are [`Topology::CLASSES_MAX`] classes already.
    pub fn set_channel(&mut self, from: NodeId, to: NodeId, class: ChannelClass) {
        let number = self.add_class(class);
        self.class_of[index(from) * self.nodes + index(to)] = number;
    }

    fn add_class(&mut self, class: ChannelClass) -> u8 {
        let known = self.classes.iter().position(|known| *known == class);
        let number = known.unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        });
        u8::try_from(number).expect("a topology tells at most 256 classes apart")
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// What the channel from one node to another is like.
    pub fn class(&self, from: NodeId, to: NodeId) -> &ChannelClass {
        &self.classes[usize::from(self.class_of[index(from) * self.nodes + index(to)])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(micros: u64, bandwidth: u64) -> ChannelClass {
        ChannelClass { latency: Latency::Constant(Span::from_micros(micros)), bandwidth }
    }

    #[test]
    fn regions_tell_near_from_far() {
        let (near, far) = (class(50, 0), class(5_000, 0));
        let topology = Topology::regions(6, 2, near, far);
        assert_eq!(*topology.class(NodeId(2), NodeId(3)), near);
        assert_eq!(*topology.class(NodeId(3), NodeId(4)), far);
        assert_eq!(*topology.class(NodeId(5), NodeId(5)), LOOPBACK);
    }

    #[test]
    fn cores_of_one_machine_have_no_wire_between_them() {
        let near = class(50, 7);
        let topology = Topology::uniform(5, near).with_cores(Cores::new(4, 2));
        assert_eq!(*topology.class(NodeId(2), NodeId(3)), LOOPBACK);
        assert_eq!(*topology.class(NodeId(1), NodeId(2)), near);
        assert_eq!(*topology.class(NodeId(3), NodeId(4)), near);
        assert_eq!((topology.cores_of(NodeId(3)), topology.cores_of(NodeId(4))), (2..4, 4..5));
    }

    #[test]
    fn one_channel_can_differ_from_its_twin() {
        let (near, slow) = (class(50, 0), class(900, 10));
        let mut topology = Topology::uniform(2, near);
        topology.set_channel(NodeId(0), NodeId(1), slow);
        assert_eq!(*topology.class(NodeId(0), NodeId(1)), slow);
        assert_eq!(*topology.class(NodeId(1), NodeId(0)), near);
    }

    #[test]
    fn bytes_take_their_time_on_the_wire() {
        assert_eq!(class(1, 1_000_000).wire_time(5), Span::from_micros(5));
        assert_eq!(class(1, 0).wire_time(5), Span::ZERO);
    }
}
