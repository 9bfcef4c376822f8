//! Cores: nodes that are loops of one process on one machine.
//!
//! What a node says to another core of its machine passes no wire and no system call: it is put
//! where that core looks at its next turn. So it takes no time on its way but that of the memory,
//! and the processors of both ends only what [`Costs::core`](crate::hardware::costs::Costs::core)
//! says, once a turn and core, where it would be a packet to another machine. A message itself
//! costs what it costs everywhere.

use std::ops::Range;

use muesli_core::NodeId;

/// Which nodes are cores of one machine: so many one after the other, from the first one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    nodes: usize,
    each: usize,
}

impl Cores {
    /// The first `nodes` nodes are cores of machines that have so many `each`; all others are
    /// machines of their own.
    ///
    /// # Panics
    /// If they do not fill machines.
    pub fn new(nodes: usize, each: usize) -> Cores {
        assert!(each > 0, "a machine has a core");
        assert!(nodes.is_multiple_of(each), "nodes fill machines");
        Cores { nodes, each }
    }

    /// How many nodes are cores of machines.
    pub fn nodes(self) -> usize {
        self.nodes
    }

    /// The cores of the machine of this node, by their numbers: itself and its neighbours.
    pub fn of(self, node: NodeId) -> Range<u32> {
        let number = node.0 as usize;
        if number >= self.nodes {
            return node.0..node.0 + 1;
        }
        let first = number - number % self.each;
        first as u32..(first + self.each) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_a_machine_follow_each_other() {
        let cores = Cores::new(4, 2);
        let of = |node| cores.of(NodeId(node));
        assert_eq!([of(0), of(1), of(2), of(3)], [0..2, 0..2, 2..4, 2..4]);
        assert_eq!([of(4), of(5)], [4..5, 5..6], "clients have machines of their own");
    }
}
