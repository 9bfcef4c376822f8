//! Writes, which are buffered until the commit.

use muesli_core::{Failure, Put, Step, Txn};

use super::Coordinator;
use crate::two_phase::{Context, Variant};

impl<V: Variant> Coordinator<V> {
    /// Buffers a write, and asks for the key's lock where these are taken as keys are written.
    #[inline(always)]
    pub(super) fn on_put(&mut self, txn: Txn, write: Put, cx: &mut Context<'_, V>) -> Step<()> {
        let locks =
            V::POLICIES.locking.may_lock_at_writes() && self.locks_at_writes && write.may_wait;
        let lock = locks.then(|| (write.space, write.key.clone()));
        if let Err(failure) = self.buffer(txn, write, cx) {
            return Step::Done(Err(failure));
        }
        match lock.and_then(|lock| self.ask_lock(txn, lock, cx)) {
            Some(op) => Step::Wait(op),
            None => Step::Done(Ok(())),
        }
    }

    #[inline(always)]
    fn buffer(&mut self, txn: Txn, write: Put, cx: &mut Context<'_, V>) -> Result<(), Failure> {
        let Put { space, key, value, may_wait: _ } = write;
        let may_delay = V::delays_actions(&self.switches);
        let slot = self.open(txn)?;
        if slot.options.read_only {
            return Err(Failure::ReadOnly);
        }
        if may_delay && !slot.delays.is_empty() && slot.delays.sees(space, &key) {
            return Err(self.footprint_violation(txn, cx));
        }
        let limits = &cx.settings.limits;
        match cx.effects.recorder {
            Some(_) => slot.sets.write_recorded((space, key, value), limits),
            None => slot.sets.write(space, key, value, limits),
        }
    }
}
