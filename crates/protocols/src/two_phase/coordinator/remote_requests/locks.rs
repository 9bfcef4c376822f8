//! Locks that are taken as keys are written, under protocols that do so.

use muesli_core::parts::locator::Static;
use muesli_core::{Abort, Failure, OpId, SmallBytes, SpaceId, Txn};

use super::Coordinator;
use crate::two_phase::coordinator::asked::{Asked, OperationKind, PendingRequest, Queued};
use crate::two_phase::{Context, Variant};

impl<V: Variant> Coordinator<V> {
    /// Locks the key that was just written, at all replicas; `None`: it is locked already, or locks
    /// are taken at the commit.
    pub(in crate::two_phase) fn ask_lock(
        &mut self,
        txn: Txn,
        (space, key): (SpaceId, SmallBytes),
        cx: &mut Context<'_, V>,
    ) -> Option<OpId> {
        let slot = self.slot(txn)?;
        if !slot.locked.insert((space, key.clone())) {
            return None;
        }
        let replicas = Static.replicas_of(cx.catalog.partition(space, &key), cx.catalog);
        let replicas: Vec<_> = replicas.collect();
        assert!(!replicas.is_empty(), "a key that lives nowhere");
        slot.locked_at.extend(&replicas);
        let groups = replicas.into_iter().map(|to| (to, Asked::Lock(space, key.clone())));
        Some(self.ask(txn, (OperationKind::Lock, Queued::new()), groups, cx))
    }

    /// A replica has locked a key, or refused.
    pub(in crate::two_phase) fn on_locked(
        &mut self,
        request: u64,
        refused: Option<Abort>,
        cx: &mut Context<'_, V>,
    ) {
        let is_lock = |it: &PendingRequest| matches!(it.asked, Asked::Lock(..));
        if !self.requests.get(request).is_some_and(is_lock) {
            return;
        }
        let Some(request) = self.requests.remove(request) else { return };
        let Some(operation) = self.operations.get(request.op.0) else { return };
        match refused {
            Some(reason) => self.abort(operation.txn, &Failure::Aborted(reason), cx),
            None => self.count_answer(request.op, cx),
        }
    }
}
