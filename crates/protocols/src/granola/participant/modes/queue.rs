//! Transactions of timestamp mode in the order in which they will be done.
//!
//! Each stands at a timestamp below which it will not be done: at its place, if that is known, else
//! at what was proposed here. Whoever waits for votes stands in the *wait queue* of one voter that
//! it misses. What is known of all later votes of that voter holds for the whole wait queue at once
//! (see [`implicit`](crate::granola::participant::votes::implicit)), so an implicit vote moves
//! nobody in the queue.

use std::collections::BTreeSet;
use std::fmt;

use muesli_core::{RepositoryId, Timestamp};

use super::out_of_order::OutOfOrder;
use super::{QueueKey, WaitQueue};

/// The queue.
///
/// Invariants: a wait queue is there once, nobody stands in two, and who may pass whom is known of
/// those who are in, and of nobody else.
#[derive(Clone, Default)]
pub(in super::super) struct Queue {
    placed: BTreeSet<QueueKey>,
    /// Wait queues that have been used; few, and perhaps empty now.
    waiting: Vec<(Option<RepositoryId>, BTreeSet<QueueKey>)>,
    /// Who may pass whom, if anybody may.
    pub out_of_order: Option<OutOfOrder>,
}

impl Queue {
    /// An empty one, in which some may pass others, or nobody may.
    pub fn new(is_out_of_order: bool) -> Queue {
        Queue { out_of_order: is_out_of_order.then(OutOfOrder::default), ..Queue::default() }
    }

    /// Puts a transaction in.
    pub fn insert(&mut self, wait_queue: WaitQueue, stand: QueueKey) {
        if let Some(out_of_order) = &mut self.out_of_order {
            out_of_order.come(wait_queue, stand);
        }
        self.put(wait_queue, stand);
    }

    fn put(&mut self, wait_queue: WaitQueue, stand: QueueKey) {
        let all = match wait_queue {
            WaitQueue::Placed => &mut self.placed,
            WaitQueue::Behind(voter) => {
                let known = self.waiting.iter().position(|(known, _)| *known == voter);
                let place = known.unwrap_or(self.waiting.len());
                if known.is_none() {
                    self.waiting.push((voter, BTreeSet::new()));
                }
                &mut self.waiting[place].1
            }
        };
        assert!(all.insert(stand), "{} stands in the queue already", stand.1);
    }

    /// Takes a transaction out, if it is in.
    pub fn remove(&mut self, wait_queue: WaitQueue, stand: &QueueKey) {
        if let Some(out_of_order) = &mut self.out_of_order {
            out_of_order.go(*stand);
        }
        self.take(wait_queue, stand);
    }

    /// A transaction that is in has its place now.
    pub fn rise(&mut self, wait_queue: WaitQueue, from: QueueKey, to: QueueKey) {
        if let Some(out_of_order) = &mut self.out_of_order {
            out_of_order.rise(from, to);
        }
        assert!(to >= from, "{} falls from {} to {}", to.1, from.0, to.0);
        assert!(self.take(wait_queue, &from), "{} rises, and stands nowhere", from.1);
        self.put(WaitQueue::Placed, to);
    }

    /// What a transaction that is in waits for has changed.
    pub fn change_wait_queue(&mut self, was: WaitQueue, wait_queue: WaitQueue, stand: QueueKey) {
        assert!(self.take(was, &stand), "{} waits for something else, and stands nowhere", stand.1);
        self.put(wait_queue, stand);
    }

    /// Takes out who stands there, if somebody does.
    fn take(&mut self, wait_queue: WaitQueue, stand: &QueueKey) -> bool {
        let WaitQueue::Behind(voter) = wait_queue else { return self.placed.remove(stand) };
        let found = self.waiting.iter_mut().find(|(known, _)| *known == voter);
        found.is_some_and(|(_, all)| all.remove(stand))
    }

    /// Whether somebody stands there.
    pub fn has(&self, wait_queue: WaitQueue, stand: &QueueKey) -> bool {
        let WaitQueue::Behind(voter) = wait_queue else { return self.placed.contains(stand) };
        self.waiting.iter().any(|(known, all)| *known == voter && all.contains(stand))
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let voters: BTreeSet<_> = self.waiting.iter().map(|(voter, _)| *voter).collect();
        assert_eq!(voters.len(), self.waiting.len(), "wait queues that are there twice");
        let all = self.all();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "somebody stands in two wait queues");
        if let Some(out_of_order) = &self.out_of_order {
            out_of_order.assert_invariants(&all);
        }
    }

    /// Takes out everything.
    pub fn clear(&mut self) {
        self.placed.clear();
        self.waiting.clear();
        self.out_of_order = self.out_of_order.take().map(|_| OutOfOrder::default());
    }

    /// Whether nobody is in.
    pub fn is_empty(&self) -> bool {
        self.placed.is_empty() && self.is_all_placed()
    }

    /// Whether who is not first may pass who is.
    pub fn is_passed(&self) -> bool {
        self.out_of_order.is_some()
    }

    /// Who may pass whom, if anybody may.
    pub fn out_of_order(&mut self) -> Option<&mut OutOfOrder> {
        self.out_of_order.as_mut()
    }

    /// Somebody is to be looked at who may pass.
    pub fn has_hope(&self) -> bool {
        self.out_of_order.as_ref().is_some_and(OutOfOrder::has_hope)
    }

    /// It is to be looked at again whether somebody may pass.
    pub fn check_again(&mut self, stand: QueueKey) {
        if let Some(out_of_order) = &mut self.out_of_order {
            out_of_order.check_again(stand);
        }
    }

    /// Whether a transaction is in whose place is known to be there.
    pub fn is_placed(&self, stand: &QueueKey) -> bool {
        self.placed.contains(stand)
    }

    /// Who stands lowest.
    pub fn first(&self) -> Option<QueueKey> {
        let lowest = self.waiting.iter().filter_map(|(_, all)| all.first());
        lowest.chain(self.placed.first()).min().copied()
    }

    /// The first whose place is known, if nobody can come to stand before it.
    pub fn first_ready(&self, bound: impl Fn(RepositoryId) -> Timestamp) -> Option<QueueKey> {
        self.ready(bound).next()
    }

    /// All whose places are known and before whom nobody stands, or can come to, who is not among
    /// them, in ascending order: whoever waits stands above them, or will, as all later votes of a
    /// voter that it misses lie above `bound`.
    pub fn ready(
        &self,
        bound: impl Fn(RepositoryId) -> Timestamp,
    ) -> impl Iterator<Item = QueueKey> {
        let nobody_before = move |placed: &QueueKey| {
            self.waiting.iter().all(|(voter, all)| {
                all.first().is_none_or(|lowest| {
                    lowest > placed || voter.is_some_and(|voter| bound(voter) > placed.0)
                })
            })
        };
        self.placed.iter().copied().take_while(nobody_before)
    }

    /// Whether the places of all are known.
    pub fn is_all_placed(&self) -> bool {
        self.waiting.iter().all(|(_, all)| all.is_empty())
    }

    /// The last whose place is known: the wrong one.
    pub fn last_placed(&self) -> Option<QueueKey> {
        self.placed.last().copied()
    }

    /// All, in ascending order.
    pub fn all(&self) -> Vec<QueueKey> {
        let waiting = self.waiting.iter().flat_map(|(_, all)| all);
        let mut all: Vec<_> = self.placed.iter().chain(waiting).copied().collect();
        all.sort_unstable();
        all
    }
}

/// Without wait queues that are empty, which make no difference.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wait_queues = self.waiting.iter().filter(|(_, all)| !all.is_empty());
        let mut all = f.debug_map();
        all.entry(&"placed", &self.placed).entries(wait_queues.map(|(k, v)| (k, v)));
        all.entries(self.out_of_order.iter().map(|it| ("out_of_order", it))).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use muesli_core::NodeId;
    use muesli_core::TxnId;
    use proptest::prelude::*;

    use super::*;

    fn stand(at: u64, sequence: u64) -> QueueKey {
        let txn = TxnId { node: NodeId(0), incarnation: 1, sequence };
        (Timestamp(at), txn)
    }

    fn wait_queue(number: u8) -> WaitQueue {
        match number {
            0 => WaitQueue::Placed,
            1 => WaitQueue::Behind(None),
            voter => WaitQueue::Behind(Some(RepositoryId(u16::from(voter)))),
        }
    }

    proptest! {
        /// Against a list in which everybody who waits stands where it will at least come to stand.
        #[test]
        fn the_first_is_ready_if_nobody_can_come_before_it(
            steps in prop::collection::vec((0u64..12, 0u64..6, 0u8..4, any::<bool>()), 1..40),
            bounds in prop::collection::vec(0u64..14, 2),
        ) {
            let (mut queue, mut model) = (Queue::default(), BTreeMap::new());
            let bound = |voter: RepositoryId| Timestamp(bounds[usize::from(voter.0) - 2]);
            for (at, sequence, number, goes) in steps {
                if let Some((wait_queue, old)) = model.remove(&sequence) {
                    queue.remove(wait_queue, &old);
                }
                if !goes {
                    model.insert(sequence, (wait_queue(number), stand(at, sequence)));
                    queue.insert(wait_queue(number), stand(at, sequence));
                }
                let all: BTreeSet<_> = model.values().map(|(_, stand)| *stand).collect();
                prop_assert_eq!(queue.all(), all.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(queue.first(), all.first().copied());
                prop_assert_eq!(queue.is_empty(), all.is_empty());
                let mut placed = model.values().filter(|(it, _)| *it == WaitQueue::Placed);
                let first = placed.by_ref().map(|(_, stand)| *stand).min();
                let before = |first: QueueKey| model.values().any(|(it, stand)| match it {
                    WaitQueue::Placed | WaitQueue::Behind(None) => *stand < first,
                    WaitQueue::Behind(Some(voter)) => *stand < first && bound(*voter) <= first.0,
                });
                prop_assert_eq!(queue.first_ready(bound), first.filter(|first| !before(*first)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "waits for something else, and stands nowhere")]
    fn who_waits_without_standing_somewhere_is_noticed() {
        let (was, now) = (WaitQueue::Behind(None), WaitQueue::Placed);
        Queue::default().change_wait_queue(was, now, stand(1, 1));
    }

    #[test]
    #[should_panic(expected = "somebody stands in two wait queues")]
    fn who_stands_twice_is_noticed() {
        let mut queue = Queue::new(false);
        queue.insert(WaitQueue::Placed, stand(1, 1));
        queue.assert_invariants();
        queue.insert(WaitQueue::Behind(None), stand(1, 1));
        queue.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "rises, and stands nowhere")]
    fn who_rises_from_nowhere_is_noticed() {
        Queue::default().rise(WaitQueue::Placed, stand(1, 1), stand(2, 1));
    }
}
