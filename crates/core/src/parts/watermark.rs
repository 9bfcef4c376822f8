//! The watermark: a lower bound of every snapshot that is read now or may be read later.
//!
//! Each node tells a *bound*: no transaction that runs there or will begin there reads below it.
//! Bounds only grow, so an old one is merely careful, and the minimum over all nodes bounds all
//! snapshots. A node that was silent for longer than a lease no longer counts; what it then still
//! reads below the watermark is refused, and its transaction begins again.

use std::collections::BTreeMap;

use crate::ids::{NodeId, Timestamp};
use crate::options::Nanos;

/// The bounds heard of, and their minimum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    bounds: BTreeMap<NodeId, (Timestamp, Nanos)>,
    low: Timestamp,
}

impl Watermark {
    /// `node` reads nothing below `bound`; heard at `now`.
    pub fn hear(&mut self, node: NodeId, bound: Timestamp, now: Nanos) {
        let entry = self.bounds.entry(node).or_insert((bound, now));
        *entry = (entry.0.max(bound), now);
    }

    /// The watermark over `nodes`, where those last heard of before `since` do not count; it never
    /// falls. A node that was never heard of holds it where it is, until `since` passes `start`.
    pub fn advance(&mut self, nodes: &[NodeId], since: Nanos, start: Nanos) -> Timestamp {
        let bounds = nodes.iter().filter_map(|node| match self.bounds.get(node) {
            Some(&(bound, heard)) => (heard >= since).then_some(bound),
            None => (start >= since).then_some(Timestamp::ZERO),
        });
        if let Some(low) = bounds.min() {
            self.low = self.low.max(low);
        }
        self.low
    }

    /// The watermark as last computed or told.
    #[inline]
    pub fn low(&self) -> Timestamp {
        self.low
    }

    /// Somebody who knows all bounds says that this is the watermark.
    pub fn raise(&mut self, low: Timestamp) {
        self.low = self.low.max(low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [NodeId; 2] = [NodeId(0), NodeId(1)];

    #[test]
    fn is_the_minimum_of_all_who_count() {
        let mut marks = Watermark::default();
        marks.hear(NodeId(0), Timestamp(10), Nanos(5));
        assert_eq!(marks.advance(&NODES, Nanos(0), Nanos(0)), Timestamp::ZERO);
        marks.hear(NodeId(1), Timestamp(7), Nanos(6));
        assert_eq!(marks.advance(&NODES, Nanos(0), Nanos(0)), Timestamp(7));
        marks.hear(NodeId(1), Timestamp(3), Nanos(7));
        assert_eq!(marks.advance(&NODES, Nanos(0), Nanos(0)), Timestamp(7));
    }

    #[test]
    fn the_silent_stop_counting_after_their_lease() {
        let mut marks = Watermark::default();
        marks.hear(NodeId(0), Timestamp(10), Nanos(50));
        marks.hear(NodeId(1), Timestamp(7), Nanos(6));
        assert_eq!(marks.advance(&NODES, Nanos(7), Nanos(0)), Timestamp(10));
        marks.hear(NodeId(1), Timestamp(8), Nanos(60));
        assert_eq!(marks.advance(&NODES, Nanos(7), Nanos(0)), Timestamp(10));
    }
}
