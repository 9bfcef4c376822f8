//! What the table promises of itself, checked over all of it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// What is kept of a coordinator: transactions, those of them that last, and those prepared.
type Counts = (usize, usize, usize);

impl<V: Variant> Table<V> {
    /// Checks the invariants of the table.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        self.assert_slots();
        self.assert_counts();
        self.assert_bytes();
        self.assert_settled();
    }

    /// Slots and ids agree on what is prepared.
    fn assert_slots(&self) {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        assert_eq!(free.len(), self.free.len(), "slots that are free twice");
        for (at, slot) in self.slots.iter().enumerate() {
            let is_free = free.contains(&(at as u32));
            assert_eq!(slot.is_none(), is_free, "whether slot {at} is free");
            let Some(prepared) = slot else { continue };
            let owner = self.owner(prepared.prepare.txn);
            assert_eq!(owner, Some(Owner(at as u32)), "who {} is", prepared.prepare.txn);
        }
        let prepared = self.entries.values().filter(|entry| entry.is_prepared()).count();
        assert_eq!(prepared, self.slots.len() - free.len(), "how many are prepared");
        for entry in self.entries.values() {
            assert!(!matches!(entry, TableEntry::Over(Vote::Yes(_), _)), "a vote of yes is no end");
        }
    }

    /// Counts once more what is counted as it changes.
    fn assert_counts(&self) {
        let mut counts: BTreeMap<NodeId, Counts> = BTreeMap::new();
        for (txn, entry) in &self.entries {
            let (entries, lasting, prepared) = counts.entry(txn.node).or_default();
            *entries += 1;
            *lasting += usize::from(entry.lasts());
            *prepared += usize::from(entry.is_prepared());
        }
        let mut of_clients = 0;
        for (node, known) in &self.settled {
            let counted = counts.remove(node).unwrap_or_default();
            let kept = (known.entries, known.lasting, known.prepared);
            assert_eq!(kept, counted, "what is kept, lasts and is prepared of {node:?}");
            of_clients += if known.is_client { known.entries + 1 } else { 0 };
        }
        assert!(counts.is_empty(), "transactions of unknown coordinators: {counts:?}");
        assert_eq!(self.of_clients, of_clients, "transactions of clients, and clients");
    }

    /// The same of bytes.
    fn assert_bytes(&self) {
        let mut answers: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (txn, gave) in &self.answers {
            *answers.entry(txn.node).or_default() += answers_bytes(gave);
        }
        let all: usize = answers.values().sum();
        assert_eq!(self.answer_bytes, all, "bytes of answers");
        for (node, known) in &self.settled {
            let counted = answers.remove(node).unwrap_or_default();
            assert_eq!(known.answers, counted, "bytes of answers of {node:?}");
        }
        assert!(answers.is_empty(), "answers to unknown coordinators: {answers:?}");
        let prepared = self.slots.iter().flatten();
        let counted = prepared.fold(PreparedBytes::default(), |sum, one| {
            let bytes = one.prepare.held_bytes();
            assert_eq!(one.bytes, bytes, "bytes of {}", one.prepare.txn);
            let more = if one.prepare.adds() { 0 } else { bytes };
            PreparedBytes { all: sum.all + bytes, adding_nothing: sum.adding_nothing + more }
        });
        assert_eq!(self.prepared_bytes, counted, "bytes of what is prepared");
    }

    /// What nobody asks for any more is not kept.
    fn assert_settled(&self) {
        for (txn, entry) in &self.entries {
            let is_kept = entry.is_prepared() || !self.is_settled(*txn);
            assert!(is_kept, "{txn} is settled, and is remembered");
        }
        for txn in self.answers.keys() {
            assert!(!self.is_settled(*txn), "{txn} is settled, and has answers");
        }
        for (txn, (vote, participants)) in self.retired.iter().flatten() {
            let commits = matches!(vote, Vote::Decided(Decision::Commit(_)));
            assert!(commits && *participants != 0, "{txn} is kept for nobody");
        }
    }
}
