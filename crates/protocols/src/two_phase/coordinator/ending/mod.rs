//! Transactions that end: their slots, their locks, and what waits for them.

use muesli_core::recorder::Status;
use muesli_core::{Abort, Failure, OpId, Timestamp, Txn, TxnId};

use super::Coordinator;
use crate::two_phase::message::Message;
use crate::two_phase::{Context, Variant};

pub(in crate::two_phase) mod failed;

impl<V: Variant> Coordinator<V> {
    /// Ends a transaction: into the history, and its slot is free.
    #[inline]
    pub(in crate::two_phase) fn end(
        &mut self,
        txn: Txn,
        id: Option<TxnId>,
        status: Status,
        at: Option<Timestamp>,
        cx: &mut Context<'_, V>,
    ) {
        let environment = &mut cx.effects.environment;
        if let Some(recorder) = &mut environment.recorder {
            let id = id.unwrap_or_else(|| {
                self.sequence += 1;
                TxnId { node: self.id, incarnation: self.incarnation, sequence: self.sequence }
            });
            let slot = &self.slots[txn.slot as usize];
            let end = (status != Status::Unknown).then_some(environment.now);
            slot.sets.record(id, (slot.begun, &slot.options), status, (end, at), recorder);
        }
        if V::POLICIES.locking.may_lock_at_writes() {
            self.give_locks_back(txn, status, cx);
        }
        let slot = &mut self.slots[txn.slot as usize];
        assert!(slot.running, "a transaction ends twice");
        slot.vacate();
        self.free.push(txn.slot);
    }

    /// A transaction with locks ends: where it has not prepared it gives them back.
    fn give_locks_back(&mut self, txn: Txn, status: Status, cx: &mut Context<'_, V>) {
        let slot = &self.slots[txn.slot as usize];
        if status == Status::Committed && slot.committing().is_some() {
            return; // Its prepares have taken them over.
        }
        let may_hold = self.locks_at_writes || slot.locked_at.is_empty();
        assert!(may_hold, "locks of a running transaction, where the commit takes them");
        let reader = self.reader(txn);
        for &repository in &slot.locked_at {
            cx.send_to_repository(repository, Message::Unlock { reader });
        }
    }

    /// Ends a transaction that failed before its commit, and everything that waits for it.
    pub(in crate::two_phase) fn abort(
        &mut self,
        txn: Txn,
        failure: &Failure,
        cx: &mut Context<'_, V>,
    ) {
        if self.slot(txn).is_none() {
            return;
        }
        if let Failure::Aborted(reason) = failure {
            self.learn_from(*reason);
        }
        self.end(txn, None, Status::Aborted, None, cx);
        if *failure != Failure::Aborted(Abort::Rollback) {
            self.failed.remember(txn, failure);
        }
        if !self.operations.is_empty() {
            self.fail_operations(txn, failure, cx);
        }
    }

    /// Whatever the transaction still waits for has failed.
    #[cold]
    pub(in crate::two_phase) fn fail_operations(
        &mut self,
        txn: Txn,
        failure: &Failure,
        cx: &mut Context<'_, V>,
    ) {
        let waiting: Vec<_> = self
            .operations
            .iter()
            .filter(|(_, operation)| operation.txn == txn)
            .map(|(op, _)| OpId(op))
            .collect();
        for op in waiting {
            let operation = self.operations.remove(op.0);
            let operation = operation.expect("an operation that waited");
            assert_eq!(operation.txn, txn, "whose operation {} was", op.0);
            self.requests.retain(|request| request.op != op);
            if operation.is_clients() {
                cx.complete(op, Err(failure.clone()));
            }
        }
        if let Some(slot) = self.slot(txn) {
            slot.stay();
            slot.held.clear();
            slot.fixing = None;
        }
    }

    /// What a stale read teaches: later snapshots are to be at least what was heard of since.
    pub(in crate::two_phase) fn learn_from(&mut self, reason: Abort) {
        match reason {
            Abort::StaleRead
            | Abort::Phantom
            | Abort::TimeWarpedActions
            | Abort::SnapshotTooOld
            | Abort::Forgotten => {
                self.fresh = self.observed.clone();
            }
            Abort::Locked | Abort::Abandoned | Abort::Overloaded => {}
            Abort::KeyTooLarge | Abort::ValueTooLarge | Abort::TransactionTooLarge => {}
            Abort::Rollback
            | Abort::Moved
            | Abort::FootprintViolation
            | Abort::Superseded
            | Abort::OutOfMemory => {}
        }
    }
}
