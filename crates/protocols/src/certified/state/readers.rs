//! Transactions that read at a site, each at its snapshot.
//!
//! Versions are kept for as long as a transaction may read them. Its coordinator says when it reads
//! no more; one that is silent for longer than its lease is taken to be gone, and one that is open
//! for longer than snapshots may be is told that its snapshot is too old.

use std::collections::BTreeMap;

use muesli_core::{Nanos, NodeId, Settings};

use crate::certified::message::ReaderNumber;

/// A transaction that reads here.
#[derive(Clone, Copy, Debug)]
struct SiteReader {
    /// Its snapshot.
    clock: u64,
    /// Since when.
    since: Nanos,
    /// When its coordinator was heard of last.
    observed: Nanos,
}

/// So many transactions of one node read at a site; further ones are told that their snapshot is
/// too old.
const OF_A_NODE_MOST: u32 = 1 << 16;

/// The transactions that read at a site.
///
/// Invariants: `clocks` counts the snapshots of all readers, and `of_nodes` the readers of each
/// node.
#[derive(Clone, Debug, Default)]
pub struct SiteReaders {
    all: BTreeMap<(NodeId, ReaderNumber), SiteReader>,
    clocks: BTreeMap<u64, u32>,
    of_nodes: BTreeMap<NodeId, u32>,
}

impl SiteReaders {
    /// The snapshot of a reader, if it has one.
    pub fn snapshot(&mut self, node: NodeId, number: ReaderNumber, now: Nanos) -> Option<u64> {
        let reader = self.all.get_mut(&(node, number))?;
        reader.observed = reader.observed.max(now);
        Some(reader.clock)
    }

    /// A transaction reads at this clock from now on; false: too many of its node do already.
    pub fn insert(&mut self, node: NodeId, number: ReaderNumber, clock: u64, now: Nanos) -> bool {
        let of_node = self.of_nodes.entry(node).or_default();
        if *of_node >= OF_A_NODE_MOST {
            return false;
        }
        *of_node += 1;
        assert!(*of_node <= OF_A_NODE_MOST, "node {} has {of_node} readers here", node.0);
        let reader = SiteReader { clock, since: now, observed: now };
        let before = self.all.insert((node, number), reader);
        assert!(before.is_none(), "a reader has one snapshot");
        *self.clocks.entry(clock).or_default() += 1;
        true
    }

    /// A transaction reads no more.
    pub fn remove(&mut self, node: NodeId, number: ReaderNumber) {
        if let Some(reader) = self.all.remove(&(node, number)) {
            uncount(&mut self.clocks, &reader.clock);
            uncount(&mut self.of_nodes, &node);
        }
    }

    /// Forgets those whose coordinators are silent, and those that are open for too long.
    pub fn expire(&mut self, now: Nanos, settings: &Settings) {
        let is_over = |reader: &SiteReader| {
            reader.observed + settings.snapshot_lease <= now
                || reader.since + settings.snapshot_age_max <= now
        };
        let over = self.all.extract_if(.., |_, reader| is_over(reader));
        let over: Vec<_> = over.map(|((node, _), reader)| (node, reader.clock)).collect();
        for (node, clock) in over {
            uncount(&mut self.clocks, &clock);
            uncount(&mut self.of_nodes, &node);
        }
    }

    /// Forgets the oldest half of all snapshots: what they need takes too much.
    pub fn drop_oldest(&mut self) {
        let middle = self.clocks.keys().nth(self.clocks.len() / 2).copied();
        let Some(middle) = middle else { return };
        let over: Vec<_> = self.all.extract_if(.., |_, it| it.clock <= middle).collect();
        for ((node, _), reader) in over {
            uncount(&mut self.clocks, &reader.clock);
            uncount(&mut self.of_nodes, &node);
        }
        assert!(self.all.len() >= self.clocks.len(), "snapshots without readers");
    }

    /// The oldest snapshot of all.
    pub fn oldest(&self) -> Option<u64> {
        self.clocks.keys().next().copied()
    }

    /// Checks the invariant.
    ///
    /// # Panics
    /// It does not hold.
    pub fn assert_invariants(&self) {
        let mut clocks = BTreeMap::new();
        self.all.values().for_each(|it| *clocks.entry(it.clock).or_default() += 1);
        assert_eq!(clocks, self.clocks, "snapshots of readers");
        let mut of_nodes = BTreeMap::new();
        self.all.keys().for_each(|(node, _)| *of_nodes.entry(*node).or_default() += 1);
        assert_eq!(of_nodes, self.of_nodes, "readers of nodes");
    }
}

/// One less is counted.
fn uncount<K: Ord + std::fmt::Debug>(counts: &mut BTreeMap<K, u32>, of: &K) {
    let count = counts.get_mut(of).expect("each is counted");
    assert!(*count > 0, "{of:?} is counted, not once");
    *count -= 1;
    if *count == 0 {
        counts.remove(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: [ReaderNumber; 3] = [number(0), number(1), number(2)];

    const fn number(number: u32) -> ReaderNumber {
        ReaderNumber { incarnation: 1, number }
    }

    #[test]
    fn the_oldest_snapshot_is_that_of_a_reader_that_is_heard_of() {
        let (mut readers, node) = (SiteReaders::default(), NodeId(4));
        let settings = Settings {
            snapshot_lease: Nanos(10),
            snapshot_age_max: Nanos(25),
            ..Settings::default()
        };
        for (place, clock) in [7, 5, 9].into_iter().enumerate() {
            readers.insert(node, NUMBER[place], clock, Nanos(0));
        }
        assert_eq!(readers.oldest(), Some(5));
        assert_eq!(readers.snapshot(node, NUMBER[0], Nanos(8)), Some(7));
        assert_eq!(readers.snapshot(NodeId(5), NUMBER[0], Nanos(8)), None);
        readers.expire(Nanos(12), &settings);
        assert_eq!(readers.oldest(), Some(7), "the others were silent");
        readers.assert_invariants();
        assert_eq!(readers.snapshot(node, NUMBER[0], Nanos(20)), Some(7));
        readers.expire(Nanos(25), &settings);
        assert_eq!(readers.oldest(), None, "it was open for too long");
        readers.insert(node, NUMBER[1], 3, Nanos(30));
        readers.insert(node, NUMBER[2], 4, Nanos(30));
        readers.remove(node, NUMBER[1]);
        assert_eq!(readers.oldest(), Some(4));
        readers.drop_oldest();
        assert_eq!(readers.oldest(), None);
        readers.assert_invariants();
        let numbers = 0..OF_A_NODE_MOST;
        assert!(numbers.clone().all(|it| readers.insert(node, number(it), 1, Nanos(40))));
        assert!(!readers.insert(node, number(OF_A_NODE_MOST), 1, Nanos(40)), "one too many");
        assert!(readers.insert(NodeId(9), number(0), 1, Nanos(40)), "another node");
    }
}
