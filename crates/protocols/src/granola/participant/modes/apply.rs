//! Transactions whose turn has come are done: run, installed, logged, answered.
//!
//! In timestamp mode not in the step in which the last vote comes, but one after the other in steps
//! of their own, which the driver takes once what was said before has left. Else a repository that
//! has much to do at once keeps its votes for newcomers until all of it is done, the others wait
//! for them, and then do the same to this one: repositories take turns. Nobody comes before who is
//! ready in the meantime, for proposals lie above all known places.

use muesli_core::parts::transaction::TransactionSets;
use muesli_core::{Timestamp, TxnId};

use super::{QueueKey, WaitQueue};
use crate::granola::message::{
    Agreement, Few, Noted, PartAnswer, Record, Refusal, ReplyOutcome, Request, TimestampVote, Write,
};
use crate::granola::participant::execution::Notes;
use crate::granola::participant::execution::history::record;
use crate::granola::participant::execution::install::install;
use crate::granola::participant::execution::prepared::PreparedRun;
use crate::granola::participant::outcomes::Over;
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;

impl Participant {
    /// Does what is first in the queue for as long as its place is known, and who may pass it.
    pub(in super::super) fn perform_ready(&mut self, cx: &mut Context<'_>) {
        while self.perform_next(cx) {}
    }

    /// Does what is first in the queue or may pass, with all that can be done at the same time, or
    /// makes room for it, or tells for it; false:
    /// there is nothing like that.
    pub(in super::super) fn perform_next(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((place, txn)) = self.next_to_do(cx) else { return false };
        let left = !self.locking && !self.footprint_locks.is_empty();
        if left && self.undo_who_is_in_the_way(txn, cx) {
            self.queue.check_again((place, txn));
        } else if self.has_data((place, txn), cx) {
            match &*self.batch((place, txn), cx) {
                [_] => self.perform_queued((place, txn), cx),
                several => self.perform_parallel(several, cx),
            }
        }
        true
    }

    fn perform_queued(&mut self, (place, txn): QueueKey, cx: &mut Context<'_>) {
        self.queue.remove(WaitQueue::Placed, &(place, txn));
        let active = self.active.remove(&txn).expect("what is queued is active");
        assert_eq!(active.place, Some(place), "where {txn} is done");
        assert!(!active.is_prepared(), "{txn} is prepared, and is to be run");
        self.footprint_locks.release(txn);
        self.rest_on_vote(&active, cx);
        self.perform(&active.request, active.about, place, cx);
    }

    /// Prepared transactions that have kept their claims in timestamp mode lose them to one whose
    /// turn has come and that needs what they claim. They were proposed their timestamps before
    /// it, so they now stand before it.
    fn undo_who_is_in_the_way(&mut self, txn: TxnId, cx: &mut Context<'_>) -> bool {
        let request = self.active[&txn].request.clone();
        let claim = match request.exchanges_data() {
            true => self.all_it_may_touch(&request, cx),
            false => self.try_run(&request, cx).1,
        };
        let others = self.footprint_locks.conflicting(&claim);
        for &other in &others {
            self.undo(other);
        }
        !others.is_empty()
    }

    pub(in super::super) fn next_ready(&self) -> Option<(Timestamp, TxnId)> {
        match self.switches.keeps(GranolaSwitch::InOrder) {
            true => self.queue.first_ready(|voter| self.vote_sequences.bound(voter)),
            false => self.queue.last_placed(),
        }
    }

    /// Does a transaction, at its place, and tells of it. What it refuses or cannot do has no
    /// effect here.
    pub(in super::super) fn perform(
        &mut self,
        request: &Request,
        about: u64,
        at: Timestamp,
        cx: &mut Context<'_>,
    ) {
        let (end, noted) = self.run_at(request, at, cx);
        self.close((request, about), at, end, noted, cx);
    }

    /// Runs a transaction at its place.
    pub(in super::super) fn run_at(
        &mut self,
        request: &Request,
        at: Timestamp,
        cx: &mut Context<'_>,
    ) -> (ReplyOutcome, Noted) {
        let mut sets = std::mem::take(&mut self.sets);
        assert!(sets.reads.is_empty() && sets.writes.is_empty(), "sets of an earlier execution");
        let mut notes = Notes::new();
        let ran = self.run_parts(request, &mut sets, &mut notes, cx);
        let end = self.conclude(request, at, ran, &mut sets, &notes, cx);
        sets.clear();
        self.sets = sets;
        end
    }

    /// Installs what was run before, and tells of it.
    pub(in super::super) fn finish(
        &mut self,
        (request, about): (&Request, u64),
        at: Timestamp,
        prepared: Box<PreparedRun>,
        cx: &mut Context<'_>,
    ) {
        let PreparedRun { mut sets, notes, ran } = *prepared;
        let ran = ran.expect("what is prepared was run");
        let (end, noted) = self.conclude(request, at, ran, &mut sets, &notes, cx);
        self.close((request, about), at, end, noted, cx);
    }

    /// Tells of a transaction that was done, and remembers it for those who ask again.
    fn close(
        &mut self,
        (request, about): (&Request, u64),
        at: Timestamp,
        end: ReplyOutcome,
        noted: Noted,
        cx: &mut Context<'_>,
    ) {
        let alone = request.agreement == Agreement::Alone;
        if request.is_update() || !alone {
            let ballot = (!alone).then_some(TimestampVote::Commit(at));
            let over = Over { ballot, about, end: end.clone(), noted: noted.clone() };
            self.memory.remember(request.txn, over);
        }
        self.count_for_memory(cx.settings);
        self.tell_end(request, end, noted, cx);
    }

    /// Installs what was run, and logs it.
    fn conclude(
        &mut self,
        request: &Request,
        at: Timestamp,
        ran: Result<Few<(u16, PartAnswer)>, Refusal>,
        sets: &mut TransactionSets,
        notes: &Notes,
        cx: &mut Context<'_>,
    ) -> (ReplyOutcome, Noted) {
        cx.effects.modes.transactions += 1;
        cx.effects.modes.locked += u64::from(self.locking);
        self.note_accesses(request, at, cx);
        self.cover(at, cx);
        let raises = request.is_update() || self.switches.keeps(GranolaSwitch::ReadsRaise);
        if raises && self.switches.raised_by(request, self.id) {
            if self.switches.keeps(GranolaSwitch::RaisesLast) {
                self.clock.raise(at)
            } else {
                self.clock.done = at
            }
        }
        let (txn, mut noted) = (request.txn, Noted::default());
        assert!(!self.active.contains_key(&txn), "{txn} is done, and under way");
        let end = match ran {
            Ok(answers) => {
                noted = record(request, at, sets, notes, cx);
                if let Some(order) = request.moving() {
                    self.apply_move(order, at, cx);
                    self.set_loose_timer(cx);
                }
                ReplyOutcome::Done { at, answers }
            }
            Err(refusal) => {
                // What is left is of partitions in which nothing failed.
                if request.agreement != Agreement::Independent {
                    sets.clear();
                }
                ReplyOutcome::Refused { at, refusal }
            }
        };
        let writes = self.install_all(sets, at, cx);
        assert!(sets.writes.is_empty(), "{txn} has writes that were not installed");
        self.note_change(at, &writes);
        self.note_for_sources(at, &writes, cx);
        let alone = request.agreement == Agreement::Alone;
        if self.is_logged(request) {
            let record = || Record::Done { txn, at, writes, end: end.clone() };
            if alone { cx.log(record) } else { cx.log_lazily(record) }
        }
        if request.follower_read {
            self.note_reached(at, cx);
        }
        (end, noted)
    }

    /// Makes the writes of the sets the newest versions, and hands them out to be logged
    /// and told.
    fn install_all(
        &mut self,
        sets: &mut TransactionSets,
        at: Timestamp,
        cx: &mut Context<'_>,
    ) -> Vec<Write> {
        cx.effects.work.installed += sets.writes.len() as u64;
        self.reported.note_installed(sets.written_bytes());
        let mut logged = Vec::new();
        for write in sets.writes.drain(..) {
            let store = self.spaces.get_or_make(write.space, cx.catalog);
            let handle = store.find_or_create(write.handle, &write.key);
            let collected = install(store, handle, write.value.clone(), at);
            cx.effects.maintenance.collected += collected;
            if !self.watches.is_empty() {
                self.tell_watchers(write.space, &write.key, cx);
            }
            if cx.settings.logging || self.feeds.is_wanted() || !self.moves.sources.is_empty() {
                logged.push((write.space, write.key, write.value));
            }
        }
        logged
    }
}
