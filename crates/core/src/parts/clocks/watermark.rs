//! The watermark: a lower bound of every snapshot that is read now or may be read later.
//!
//! Each node tells a *bound*: no transaction that runs there or will begin there reads below it.
//! Bounds only grow, so an old one is merely careful, and the minimum over all nodes bounds all
//! snapshots. A node that was silent for longer than a lease no longer counts; what it then still
//! reads below the watermark is refused, and its transaction begins again.

use std::collections::BTreeMap;

use crate::ids::{NodeId, Timestamp};
use crate::time::Nanos;

/// What snapshots are bounded by: a timestamp, or a vector of them.
pub trait Bound: Clone + Default {
    /// Raises this one to the least that is at or above both.
    fn join(&mut self, other: &Self);
    /// Lowers this one to the greatest that is at or below both.
    fn meet(&mut self, other: &Self);
}

impl Bound for Timestamp {
    #[inline]
    fn join(&mut self, other: &Timestamp) {
        *self = (*self).max(*other);
    }

    #[inline]
    fn meet(&mut self, other: &Timestamp) {
        *self = (*self).min(*other);
    }
}

/// The bounds heard of, and their minimum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watermark<B = Timestamp> {
    bounds: BTreeMap<NodeId, (B, Nanos)>,
    /// Those last heard of before this do not count.
    since: Nanos,
    low: B,
}

impl<B: Bound> Watermark<B> {
    /// `node` reads nothing below `bound`; heard at `now`.
    pub fn observe(&mut self, node: NodeId, bound: B, now: Nanos) {
        let entry = self.bounds.entry(node).or_insert_with(|| (bound.clone(), now));
        entry.0.join(&bound);
        entry.1 = now;
    }

    /// The watermark over `nodes` and everybody else who was heard of, where those last heard of
    /// before `since` do not count; it never falls. One of `nodes` that was never heard of holds
    /// it where it is, until `since` passes `start`.
    pub fn advance(&mut self, nodes: &[NodeId], since: Nanos, start: Nanos) -> B {
        self.since = self.since.max(since);
        let seen_at = self.bounds.values().filter(|(_, seen_at)| *seen_at >= since);
        let bounds = seen_at.map(|(bound, _)| bound.clone());
        let silent = nodes.iter().any(|node| start >= since && !self.bounds.contains_key(node));
        let least = bounds.chain(silent.then(B::default)).reduce(|mut least, bound| {
            least.meet(&bound);
            least
        });
        if let Some(low) = least {
            self.low.join(&low);
        }
        self.low.clone()
    }

    /// How many have counted until now and do not any more, as they were last heard of before
    /// `since`; to be asked before [`advance`](Self::advance).
    pub fn lapsed(&self, since: Nanos) -> u64 {
        let lapse = |seen_at: Nanos| (self.since..since).contains(&seen_at);
        self.bounds.values().filter(|(_, seen_at)| lapse(*seen_at)).count() as u64
    }

    /// One whose bound the watermark stands at.
    pub fn holder(&self) -> Option<NodeId>
    where
        B: PartialEq,
    {
        let mut holds = self.bounds.iter().filter(|(_, (bound, _))| *bound == self.low);
        holds.next().map(|(node, _)| *node)
    }

    /// Forgets who is none of `nodes` and was last heard of before `since`.
    pub fn forget_silent(&mut self, nodes: &[NodeId], since: Nanos) {
        self.bounds.retain(|node, (_, seen_at)| *seen_at >= since || nodes.contains(node));
    }

    /// The watermark as last computed or told.
    #[inline]
    pub fn low(&self) -> &B {
        &self.low
    }

    /// Somebody who knows all bounds says that this is the watermark.
    pub fn raise(&mut self, low: &B) {
        self.low.join(low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [NodeId; 2] = [NodeId(0), NodeId(1)];

    #[test]
    fn is_the_minimum_of_all_who_count() {
        let mut marks = Watermark::default();
        marks.observe(NodeId(0), Timestamp(10), Nanos(5));
        assert_eq!(marks.advance(&NODES, Nanos(0), Nanos(0)), Timestamp::ZERO);
        marks.observe(NodeId(1), Timestamp(7), Nanos(6));
        assert_eq!(marks.advance(&NODES, Nanos(0), Nanos(0)), Timestamp(7));
        marks.observe(NodeId(1), Timestamp(3), Nanos(7));
        assert_eq!(marks.advance(&NODES, Nanos(0), Nanos(0)), Timestamp(7));
    }

    #[test]
    fn unregistered_clients_count_while_they_are_heard_of_and_are_forgotten_then() {
        let mut marks = Watermark::default();
        for (node, bound) in [(0, 10), (1, 12), (77, 5)] {
            marks.observe(NodeId(node), Timestamp(bound), Nanos(5));
        }
        assert_eq!(marks.advance(&NODES, Nanos(0), Nanos(0)), Timestamp(5));
        for node in [0, 1] {
            marks.observe(NodeId(node), Timestamp(20), Nanos(50));
        }
        marks.forget_silent(&NODES, Nanos(6));
        assert_eq!(marks.bounds.len(), 2);
        assert_eq!(marks.advance(&NODES, Nanos(6), Nanos(0)), Timestamp(20));
    }

    #[test]
    fn the_silent_stop_counting_after_their_lease() {
        let mut marks = Watermark::default();
        marks.observe(NodeId(0), Timestamp(10), Nanos(50));
        marks.observe(NodeId(1), Timestamp(7), Nanos(6));
        assert_eq!(marks.lapsed(Nanos(6)), 0);
        assert_eq!(marks.lapsed(Nanos(7)), 1);
        assert_eq!(marks.advance(&NODES, Nanos(7), Nanos(0)), Timestamp(10));
        assert_eq!(marks.lapsed(Nanos(9)), 0, "it is counted once");
        marks.observe(NodeId(1), Timestamp(8), Nanos(60));
        assert_eq!(marks.advance(&NODES, Nanos(7), Nanos(0)), Timestamp(10));
    }
}
