//! Prepares that wait for locks, each until its deadline, in the order in which they came.
//!
//! There may be [`lock_waiters_max`](muesli_core::Settings::lock_waiters_max) of them at a
//! repository, and together they may take as many bytes as a transaction, or be one. Whoever comes
//! beyond that is refused, and runs again.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::{Abort, Address, Nanos, TxnId};

use super::WaitCheck;
use crate::two_phase::message::Prepare;
use crate::two_phase::participant::{Participant, ParticipantTimer};
use crate::two_phase::{Context, Variant};

/// A prepare that waits for locks, until its deadline.
#[derive(Clone, Debug)]
struct WaitingPrepare<V: Variant> {
    from: Address,
    prepare: Arc<Prepare<V>>,
    deadline: Nanos,
    /// How many it counts towards the limit of those that wait.
    bytes: usize,
}

/// Those that wait, by the order in which they came.
///
/// Invariants: a transaction waits once, counts what its keys and values do, and has a number that
/// was given out.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct WaitingPrepares<V: Variant> {
    waiting: BTreeMap<u64, WaitingPrepare<V>>,
    arrivals: u64,
}

impl<V: Variant> Default for WaitingPrepares<V> {
    fn default() -> WaitingPrepares<V> {
        WaitingPrepares { waiting: BTreeMap::new(), arrivals: 0 }
    }
}

impl<V: Variant> WaitingPrepares<V> {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn has(&self, txn: TxnId) -> bool {
        self.waiting.values().any(|waiting| waiting.prepare.txn == txn)
    }

    /// The transactions that wait.
    pub fn transactions(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.waiting.values().map(|waiting| waiting.prepare.txn)
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let mut all: Vec<TxnId> = self.transactions().collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "a transaction waits twice");
        for (arrival, waiting) in &self.waiting {
            assert!(*arrival <= self.arrivals, "number {arrival} of {}", self.arrivals);
            let bytes = waiting.prepare.counted_bytes();
            assert_eq!(waiting.bytes, bytes, "what {} counts", waiting.prepare.txn);
        }
    }

    fn bytes(&self) -> usize {
        self.waiting.values().map(|waiting| waiting.bytes).sum()
    }
}

impl<V: Variant> Participant<V> {
    /// How many prepares wait for locks.
    pub fn waiting_prepares(&self) -> usize {
        self.waiting_prepares.waiting.len()
    }

    pub(in crate::two_phase) fn wait_for_locks(
        &mut self,
        from: Address,
        prepare: Arc<Prepare<V>>,
        cx: &mut Context<'_, V>,
    ) {
        let all = &mut self.waiting_prepares;
        let (others, bytes) = (all.bytes(), prepare.counted_bytes());
        let most = cx.settings.limits.transaction_bytes;
        let is_much = !all.is_empty() && others.saturating_add(bytes) > most;
        if is_much || all.waiting.len() >= cx.settings.lock_waiters_max {
            self.vote_no(from, &prepare, Abort::Overloaded, cx);
            return;
        }
        let deadline = cx.now() + cx.settings.lock_wait;
        assert!(!all.has(prepare.txn), "{} waits twice", prepare.txn);
        all.arrivals += 1;
        all.waiting.insert(all.arrivals, WaitingPrepare { from, prepare, deadline, bytes });
        assert!(
            all.waiting.len() <= cx.settings.lock_waiters_max,
            "prepares that wait have a bound"
        );
        self.set_lock_timer(cx);
    }

    pub(in crate::two_phase) fn set_lock_timer(&mut self, cx: &mut Context<'_, V>) {
        let deadlines = self.waiting_prepares.waiting.values().map(|waiting| waiting.deadline);
        let deadlines = deadlines.chain(self.encounters.first_deadline());
        if let Some(next) = deadlines.min().filter(|_| !self.lock_timer_set) {
            self.lock_timer_set = true;
            cx.set_timer(ParticipantTimer::Lock, next - cx.now());
        }
    }

    pub(in crate::two_phase) fn retry_waiting_prepares(&mut self, cx: &mut Context<'_, V>) {
        let arrivals: Vec<_> = self.waiting_prepares.waiting.keys().copied().collect();
        for arrival in arrivals {
            let Some(waiting) = self.waiting_prepares.waiting.remove(&arrival) else { continue };
            match self.check(&waiting.prepare, cx) {
                WaitCheck::Blocked => {
                    self.waiting_prepares.waiting.insert(arrival, waiting);
                }
                WaitCheck::Refused(reason) => {
                    self.vote_no(waiting.from, &waiting.prepare, reason, cx);
                }
                WaitCheck::Free(validation) => {
                    self.vote_yes(waiting.from, waiting.prepare, validation, cx);
                }
            }
        }
    }

    pub(in crate::two_phase) fn on_lock_timeout(&mut self, cx: &mut Context<'_, V>) {
        self.lock_timer_set = false;
        let now = cx.now();
        let expired: Vec<_> = self
            .waiting_prepares
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.deadline <= now)
            .map(|(arrival, _)| *arrival)
            .collect();
        for arrival in expired {
            if let Some(waiting) = self.waiting_prepares.waiting.remove(&arrival) {
                self.vote_no(waiting.from, &waiting.prepare, Abort::Locked, cx);
            }
        }
        self.refuse_late_locks(cx);
        self.set_lock_timer(cx);
    }

    /// A transaction that was decided need not wait for locks any more.
    pub(in crate::two_phase) fn forget_waiting(&mut self, txn: TxnId) -> bool {
        let all = &mut self.waiting_prepares.waiting;
        let before = all.len();
        if before > 0 {
            all.retain(|_, waiting| waiting.prepare.txn != txn);
        }
        all.len() < before
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, Timestamp};

    use super::*;
    use crate::score::Snapshots;

    fn waiting(arrival: u64, bytes: usize) -> WaitingPrepares<Snapshots> {
        let prepare = Arc::new(Prepare {
            txn: TxnId { node: NodeId(1), incarnation: 1, sequence: 1 },
            settled_below: 1,
            participants: [].into_iter().collect(),
            snapshot: Timestamp(1),
            reader: (),
            strict: false,
            reads: [].into_iter().collect(),
            writes: [].into_iter().collect(),
            scans: Vec::new(),
            delayed: Vec::new(),
            extra: None,
            leaving: Default::default(),
            arriving: Default::default(),
        });
        let (from, deadline) = (Address::coordinator(NodeId(1)), Nanos(5));
        let one = WaitingPrepare { from, prepare, deadline, bytes };
        WaitingPrepares { waiting: BTreeMap::from([(arrival, one)]), arrivals: 1 }
    }

    #[test]
    #[should_panic(expected = "number 2 of 1")]
    fn a_number_that_was_not_given_out_is_noticed() {
        waiting(1, 0).assert_invariants();
        waiting(2, 0).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "what n1.1-1 counts")]
    fn what_counts_more_than_it_does_is_noticed() {
        waiting(1, 9).assert_invariants();
    }
}
