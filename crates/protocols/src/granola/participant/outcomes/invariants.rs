//! What the memory of ends promises of itself, checked over all of it.

use super::*;

impl Memory {
    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let weights: usize = self.coordinators.values().map(Known::weight).sum();
        assert_eq!(self.of_clients, weights, "ends of clients, and clients");
        let mut told: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (txn, heard) in &self.data {
            *told.entry(txn.node).or_default() += data_bytes(heard);
            assert_ne!(self.age(*txn), Age::Settled, "{txn} is settled, and has data");
        }
        for (node, known) in &self.coordinators {
            let told = told.remove(node).unwrap_or_default();
            known.assert_invariants(*node, told);
        }
        assert!(told.is_empty(), "data of unknown coordinators: {told:?}");
        for (txn, (ballot, about)) in self.retired.iter().flatten() {
            assert!(matches!(ballot, Ballot::Commit(_)), "{txn} is kept, and was not done");
            assert_ne!(*about, 0, "{txn} is kept for nobody");
        }
    }
}

impl Known {
    /// Checks what is known of a coordinator, of whose transactions so many bytes were told.
    fn assert_invariants(&self, node: NodeId, told: usize) {
        self.over.assert_invariants();
        let over = self.over.iter().map(|(_, over)| over).chain(self.earlier.values());
        let ends: usize = over.map(|over| over.end.bytes()).sum();
        assert_eq!(self.bytes, ends + told, "bytes that are kept of {node:?}");
        let first = self.over.first().unwrap_or(u64::MAX);
        assert!(first >= self.settled_below, "{first} of {node:?} is settled, and remembered");
        let newest = self.earlier.last_key_value().map_or(0, |((life, _), _)| *life);
        assert!(newest < self.life || self.earlier.is_empty(), "life {newest} of {node:?} is over");
        assert!(!self.is_silent || self.heard != Nanos(0), "{node:?} is a member, and silent");
    }
}
