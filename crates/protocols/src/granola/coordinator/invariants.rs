//! What a coordinator promises of itself, checked over all that it keeps.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::{OpId, Txn};

use super::{Coordinator, FAILED_MAX, InteractiveSlot, Purpose};

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
        self.assert_watching();
        assert!(self.failed.len() <= FAILED_MAX, "{} failures", self.failed.len());
        self.unknown.assert_invariants(self.sequence);
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

    /// Who waits for a change does nothing else, and is looked after.
    fn assert_watching(&self) {
        for (op, waiting) in &self.watching {
            assert!(*op <= self.next_op, "operation {op}, of {}", self.next_op);
            assert!(!self.runs(waiting.txn), "{:?} waits, and goes on", waiting.txn);
            waiting.assert_invariants();
        }
        let asks = self.watching.is_empty() || self.sweep_timer_set;
        assert!(asks, "nobody asks for watches again");
    }

    /// Whether a transaction has not ended.
    fn runs(&self, txn: Txn) -> bool {
        let slot = self.slots.get(txn.slot as usize);
        slot.is_some_and(|slot| slot.running && slot.generation == txn.generation)
    }
}

impl InteractiveSlot {
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

#[cfg(test)]
mod tests {
    use muesli_core::contract::Put;
    use muesli_core::{
        Abort, Address, Catalog, Effects, Failure, NodeId, RepositoryId, Settings, SpaceId, Step,
        Timestamp, TxnId, TxnOptions,
    };

    use super::super::{Context, RequestVerdict};
    use super::*;
    use crate::granola::Switches;
    use crate::granola::message::{Few, FoundVersion, Part, PartAnswer, Request, Task};

    const SPACE: SpaceId = SpaceId(0);

    fn run(run: impl FnOnce(&mut Coordinator, Txn, &mut Context<'_>)) -> Coordinator {
        let nodes = [NodeId(0)];
        let catalog = Catalog::new(&nodes, 1, &nodes).expect("it can be");
        let (settings, effects) = (Settings::default(), &mut Effects::default());
        let me = Address::coordinator(NodeId(1));
        let cx = &mut Context { me, catalog: &catalog, settings: &settings, effects };
        let mut all: Coordinator =
            muesli_core::Coordinator::new(NodeId(1), 1, &Switches::default());
        let txn = all.on_begin(TxnOptions::default(), cx);
        all.check_invariants();
        run(&mut all, txn, cx);
        all
    }

    fn request(sequence: u64) -> Request {
        let task = Task::Read(vec![(SPACE, "key".into())]);
        Request {
            read_only: true,
            ..Request::new(
                TxnId { node: NodeId(1), incarnation: 1, sequence },
                [RepositoryId(0)].into_iter().collect(),
                [Part { partition: 0, owners: None, task }].into_iter().collect(),
            )
        }
    }

    #[test]
    #[should_panic(expected = "257 failures")]
    fn failures_beyond_their_bound_are_noticed() {
        let mut all = run(|_, _, _| {});
        let failure = (Txn { slot: 9, generation: 0 }, Failure::Aborted(Abort::Locked));
        all.failed = vec![failure; FAILED_MAX + 1].into();
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "operation 1 waited for nothing")]
    fn an_answer_that_nobody_waited_for_is_noticed() {
        run(|all, txn, cx| {
            let Step::Wait(op) = all.on_get(txn, SPACE, &"key".into(), cx) else {
                panic!("it is read elsewhere")
            };
            all.check_invariants();
            all.operations.get_mut(op.0).expect("it waits").waiting = 0;
            let (version, collected) = (Timestamp(3), Timestamp::ZERO);
            let found = PartAnswer::Found(vec![FoundVersion { version, value: None, collected }]);
            let verdict = RequestVerdict::Done(Timestamp(3), Few::from_iter([(0, found)]));
            all.on_read_end(op, &request(1), verdict, cx);
        });
    }

    #[test]
    #[should_panic(expected = "n1.1-2 settles itself")]
    fn a_transaction_that_settles_itself_is_noticed() {
        run(|all, txn, cx| {
            all.ask(request(9), Purpose::Names, cx);
            all.sequence = 1;
            let (key, value) = ("key".into(), Some("value".into()));
            let put = Put { space: SPACE, key, value, may_wait: false };
            assert_eq!(all.on_put(txn, put, cx), Ok(()));
            let _ = all.on_commit(txn, cx);
        });
    }

    #[test]
    #[should_panic(expected = "whether the transaction of slot 0 runs")]
    fn slots_that_are_free_while_their_transaction_runs_are_noticed() {
        let mut all = run(|_, _, _| {});
        all.free.push(0);
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "nobody looks after requests")]
    fn requests_that_nobody_looks_after_are_noticed() {
        let mut all = run(|all, txn, cx| {
            let _ = all.on_get(txn, SPACE, &"key".into(), cx);
        });
        all.check_invariants();
        all.sweep_timer_set = false;
        all.check_invariants();
    }

    /// A transaction that waits for a change of what it has read.
    fn waits(all: &mut Coordinator, txn: Txn, cx: &mut Context<'_>) {
        let Step::Wait(op) = all.on_get(txn, SPACE, &"key".into(), cx) else {
            panic!("it is read elsewhere")
        };
        let (version, collected) = (Timestamp(3), Timestamp::ZERO);
        let found = PartAnswer::Found(vec![FoundVersion { version, value: None, collected }]);
        let verdict = RequestVerdict::Done(Timestamp(3), Few::from_iter([(0, found)]));
        all.on_read_end(op, &request(1), verdict, cx);
        assert!(matches!(all.on_watch(txn, cx), Step::Wait(_)), "something was read");
        all.pending = Default::default();
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "waits, and goes on")]
    fn who_waits_for_a_change_does_nothing_else() {
        let mut all = run(waits);
        all.slots[0].generation = 0;
        all.slots[0].running = true;
        all.free.clear();
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "nobody asks for watches again")]
    fn watches_that_nobody_asks_for_again_are_noticed() {
        let mut all = run(waits);
        all.sweep_timer_set = false;
        all.check_invariants();
    }
}
