//! What a coordinator promises of itself, checked over all that it keeps.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::{OpId, Txn};

use super::pending::UNANSWERED_MAX;
use super::{Coordinator, FAILED_MAX, Purpose, Slot};

impl Coordinator {
    /// Checks the invariants of the coordinator and of its parts.
    ///
    /// # Panics
    /// One of them does not hold.
    pub(super) fn check_invariants(&self) {
        self.operations.assert_invariants();
        self.pending.assert_invariants();
        self.names.assert_invariants();
        self.cases.assert_invariants();
        self.copies.assert_invariants();
        self.assert_slots();
        self.assert_operations();
        self.assert_pending();
        assert!(self.failed.len() <= FAILED_MAX, "{} failures", self.failed.len());
        assert!(self.unanswered.len() <= UNANSWERED_MAX, "{} unanswered", self.unanswered.len());
        let last = self.unanswered.last_key_value().map_or(0, |(sequence, _)| *sequence);
        assert!(last <= self.sequence, "outcome {last} is unknown, of {}", self.sequence);
    }

    /// What requests are for: those under way, and those that are to be tried again.
    fn purposes(&self) -> impl Iterator<Item = &Purpose> {
        let under_way = self.pending.iter().filter_map(|(_, pending)| pending.purpose.as_ref());
        under_way.chain(self.again.values().map(|again| &again.purpose))
    }

    /// A slot is free or its transaction runs, and its end has a request if it is under way.
    fn assert_slots(&self) {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        assert_eq!(free.len(), self.free.len(), "slots that are free twice");
        let ending: BTreeSet<(u32, u32)> = self
            .purposes()
            .filter_map(|it| match it {
                Purpose::Commit(txn, _) => Some((txn.slot, txn.generation)),
                _ => None,
            })
            .collect();
        for (place, slot) in self.slots.iter().enumerate() {
            let is_free = free.contains(&(place as u32));
            assert_eq!(slot.running, !is_free, "whether the transaction of slot {place} runs");
            slot.assert_invariants();
            if slot.running {
                let ends = ending.contains(&(place as u32, slot.generation));
                assert_eq!(slot.ending.is_some(), ends, "whether slot {place} ends");
            }
        }
    }

    /// An operation waits for its requests.
    fn assert_operations(&self) {
        let mut waits: BTreeMap<OpId, usize> = BTreeMap::new();
        for purpose in self.purposes() {
            if let Purpose::Read(op) = purpose {
                *waits.entry(*op).or_default() += 1;
            }
        }
        self.pages.iter().for_each(|(op, _)| *waits.entry(*op).or_default() += 1);
        for (number, operation) in self.operations.iter() {
            assert!(number <= self.next_op, "operation {number}, of {}", self.next_op);
            let under_way = waits.get(&OpId(number)).copied().unwrap_or_default();
            assert_eq!(operation.waiting, under_way, "what operation {number} waits for");
            assert!(under_way > 0, "operation {number} waits for nothing");
            assert!(self.runs(operation.txn), "operation {number} of a transaction that is over");
        }
    }

    /// Requests are under way, or are to be tried again, each under its own number.
    fn assert_pending(&self) {
        for (sequence, pending) in self.pending.iter() {
            let id = pending.request.txn;
            assert_eq!(id.sequence, sequence, "the number of {id}");
            assert_eq!((id.node, id.incarnation), (self.id, self.incarnation), "whose {id} is");
            assert!(sequence <= self.sequence, "{id}, of {}", self.sequence);
            pending.assert_invariants();
        }
        for (_, sequence) in self.again.keys() {
            assert!(*sequence <= self.sequence, "{sequence} is tried again, of {}", self.sequence);
        }
        assert!(self.pending.is_empty() || self.sweep_timer_set, "nobody looks after requests");
        let asks = self.purposes().any(|it| matches!(it, Purpose::Names));
        assert!(!self.learning || asks, "it waits for names, and asks nobody");
    }

    /// Whether a transaction has not ended.
    fn runs(&self, txn: Txn) -> bool {
        let slot = self.slots.get(txn.slot as usize);
        slot.is_some_and(|slot| slot.running && slot.generation == txn.generation)
    }
}

impl Slot {
    /// Checks the slot: one that is free keeps nothing of its last transaction, and what was read
    /// is there to be read again.
    fn assert_invariants(&self) {
        if !self.running {
            let is_empty = self.sets.reads.is_empty() && self.sets.writes.is_empty();
            assert!(is_empty && self.scans.is_empty(), "a free slot with sets");
            assert!(self.seen.is_empty(), "a free slot that has read something");
            return;
        }
        self.sets.assert_invariants();
        assert_eq!(self.sets.reads.len(), self.seen.len(), "keys that were read, once each");
    }
}
