//! What a coordinator promises of itself, checked over all that it keeps.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Txn;
use muesli_core::parts::watermark::Bound;

use super::commit::{Committing, Phase};
use super::{Coordinator, Slot};
use crate::two_phase::Variant;
use crate::two_phase::policy::{FamilySwitch, TreeSwitch};

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
        self.copies.assert_invariants();
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
            let may_delay = V::delays_actions(&self.switches);
            assert!(may_delay || slot.delays.is_empty(), "slot {place} delays, and may not");
            let Some(sequence) = slot.committing().filter(|_| slot.running) else { continue };
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
            let slot = self.slots.get(operation.txn.slot as usize);
            let moving = slot.and_then(|slot| slot.moving.as_ref());
            let aside = moving.and_then(|moving| moving.aside.as_ref());
            let aside = usize::from(aside.is_some_and(|(request, _)| request.op.0 == number));
            let asked = open.remove(&number).unwrap_or_default();
            let waits_for = asked + operation.queued.len() + aside;
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
            let known = slot.and_then(Slot::committing);
            assert_eq!(known, op.map(|_| sequence), "whether {id} is waited for");
            commit.assert_invariants();
            let is_sent = matches!(commit.phase, Phase::Deciding { .. });
            assert!(!is_sent || !commit.is_over(), "{id} is over everywhere, and kept");
        }
        self.unknown.assert_invariants(self.sequence);
    }

    /// What was told to others holds.
    fn assert_bound(&self) {
        // A snapshot that is the version of what was read first, as printed, may lie anywhere.
        let by_clocks = V::keeps(&self.switches, TreeSwitch::SnapshotsByClocks);
        if !by_clocks || !V::switches(&self.switches).keeps(FamilySwitch::ReadersHoldLow) {
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

#[cfg(test)]
mod tests {
    use muesli_core::{Address, Operation, TxnOptions};
    use muesli_core::{Catalog, Effects, Nanos, NodeId, OpId, RepositoryId, Settings, SpaceId};

    use super::super::asked::{Asked, OperationKind, PendingRequest, Queued, WaitingOperation};
    use super::*;
    use crate::score::Snapshots;
    use crate::two_phase::Context;

    /// A coordinator with a transaction, and an operation of it that waits for a request.
    fn coordinator(held: bool) -> Coordinator<Snapshots> {
        let mut all: Coordinator<Snapshots> =
            muesli_core::Coordinator::new(NodeId(1), 0, &crate::score::Switches::default());
        all.slots.push(Slot::empty());
        all.slots[0].running = true;
        let txn = Txn { slot: 0, generation: 0 };
        let (queued, kind) = (Queued::new(), OperationKind::Get(None));
        all.operations.insert(1, WaitingOperation { txn, missing: 1, queued, bytes: 0, kind });
        let keys = [(0, SpaceId(0), "key".into())].into_iter().collect();
        let (to, asked, at) = (RepositoryId(0), Asked::Keys(keys), Nanos(1));
        let request = PendingRequest { held, ..PendingRequest::new(OpId(1), to, asked, at) };
        all.requests.insert(1, request);
        (all.next_op, all.next_request, all.sweep_timer_set) = (1, 1, true);
        all
    }

    fn run(run: impl FnOnce(&mut Context<'_, Snapshots>)) {
        let nodes = [NodeId(0)];
        let catalog = Catalog::new(&nodes, 1, &nodes).expect("it can be");
        let (settings, effects) = (Settings::default(), &mut Effects::default());
        let me = Address::coordinator(NodeId(1));
        run(&mut Context { me, catalog: &catalog, settings: &settings, effects });
    }

    #[test]
    #[should_panic(expected = "page 1 was asked for before its turn")]
    fn a_page_that_was_asked_for_before_its_turn_is_noticed() {
        let mut all = coordinator(false);
        all.check_invariants();
        all.pages.push_back(1);
        run(|cx| all.ask_for_page(cx));
    }

    #[test]
    fn what_was_not_sent_has_no_answer() {
        let at = muesli_core::Timestamp(1);
        run(|cx| assert!(coordinator(true).take_answer((1, Some(at), &at), cx).is_none()));
        run(|cx| assert!(coordinator(false).take_answer((1, Some(at), &at), cx).is_some()));
    }

    #[test]
    #[should_panic(expected = "whether request 1 is held")]
    fn a_request_that_nobody_holds_is_noticed() {
        coordinator(true).check_invariants();
    }

    #[test]
    #[should_panic(expected = "what operation 1 waits for")]
    fn an_operation_that_waits_for_more_than_is_asked_is_noticed() {
        let mut all = coordinator(false);
        all.operations.get_mut(1).expect("it waits").missing = 2;
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "a transaction reads at 0")]
    fn a_reader_below_the_bound_that_was_told_is_noticed() {
        let mut all = coordinator(false);
        all.bound = muesli_core::Timestamp(9);
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "a transaction ends twice")]
    fn a_transaction_that_ends_twice_is_noticed() {
        let mut all = coordinator(false);
        all.slots[0].running = false;
        let txn = Txn { slot: 0, generation: 0 };
        run(|cx| all.end(txn, None, muesli_core::recorder::Status::Aborted, None, cx));
    }

    #[test]
    #[should_panic(expected = "operation 1 of a transaction that is over")]
    fn an_operation_of_nobody_is_noticed() {
        let mut all = coordinator(false);
        all.slots[0].generation = 1;
        all.check_invariants();
    }

    #[test]
    fn a_transaction_that_has_just_begun_is_in_order() {
        let mut all = coordinator(false);
        let begin = Operation::Begin(TxnOptions::default());
        run(|cx| {
            let here = muesli_core::Here::new(&mut []);
            let _ = muesli_core::Coordinator::operate(&mut all, begin, here, cx);
        });
        all.check_invariants();
        assert_eq!(all.running().count(), 2);
    }
}
