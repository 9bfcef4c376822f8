//! The parts of a transaction that can be undone alone: how they begin and end (closed nesting).
//!
//! One level is open inside of the other, and all that is asked of the transaction is of the
//! innermost one. So what is under way as a level begins or ends was given up by its client, or
//! asked for beside the child, which cannot be: it fails.

use muesli_core::parts::transaction::{TransactionSets, WriteEntry};
use muesli_core::recorder::Status;
use muesli_core::{Abort, Failure, Here, Limits, Nesting, Step, Txn, TxnId};

use super::Coordinator;
use super::ending::failed::Failed;
use super::slot::{Slot, SlotPhase};
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::{Context, Switches, TwoPhase, Variant};

mod moving;

impl<V: Variant> Slot<V> {
    /// The innermost level is its parent's.
    pub fn merge(&mut self, switches: Switches) {
        if !switches.keeps(FamilySwitch::MergesReads) {
            self.sets.reads.truncate(self.sets.reads_outside(self.sets.depth()));
        }
        self.sets.merge();
        self.delays.merge();
    }

    /// A level ends, by which its writes are undone.
    fn undo_writes(&mut self, switches: Switches, end: impl FnOnce(&mut TransactionSets)) {
        let kept = (!switches.keeps(FamilySwitch::UndoesWrites)).then(|| self.sets.writes.clone());
        end(&mut self.sets);
        for WriteEntry { space, key, value, .. } in kept.into_iter().flatten() {
            let written = self.sets.write(space, key, value, &Limits::default());
            written.expect("it was written before");
        }
    }

    /// Why a transaction, which had this slot or has it, takes no operation.
    #[cold]
    pub(in crate::two_phase) fn refusal(&self, txn: Txn, failed: &Failed) -> Failure {
        match self.phase {
            SlotPhase::Undone(level) if self.running && self.generation == txn.generation => {
                Failure::PartialAbort { level }
            }
            SlotPhase::Undone(_) | SlotPhase::Open | SlotPhase::Committing(_) => failed.reason(txn),
        }
    }
}

impl<V: Variant> Coordinator<V> {
    /// A level begins: a new child of the innermost one, or the one that was undone, once more.
    pub(in crate::two_phase) fn on_nest(
        &mut self,
        txn: Txn,
        level: u32,
        cx: &mut Context<'_, V>,
    ) -> Result<Nesting, Failure> {
        let may_delay = V::delays_actions(&self.switches);
        if let Some(slot) = self.slot(txn)
            && slot.phase == SlotPhase::Undone(level)
        {
            slot.phase = SlotPhase::Open;
        }
        self.open(txn)?.sets.check_next_level(level)?;
        self.fail_operations(txn, &Failure::ChildOpen, cx);
        let slot = self.open(txn)?;
        slot.sets.nest();
        if may_delay {
            slot.delays.nest();
        }
        Ok(Nesting::Closed)
    }

    /// The innermost level is its parent's; perhaps after what was read is known to stand.
    pub(in crate::two_phase) fn on_merge(
        &mut self,
        txn: Txn,
        level: u32,
        here: &Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> Step<()> {
        let switches = V::switches(&self.switches);
        let slot = match self.end_level(txn, level, cx) {
            Ok(Some(slot)) => slot,
            Ok(None) => return Step::Done(Ok(())),
            Err(failure) => return Step::Done(Err(failure)),
        };
        // Where something was scanned, which is not looked at, a look would undo what may be right.
        let has_scanned = slot.sets.level_of_first_scan().is_some();
        let validates = slot.options.validated_merges && slot.can_look_again() && !has_scanned;
        if validates {
            return Step::Wait(self.look_before_merge(txn, here, cx));
        }
        slot.merge(switches);
        Step::Done(Ok(()))
    }

    /// The innermost level is given up: its reads are its parent's. One that was undone is no more
    /// to be begun again.
    pub(in crate::two_phase) fn on_unnest(
        &mut self,
        txn: Txn,
        level: u32,
        cx: &mut Context<'_, V>,
    ) -> Result<(), Failure> {
        let undone = self.slot(txn).filter(|slot| slot.phase == SlotPhase::Undone(level));
        if let Some(slot) = undone {
            slot.phase = SlotPhase::Open;
            return Ok(());
        }
        let switches = V::switches(&self.switches);
        self.end_level(txn, level, cx)?.map_or(Ok(()), |slot| {
            slot.undo_writes(switches, TransactionSets::unnest);
            slot.delays.roll_back(level);
            Ok(())
        })
    }

    /// A level is undone, with all inside: what it read has changed. For histories, all that the
    /// transaction saw until now is an attempt that was aborted.
    pub(in crate::two_phase) fn undo(&mut self, txn: Txn, level: u32, cx: &mut Context<'_, V>) {
        let switches = V::switches(&self.switches);
        let environment = &mut cx.effects.environment;
        let slot = &mut self.slots[txn.slot as usize];
        assert!(
            slot.running && slot.phase == SlotPhase::Open,
            "a level of no transaction is undone"
        );
        if let Some(recorder) = &mut environment.recorder {
            self.sequence += 1;
            let (node, incarnation, sequence) = (self.id, self.incarnation, self.sequence);
            let id = TxnId { node, incarnation, sequence };
            let end = (Some(environment.now), None);
            slot.sets.record(id, (slot.begun, &slot.options), Status::Aborted, end, recorder);
        }
        slot.undo_writes(switches, |sets| sets.roll_back(level));
        slot.delays.roll_back(level);
        environment.maintenance.partial_aborts += 1;
        self.fail_operations(txn, &Failure::PartialAbort { level }, cx);
        let slot = &mut self.slots[txn.slot as usize];
        slot.phase = SlotPhase::Undone(level);
    }

    /// A transaction that takes no operations is asked to commit: one of which a level was undone,
    /// and not run again, ends by that.
    #[cold]
    pub(in crate::two_phase) fn not_committed(
        &mut self,
        txn: Txn,
        failure: Failure,
        cx: &mut Context<'_, V>,
    ) -> Failure {
        let Failure::PartialAbort { .. } = failure else { return failure };
        let failure = Failure::Aborted(Abort::StaleRead);
        self.abort(txn, &failure, cx);
        failure
    }

    /// The slot of a transaction whose innermost level ends, if that is the one of this number.
    fn end_level(
        &mut self,
        txn: Txn,
        level: u32,
        cx: &mut Context<'_, V>,
    ) -> Result<Option<&mut Slot<V>>, Failure> {
        if !self.open(txn)?.sets.is_innermost(level) {
            return Ok(None); // It ended with an outer one.
        }
        self.fail_operations(txn, &Failure::Ended, cx);
        self.open(txn).map(Some)
    }
}
