//! Applying decided transactions in commit order: versions, clock, locks.

use muesli_core::parts::locks::Owner;
use muesli_core::parts::versions::Handle;
use muesli_core::{Decision, SmallBytes, SpaceId, Timestamp, TxnId};

use super::Participant;
use crate::two_phase::VariantState;
use crate::two_phase::message::{Answers, Prepare, Writes};
use crate::two_phase::policy::TreeSwitch;
use crate::two_phase::table::Prepared;
use crate::two_phase::{Context, Time, Variant};

impl<V: Variant> Participant<V> {
    /// Gives a prepared transaction its end: into its final place in the queue, or out of it.
    pub(in crate::two_phase) fn settle(
        &mut self,
        owner: Owner,
        decision: Decision<V::Place>,
        cx: &mut Context<'_, V>,
    ) {
        let prepared = self.table.get_mut(owner);
        let txn = prepared.prepare.txn;
        assert!(prepared.decided.is_none(), "{txn} is decided twice");
        match decision {
            Decision::Commit(place) => {
                self.time.decided(txn, &prepared.yes, &place, owner);
                prepared.decided = Some(place.clone());
                if !prepared.delayed.is_empty() {
                    self.run_delayed_time_warped(owner, &place, cx);
                }
                if self.orders_waits() {
                    self.free_what_it_read(owner, &place, cx);
                }
            }
            Decision::Abort(_) => {
                self.time.withdraw(txn, &prepared.yes, owner);
                let prepared = self.table.finish(owner, decision);
                self.note_moved(prepared.bytes);
                self.release(owner, &prepared, cx);
            }
        }
        self.apply_ready(cx);
        self.after_release(cx);
    }

    /// Applies the transactions whose turn has come: versions, clock, locks, in this order.
    pub(super) fn apply_ready(&mut self, cx: &mut Context<'_, V>) {
        while self.stalled.is_none()
            && let Some(owner) = self.time.next_ready()
        {
            let is_known = self.table.get(owner).decided.is_some();
            assert!(is_known, "{} has its turn in doubt", self.table.get(owner).prepare.txn);
            if self.replaying && !self.table.get(owner).calls.is_empty() {
                self.stalled = Some(owner);
                return;
            }
            self.apply(owner, None, cx);
        }
        self.time.rest();
        self.count_step(cx);
    }

    /// Applies a transaction whose turn it is; what its procedures did may be known from the log.
    pub(super) fn apply(
        &mut self,
        owner: Owner,
        logged: Option<(Writes, Answers)>,
        cx: &mut Context<'_, V>,
    ) {
        let decided = self.table.get(owner).decided.clone();
        let place = decided.expect("only what was decided is ready");
        let mut prepared = self.table.finish(owner, Decision::Commit(place.clone()));
        let at = V::Time::version_of(&place);
        self.note_moved(prepared.bytes);
        let passes = self.keeps(TreeSwitch::ClocksPassEnds);
        for (place, write) in prepared.writes.iter_mut().enumerate() {
            if self.leaves_copy(&prepared.prepare, place) {
                continue;
            }
            let value = write.value.take();
            let versions = self.space(write.space, cx);
            // After a checkpoint this version or a later one may be there already; otherwise
            // only where transactions are applied out of order, on purpose.
            if versions.newest(write.handle).at < at {
                versions.install(write.handle, value, at);
            } else if self.has_intervals() || !passes {
                self.install_below((write.space, write.handle), value, at, cx);
            }
        }
        if prepared.prepare.delays() {
            self.run_delayed(&prepared, at, logged, cx);
        }
        if V::keys_move(cx.catalog) {
            self.hand_over(&prepared.prepare, at, cx);
        }
        self.note_applied(&prepared.prepare, &place);
        if self.is_watched() {
            self.tell_of(&prepared.prepare, cx);
        }
        let touched = prepared.prepare.reads.len() + prepared.prepare.writes.len();
        cx.effects.work.validated += V::read_timestamps(touched);
        cx.effects.work.installed += prepared.writes.len() as u64;
        let keys = prepared.prepare.writes.iter().map(|(space, key, _)| (*space, key));
        self.time.applied(&place, keys);
        let reached = self.time.reached(&V::Time::known_by(&place));
        let committed = self.time.reached(&self.time.committed());
        assert!(!passes || committed >= reached, "{reached} is applied, committed {committed}");
        if let Some(recorder) = &mut cx.effects.recorder {
            recorder.applied(prepared.prepare.txn, at);
        }
        self.release(owner, &prepared, cx);
    }

    /// The log says what came of what was delayed: of procedures, which are waited for, or of
    /// actions, which were run from it, and perhaps on what a checkpoint has of later.
    pub(super) fn replay_ran(
        &mut self,
        txn: TxnId,
        writes: Writes,
        answers: Answers,
        cx: &mut Context<'_, V>,
    ) {
        self.apply_ready(cx);
        let waits = |owner: &Owner| self.table.get(*owner).prepare.txn == txn;
        match self.stalled.take_if(|owner| waits(owner)) {
            Some(owner) => {
                self.apply(owner, Some((writes, answers)), cx);
                self.apply_ready(cx);
            }
            None => self.table.keep_answers(txn, answers),
        }
    }

    /// What the state of the variant must know of a transaction that was applied: its writes first,
    /// so that what it read and wrote itself is forgotten, and then what it read.
    #[inline]
    fn note_applied(&mut self, prepare: &Prepare<V>, place: &V::Place) {
        for (space, key, _) in &prepare.writes {
            self.protocol_state.note_written((*space, key), place);
        }
        for (space, key, _) in &prepare.delayed {
            self.protocol_state.note_written((*space, key), place);
        }
        if !self.orders_waits() {
            self.note_reads(prepare, place);
        }
    }

    /// What the state of the variant must know of the reads of a transaction that lies at `place`.
    pub(in crate::two_phase) fn note_reads(&mut self, prepare: &Prepare<V>, place: &V::Place) {
        for (space, key, _) in &prepare.reads {
            self.protocol_state.note_read_by((*space, key), place);
        }
        for range in prepare.scans.iter().chain(prepare.calls().iter().flat_map(|it| &it.ranges)) {
            self.protocol_state.note_scanned_by(range, place);
        }
        for (space, key) in prepare.calls().iter().flat_map(|call| &call.keys) {
            self.protocol_state.note_read_by((*space, key), place);
        }
    }

    /// Puts a version where it lies, below newer ones that were decided earlier. After a checkpoint
    /// it may be there already, or have been there and be collected.
    pub(super) fn install_below(
        &mut self,
        (space, handle): (SpaceId, Handle),
        value: Option<SmallBytes>,
        at: Timestamp,
        cx: &Context<'_, V>,
    ) {
        if at <= self.unneeded {
            return; // It was there, and is collected, or is the newest that a snapshot sees.
        }
        let versions = self.space(space, cx);
        assert!(versions.newest(handle).at >= at, "{at} is the newest version of its key");
        if versions.at(handle, at).at != at {
            versions.insert_below(handle, value, at);
        }
    }

    fn release(&mut self, owner: Owner, prepared: &Prepared<V>, cx: &Context<'_, V>) {
        if V::POLICIES.deciding.may_have_validators() {
            self.protocol_state.note_finished(prepared.prepare.prepared_keys());
        }
        let have_owners = self.keeps(TreeSwitch::LocksHaveOwners);
        let has_intervals = self.has_intervals();
        for write in &prepared.writes {
            let versions = self.space(write.space, cx);
            if has_intervals {
                versions.lock_mut(write.handle).release_delayed();
                versions.remove_if_unused(write.handle);
                self.forget_delayer(owner, (write.space, write.handle));
            } else if have_owners {
                versions.lock_mut(write.handle).release_exclusive(owner);
                versions.remove_if_unused(write.handle);
            } else if !self.was_unlocked(owner, write.space, write.handle) {
                self.space(write.space, cx).lock_mut(write.handle).release_exclusive(owner);
            }
        }
        self.release_shared(&prepared.shared, cx);
        self.release_delayed(owner, prepared, cx);
        self.release_calls(owner, prepared, cx);
        if !self.ranges.is_empty() {
            self.ranges.release(owner);
        }
    }

    pub(in crate::two_phase) fn release_shared(
        &mut self,
        shared: &[(SpaceId, Handle)],
        cx: &Context<'_, V>,
    ) {
        for &(space, handle) in shared {
            let versions = self.space(space, cx);
            versions.lock_mut(handle).release_shared();
            versions.remove_if_unused(handle);
        }
    }

    /// Locks were released and the clock may have moved: whoever waits looks again.
    pub(in crate::two_phase) fn after_release(&mut self, cx: &mut Context<'_, V>) {
        if !self.waiting_prepares.is_empty() {
            self.retry_waiting_prepares(cx);
        }
        if !self.encounters.is_empty() {
            self.retry_waiting_locks(cx);
        }
        if !self.waiting_reads.is_empty() {
            self.retry_waiting_reads(cx);
        }
    }
}
