//! The commit queue: transactions in timestamp order, popped from the front when ready.
//!
//! A pending transaction stands at the timestamp proposed for it, which is a lower bound of its
//! final one; a ready transaction stands at its final timestamp. The first transaction may leave
//! if it is ready: every other one will end up behind it.

use std::collections::VecDeque;
use std::fmt::Display;

use crate::ids::Timestamp;

/// Transactions `T` by unique timestamps `K`.
///
/// Invariants: timestamps strictly ascend, a transaction stands in it once, and `ready` counts
/// those that are.
#[derive(Clone, Debug)]
pub struct CommitQueue<T, K = Timestamp> {
    entries: VecDeque<QueuedCommit<T, K>>,
    ready: usize,
}

#[derive(Clone, Debug)]
struct QueuedCommit<T, K> {
    at: K,
    ready: bool,
    txn: T,
}

impl<T, K> Default for CommitQueue<T, K> {
    fn default() -> CommitQueue<T, K> {
        CommitQueue { entries: VecDeque::new(), ready: 0 }
    }
}

impl<T: Copy + PartialEq, K: Copy + Ord + Display> CommitQueue<T, K> {
    /// Whether nothing is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many transactions are queued.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The smallest timestamp queued.
    #[inline]
    pub fn first(&self) -> Option<K> {
        self.entries.front().map(|entry| entry.at)
    }

    /// The timestamp at which a transaction waits for its turn, if it does and is ready.
    pub fn ready_at(&self, txn: T) -> Option<K> {
        let found = self.entries.iter().find(|entry| entry.ready && entry.txn == txn);
        found.map(|entry| entry.at)
    }

    /// Whether some transaction stands at `at`.
    pub fn is_taken(&self, at: K) -> bool {
        self.entries.binary_search_by_key(&at, |entry| entry.at).is_ok()
    }

    /// Enters a pending transaction at its proposed timestamp.
    ///
    /// # Panics
    /// If the timestamp is taken.
    pub fn propose(&mut self, at: K, txn: T) {
        self.insert(QueuedCommit { at, ready: false, txn });
    }

    /// Enters a transaction that is ready at its final timestamp.
    ///
    /// # Panics
    /// If the timestamp is taken.
    pub fn enter_ready(&mut self, at: K, txn: T) {
        self.ready += 1;
        self.insert(QueuedCommit { at, ready: true, txn });
    }

    /// Moves a pending transaction to its final timestamp and makes it ready.
    ///
    /// # Panics
    /// If it is not pending at `proposed`, or `at` is below that or taken.
    pub fn decide(&mut self, proposed: K, txn: T, at: K) {
        assert!(at >= proposed, "a final timestamp below the proposal");
        let entry = self.take(proposed, txn);
        assert!(!entry.ready, "decided twice");
        self.ready += 1;
        self.insert(QueuedCommit { at, ready: true, txn });
    }

    /// Takes out a pending transaction that aborted.
    ///
    /// # Panics
    /// If it is not pending at `proposed`.
    pub fn remove(&mut self, proposed: K, txn: T) {
        let entry = self.take(proposed, txn);
        assert!(!entry.ready, "a committed transaction was taken out");
    }

    /// The transactions that are queued, in order, and whether each is ready.
    pub fn queued(&self) -> impl Iterator<Item = (K, T, bool)> + '_ {
        self.entries.iter().map(|entry| (entry.at, entry.txn, entry.ready))
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let mut following = self.entries.iter().zip(self.entries.iter().skip(1));
        assert!(following.all(|(one, next)| one.at < next.at), "a queue out of order");
        let ready = self.entries.iter().filter(|entry| entry.ready).count();
        assert_eq!(self.ready, ready, "how many of a queue are ready");
        for (place, entry) in self.entries.iter().enumerate() {
            let again = self.entries.iter().skip(place + 1).any(|other| other.txn == entry.txn);
            assert!(!again, "a transaction stands in a queue twice, first at {}", entry.at);
        }
    }

    /// The first transaction with its final timestamp, if it is ready.
    pub fn pop_ready(&mut self) -> Option<(K, T)> {
        let entry = self.entries.pop_front_if(|entry| entry.ready)?;
        self.ready -= 1;
        Some((entry.at, entry.txn))
    }

    /// Some ready transaction, whatever stands before it. Only a protocol that is broken on
    /// purpose asks for it.
    pub fn pop_any_ready(&mut self) -> Option<(K, T)> {
        let at = self.entries.iter().rposition(|entry| entry.ready)?;
        self.ready -= 1;
        self.entries.remove(at).map(|entry| (entry.at, entry.txn))
    }

    fn insert(&mut self, entry: QueuedCommit<T, K>) {
        let place = self.entries.partition_point(|other| other.at < entry.at);
        let taken = self.entries.get(place).is_some_and(|other| other.at == entry.at);
        assert!(!taken, "two transactions at {}", entry.at);
        self.entries.insert(place, entry);
    }

    fn take(&mut self, at: K, txn: T) -> QueuedCommit<T, K> {
        let place = self.entries.partition_point(|other| other.at < at);
        let entry = self.entries.remove(place).expect("the transaction is queued");
        assert!(entry.at == at && entry.txn == txn, "another transaction stands at {at}");
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ready_transaction_waits_for_smaller_pending_ones() {
        let mut queue = CommitQueue::default();
        queue.propose(Timestamp(3), 'a');
        queue.propose(Timestamp(5), 'b');
        queue.decide(Timestamp(5), 'b', Timestamp(6));
        assert_eq!(queue.pop_ready(), None);
        queue.decide(Timestamp(3), 'a', Timestamp(9));
        assert_eq!(queue.pop_ready(), Some((Timestamp(6), 'b')));
        assert_eq!(queue.pop_ready(), Some((Timestamp(9), 'a')));
        assert!(queue.is_empty());
    }

    #[test]
    fn an_abort_lets_the_next_one_go() {
        let mut queue = CommitQueue::default();
        queue.propose(Timestamp(3), 'a');
        queue.propose(Timestamp(5), 'b');
        queue.decide(Timestamp(5), 'b', Timestamp(5));
        queue.remove(Timestamp(3), 'a');
        assert_eq!(queue.pop_ready(), Some((Timestamp(5), 'b')));
    }

    proptest! {
        /// Against a model: a sorted map of everything, popped while its first is ready.
        #[test]
        fn pops_what_a_sorted_map_would(
            script in prop::collection::vec((0u8..4, 0u64..20, 0u64..9), 0..80),
        ) {
            let mut queue = CommitQueue::default();
            let mut model: BTreeMap<Timestamp, (bool, u32)> = BTreeMap::new();
            for (serial, (what, which, extra)) in script.into_iter().enumerate() {
                let pending = model.iter().filter(|(_, (ready, _))| !ready);
                let pending: Vec<_> = pending.map(|(at, (_, id))| (*at, *id)).collect();
                match (what, pending.get(which as usize % pending.len().max(1))) {
                    (1, Some(&(at, id))) => {
                        let target = Timestamp(at.0 + extra);
                        if target == at || !model.contains_key(&target) {
                            queue.decide(at, id, target);
                            model.remove(&at);
                            model.insert(target, (true, id));
                        }
                    }
                    (2, Some(&(at, id))) => {
                        queue.remove(at, id);
                        model.remove(&at);
                    }
                    (3, _) => {
                        let first = model.first_key_value().filter(|(_, (ready, _))| *ready);
                        let expected = first.map(|(at, (_, id))| (*at, *id));
                        expected.map(|(at, _)| model.remove(&at));
                        prop_assert_eq!(queue.pop_ready(), expected);
                    }
                    _ => {
                        let at = Timestamp(which * 10 + extra);
                        if let Entry::Vacant(vacant) = model.entry(at) {
                            vacant.insert((false, serial as u32));
                            queue.propose(at, serial as u32);
                        }
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.first(), model.keys().next().copied());
            }
        }
    }
}
