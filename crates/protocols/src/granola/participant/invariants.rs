//! What a repository promises of itself, checked over all that it keeps.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::TxnId;

use super::Participant;
use super::modes::active::Active;
use crate::granola::message::Agreement;

impl Participant {
    /// Checks the invariants of the repository and of its parts.
    ///
    /// # Panics
    /// One of them does not hold.
    pub(in crate::granola) fn check_invariants(&self) {
        self.spaces.assert_invariants();
        self.clock.assert_invariants();
        self.active.assert_invariants();
        self.queue.assert_invariants();
        self.footprint_locks.assert_invariants();
        self.vote_sequences.assert_invariants();
        self.early_votes.assert_invariants();
        self.memory.assert_invariants();
        self.feeds.assert_invariants();
        self.moves.assert_invariants();
        self.watches.assert_invariants();
        self.assert_queue();
        self.assert_footprints();
        self.assert_deferred();
        self.assert_waits();
    }

    /// What is under way and not prepared stands in the queue, and nothing else does.
    fn assert_queue(&self) {
        let queued = self.queue.all();
        let mut left: BTreeSet<_> = queued.iter().copied().collect();
        assert_eq!(left.len(), queued.len(), "a transaction stands in the queue twice");
        for (txn, active) in self.active.iter() {
            let stand = (active.bound, *txn);
            assert_eq!(left.remove(&stand), !active.is_prepared(), "whether {txn} is queued");
            if !active.is_prepared() {
                let is_there = self.queue.has(active.wait_queue, &stand);
                assert!(is_there, "{txn} waits as {:?}, and is not there", active.wait_queue);
            }
        }
        assert!(left.is_empty(), "queued and not under way: {left:?}");
        let sets = &self.sets;
        let is_empty = sets.reads.is_empty() && sets.writes.is_empty() && sets.scans.is_empty();
        assert!(is_empty, "an execution left its sets behind");
    }

    /// Whoever has claims is under way, and prepared or in locking mode.
    fn assert_footprints(&self) {
        let claimed: BTreeSet<TxnId> = self.footprint_locks.owners().collect();
        for txn in &claimed {
            let active = self.active.get(txn).expect("whoever has claims is under way");
            assert!(self.locking || active.is_prepared(), "{txn} has claims as it is queued");
        }
        let coordinated = |it: &Active| it.request.agreement == Agreement::Coordinated;
        for (txn, active) in self.active.iter().filter(|(_, active)| active.is_prepared()) {
            assert!(claimed.contains(txn), "{txn} is prepared without claims");
            assert!(self.locking || !coordinated(active), "{txn} is prepared in timestamp mode");
        }
        assert!(self.locking || !self.switches.always_locks(), "locking mode was left for good");
    }

    /// Who waits for locking mode.
    fn assert_deferred(&self) {
        assert!(
            self.deferred.is_empty() || !self.locking,
            "who waited for locking mode still does"
        );
        assert!(self.deferred.is_empty() || self.lock_timer_set, "nobody ends the wait for locks");
        let mut seen = BTreeMap::new();
        for deferred in &self.deferred {
            let (txn, bytes) = (deferred.request.txn, deferred.request.counted_bytes());
            assert!(!self.active.contains_key(&txn), "{txn} waits for what it has");
            assert!(seen.insert(txn, bytes).is_none(), "{txn} waits twice");
            assert_eq!(deferred.bytes, bytes, "what {txn} counts as it waits");
        }
    }

    /// Somebody looks after those that wait.
    fn assert_waits(&self) {
        self.acknowledgements.assert_invariants(self.sweep_timer_set);
        if let Some(asking) = &self.asking {
            asking.assert_invariants(self.id);
        }
        let drops = self.watches.is_empty() || self.sweep_timer_set;
        assert!(drops, "nobody drops the watches of those who wait no more");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muesli_core::parts::votes::Votes;
    use muesli_core::parts::watches::ReadWatch;
    use muesli_core::{Address, Nanos, NodeId, RepositoryId, Settings, SpaceId, Timestamp};

    use super::super::modes::WaitQueue;
    use super::super::modes::locking::Deferred;
    use super::*;
    use crate::granola::Switches;
    use crate::granola::message::{Few, Request};

    const TXN: TxnId = TxnId { node: NodeId(1), incarnation: 1, sequence: 1 };

    fn request() -> Arc<Request> {
        Arc::new(Request {
            agreement: Agreement::Independent,
            ..Request::new(
                TXN,
                [RepositoryId(0), RepositoryId(1)].into_iter().collect(),
                Few::new(),
            )
        })
    }

    /// A repository with a transaction that waits for a vote.
    fn participant() -> Participant {
        let id = RepositoryId(0);
        let mut all: Participant =
            muesli_core::Participant::new(id, &Settings::default(), &Switches::default());
        let votes = Votes::from_voters([RepositoryId(1)]);
        let mut active = Active::new(request(), 0, Timestamp(7), votes, Nanos(1));
        active.wait_queue = WaitQueue::Behind(None);
        all.queue.insert(active.wait_queue, (Timestamp(7), TXN));
        all.active.insert(active);
        all.check_invariants();
        all
    }

    #[test]
    #[should_panic(expected = "whether n1.1-1 is queued")]
    fn who_is_under_way_and_not_queued_is_noticed() {
        let mut all = participant();
        all.queue.clear();
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "n1.1-1 waits as Placed, and is not there")]
    fn who_stands_in_another_wait_queue_is_noticed() {
        let mut all = participant();
        all.active.get_mut(&TXN).expect("it is under way").wait_queue = WaitQueue::Placed;
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "n1.1-1 has claims as it is queued")]
    fn claims_in_timestamp_mode_are_noticed() {
        let mut all = participant();
        all.footprint_locks.hold(TXN, muesli_core::parts::footprint_locks::Claim::default());
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "whether n1.1-1 has its place")]
    fn a_place_before_all_votes_is_noticed() {
        let mut all = participant();
        all.active.get_mut(&TXN).expect("it is under way").place = Some(Timestamp(7));
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "the id of a transaction under way")]
    fn a_transaction_under_the_id_of_another_one_is_noticed() {
        let mut all = participant();
        let mut other = (*request()).clone();
        other.txn.sequence += 1;
        all.active.get_mut(&TXN).expect("it is under way").request = Arc::new(other);
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "nobody ends the wait for locks")]
    fn a_wait_that_nobody_ends_is_noticed() {
        let mut all = participant();
        all.deferred.push(Deferred { request: request(), since: Nanos(1), bytes: 0 });
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "nobody drops the watches")]
    fn watches_that_nobody_drops_are_noticed() {
        let mut all = participant();
        let watch = ReadWatch::new(Nanos(1), vec![(SpaceId(0), "key".into())], Vec::new());
        assert!(all.watches.keep((Address::coordinator(NodeId(1)), 1), watch, 1_000));
        all.sweep_timer_set = true;
        all.check_invariants();
        all.sweep_timer_set = false;
        all.check_invariants();
    }

    #[test]
    #[should_panic(expected = "nobody sends what NodeId(1) is told")]
    fn acknowledgements_that_nobody_sends_are_noticed() {
        let mut all = participant();
        all.acknowledgements.add(TXN);
        all.check_invariants();
    }
}
