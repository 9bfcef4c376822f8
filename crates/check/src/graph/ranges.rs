//! A balanced tree over the written keys, so that "before the first writer of every key in this
//! range" takes logarithmically many edges instead of one per key.

use super::sink::EdgeSink;

/// The tree; its nodes are consecutive auxiliary nodes, in heap order from 1.
#[derive(Debug)]
pub(super) struct RangeTree {
    leaves: u32,
    /// The node with heap index 0, which is not used.
    base: u32,
}

impl RangeTree {
    /// Makes the nodes for `keys` keys and the edges from parents to children.
    pub(super) fn new(keys: usize, sink: &mut EdgeSink) -> Self {
        let leaves = keys.next_power_of_two() as u32;
        let base = sink.new_node();
        (1..2 * leaves).for_each(|_| {
            sink.new_node();
        });
        for parent in 1..leaves {
            sink.push(base + parent, base + 2 * parent);
            sink.push(base + parent, base + 2 * parent + 1);
        }
        RangeTree { leaves, base }
    }

    /// The node of the key with the given rank.
    pub(super) fn leaf(&self, rank: usize) -> u32 {
        self.base + self.leaves + rank as u32
    }

    /// Calls `visit` with the fewest nodes that cover the ranks `low..high` exactly.
    pub(super) fn cover(&self, low: u32, high: u32, mut visit: impl FnMut(u32)) {
        let (mut low, mut high) = (low + self.leaves, high + self.leaves);
        while low < high {
            if low % 2 == 1 {
                visit(self.base + low);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                visit(self.base + high);
            }
            low /= 2;
            high /= 2;
        }
    }
}
