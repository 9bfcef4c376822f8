//! What the memory of ends promises of itself, checked over all of it.

use super::*;

impl EndedTransactions {
    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let weights: usize = self.coordinators.values().map(CoordinatorOutcomes::weight).sum();
        assert_eq!(self.of_clients, weights, "ends of clients, and clients");
        let mut shared: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (txn, received) in &self.data {
            *shared.entry(txn.node).or_default() += data_bytes(received);
            assert_ne!(self.age(*txn), Age::Settled, "{txn} is settled, and has data");
        }
        for (node, known) in &self.coordinators {
            let shared = shared.remove(node).unwrap_or_default();
            known.assert_invariants(*node, shared);
        }
        assert!(shared.is_empty(), "data of unknown coordinators: {shared:?}");
        for (txn, (ballot, about)) in self.retired.iter().flatten() {
            assert!(matches!(ballot, TimestampVote::Commit(_)), "{txn} is kept, and was not done");
            assert_ne!(*about, 0, "{txn} is kept for nobody");
        }
    }
}

impl CoordinatorOutcomes {
    /// Checks what is known of a coordinator, of whose transactions so many bytes were told.
    fn assert_invariants(&self, node: NodeId, shared: usize) {
        self.over.assert_invariants();
        let over = self.over.iter().map(|(_, over)| over).chain(self.earlier.values());
        let ends: usize = over.map(|over| over.end.bytes()).sum();
        assert_eq!(self.bytes, ends + shared, "bytes that are kept of {node:?}");
        let first = self.over.first().unwrap_or(u64::MAX);
        assert!(first >= self.settled_below, "{first} of {node:?} is settled, and remembered");
        let newest = self.earlier.last_key_value().map_or(0, |((incarnation, _), _)| *incarnation);
        assert!(
            newest < self.incarnation || self.earlier.is_empty(),
            "life {newest} of {node:?} is over"
        );
        assert!(!self.is_silent || self.seen_at != Nanos(0), "{node:?} is a member, and silent");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    fn memory(change: impl FnOnce(&mut CoordinatorOutcomes)) -> EndedTransactions {
        let txn = |incarnation, sequence| TxnId { node: NODE, incarnation, sequence };
        let over = Over {
            ballot: Some(TimestampVote::Commit(Timestamp(7))),
            about: 0,
            end: ReplyOutcome::Conflict,
            noted: Noted::default(),
        };
        let mut memory = EndedTransactions::default();
        memory.remember(txn(1, 4), over.clone());
        memory.remember(txn(2, 9), over);
        memory.assert_invariants();
        change(memory.coordinators.get_mut(&NODE).expect("just heard of"));
        memory
    }

    #[test]
    #[should_panic(expected = "life 1 of NodeId(1) is over")]
    fn a_life_that_is_over_and_is_not_is_noticed() {
        memory(|known| known.incarnation = 1).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "9 of NodeId(1) is settled, and remembered")]
    fn what_is_settled_and_remembered_is_noticed() {
        memory(|known| known.settled_below = 10).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "bytes that are kept of NodeId(1)")]
    fn bytes_that_are_not_kept_are_noticed() {
        memory(|known| known.bytes += 1).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "NodeId(1) is a member, and silent")]
    fn a_member_that_is_silent_is_noticed() {
        memory(|known| known.is_silent = true).assert_invariants();
    }
}
