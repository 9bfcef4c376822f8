//! What a driver tells of its links: whether something sent to a node may still be on its way.
//!
//! Links are in order and without gaps until they break, so what was sent over one that stands
//! needs no repetition before the other end has taken it, however long that takes. A driver says
//! since when something is outstanding; whoever waits for an answer begins to count its patience
//! when nothing is. A driver may say nothing: then every request is repeated by the clock.

use std::collections::BTreeMap;

use crate::ids::NodeId;
use crate::time::Nanos;

/// Links over which something is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Since when what was sent to a node may not have been taken.
    outstanding: BTreeMap<NodeId, Nanos>,
}

impl Links {
    /// What was sent to `node` at `since` or later may not have been taken yet; what was sent
    /// before has been, or is lost with a link.
    pub fn set(&mut self, node: NodeId, since: Nanos) {
        self.outstanding.insert(node, since);
    }

    /// All that was sent to `node` was taken, or is lost with a link.
    pub fn clear(&mut self, node: NodeId) {
        self.outstanding.remove(&node);
    }

    /// Whether nothing is under way over any link.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Whether what was sent to `node` at this time may still be on its way there.
    pub fn is_outstanding(&self, node: NodeId, sent: Nanos) -> bool {
        self.since(node).is_some_and(|since| sent >= since)
    }

    /// Since when what was sent to `node` may still be on its way; `None`: nothing is.
    pub fn since(&self, node: NodeId) -> Option<Nanos> {
        self.outstanding.get(&node).copied()
    }
}

/// Messages of so many bytes are waited for like those of none.
const USUAL_BYTES: usize = 64 << 10;

/// What a message of so many bytes adds to the patience with which its answer is waited for, once
/// it was taken: to make it stable and to work on it, at some 30 MB a second.
pub fn patience_for(bytes: usize) -> Nanos {
    Nanos(bytes.saturating_sub(USUAL_BYTES) as u64 * 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sent_since_is_outstanding_and_only_to_that_node() {
        let (mut links, node) = (Links::default(), NodeId(3));
        assert!(links.is_empty() && !links.is_outstanding(node, Nanos(9)));
        links.set(node, Nanos(5));
        assert!(links.is_outstanding(node, Nanos(5)) && !links.is_outstanding(node, Nanos(4)));
        assert!(!links.is_outstanding(NodeId(4), Nanos(5)));
        links.set(node, Nanos(7));
        assert!(!links.is_outstanding(node, Nanos(6)));
        links.clear(node);
        assert!(links.is_empty());
    }
}
