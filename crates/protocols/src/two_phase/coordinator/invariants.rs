//! What a coordinator promises of itself, checked over all that it keeps.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Txn;
use muesli_core::parts::watermark::Bound;

use super::commit::{Committing, Phase, UNANSWERED_MAX};
use super::{Coordinator, Slot};
use crate::two_phase::Variant;
use crate::two_phase::policy::Rule;

impl<V: Variant> Coordinator<V> {
    /// Checks the invariants of the coordinator and of its parts.
    ///
    /// # Panics
    /// One of them does not hold.
    pub(super) fn check_invariants(&self) {
        self.operations.assert_invariants();
        self.requests.assert_invariants();
        self.committing.assert_invariants();
        self.failed.assert_invariants();
        self.assert_slots();
        self.assert_operations();
        self.assert_requests();
        self.assert_commits();
        self.assert_bound();
    }

    /// A slot is free or its transaction runs.
    fn assert_slots(&self) {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        assert_eq!(free.len(), self.free.len(), "slots that are free twice");
        for (place, slot) in self.slots.iter().enumerate() {
            let is_free = free.contains(&(place as u32));
            assert_eq!(slot.running, !is_free, "whether the transaction of slot {place} runs");
            slot.assert_invariants();
            let Some(sequence) = slot.committing.filter(|_| slot.running) else { continue };
            let commit = self.committing.get(sequence).expect("a commit that a slot knows");
            let txn = Txn { slot: place as u32, generation: slot.generation };
            assert_eq!(commit.txn, txn, "whose commit {} is", commit.id);
            assert!(commit.op.is_some(), "{} has a slot, and nobody waits for it", commit.id);
        }
    }

    /// An operation waits for its requests, and for what is asked after these.
    fn assert_operations(&self) {
        let mut open: BTreeMap<u64, usize> = BTreeMap::new();
        self.requests.iter().for_each(|(_, request)| *open.entry(request.op.0).or_default() += 1);
        for (number, operation) in self.operations.iter() {
            assert!(number <= self.next_op, "operation {number}, of {}", self.next_op);
            let waits_for = open.remove(&number).unwrap_or_default() + operation.queued.len();
            assert_eq!(operation.missing, waits_for, "what operation {number} waits for");
            assert!(operation.missing > 0, "operation {number} waits for nothing");
            assert!(self.runs(operation.txn), "operation {number} of a transaction that is over");
        }
        assert!(open.is_empty(), "requests of no operation: {open:?}");
    }

    /// A request that is held back is held by its transaction, or is a page that is to be asked
    /// for here.
    fn assert_requests(&self) {
        let running = self.slots.iter().filter(|slot| slot.running);
        let held: BTreeSet<u64> = running.flat_map(|slot| slot.held.iter().copied()).collect();
        for (number, request) in self.requests.iter() {
            assert!(number <= self.next_request, "request {number}, of {}", self.next_request);
            let is_kept = held.contains(&number) || self.pages.contains(&number);
            assert_eq!(request.held, is_kept, "whether request {number} is held");
        }
        for number in held {
            assert!(self.requests.get(number).is_some(), "request {number} is held, and is none");
        }
        let asks = self.sweep_timer_set;
        let waits = !self.requests.is_empty() || !self.committing.is_empty();
        assert!(asks || !waits, "nobody looks after what was not answered");
    }

    /// Commits are under way, each under its own number.
    fn assert_commits(&self) {
        for (sequence, commit) in self.committing.iter() {
            let Committing { id, txn, op, .. } = commit;
            assert_eq!(id.sequence, sequence, "the number of {id}");
            assert_eq!((id.node, id.incarnation), (self.id, self.incarnation), "whose {id} is");
            assert!(sequence <= self.sequence, "{id}, of {}", self.sequence);
            let slot = self
                .slots
                .get(txn.slot as usize)
                .filter(|slot| slot.running && slot.generation == txn.generation);
            let known = slot.and_then(|slot| slot.committing);
            assert_eq!(known, op.map(|_| sequence), "whether {id} is waited for");
            commit.assert_invariants();
            let is_told = matches!(commit.phase, Phase::Deciding { .. });
            assert!(!is_told || !commit.is_over(), "{id} is over everywhere, and kept");
        }
        assert!(self.unanswered.len() <= UNANSWERED_MAX, "{} unanswered", self.unanswered.len());
        let last = self.unanswered.last_key_value().map_or(0, |(sequence, _)| *sequence);
        assert!(last <= self.sequence, "outcome {last} is unknown, of {}", self.sequence);
    }

    /// What was told to others holds.
    fn assert_bound(&self) {
        if !V::rules(&self.rules).keeps(Rule::ReadersHoldLow) {
            return;
        }
        let counts = |slot: &&Slot<V>| slot.begun >= self.aged;
        for slot in self.running().filter(counts) {
            let (mut least, at) = (self.bound.clone(), slot.reads_at());
            least.meet(at);
            assert!(least == self.bound, "a transaction reads at {at}, below {}", self.bound);
        }
    }

    /// Whether a transaction has not ended.
    fn runs(&self, txn: Txn) -> bool {
        let slot = self.slots.get(txn.slot as usize);
        slot.is_some_and(|slot| slot.running && slot.generation == txn.generation)
    }
}
