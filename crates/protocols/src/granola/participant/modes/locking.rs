//! Locking mode: coordinated transactions, and all others beside them (sections 4.3.5 and 4.3.6).
//!
//! A coordinated transaction is *prepared* when it comes: run, its writes put aside, and all that
//! it touched claimed until its fate is known. While one is prepared, the repository is in locking
//! mode. There independent transactions are prepared as well, and single-repository ones are done
//! at once, or not at all. Nothing waits for its turn: whatever is under way at one time touches
//! different keys, so the order in which it is done does not matter. The timestamps still say in
//! which order it counts: whatever is done raises the timestamp of the last one done.
//!
//! # Into locking mode
//! What was voted on in timestamp mode must be prepared first, in the order of the queue. If that
//! is possible without a conflict, all of it can be done in any order, and what waits only for its
//! turn is done at once. If not, the coordinated transaction is deferred, and it is tried again
//! whenever something leaves the queue. Votes for independent transactions are never withheld
//! meanwhile: two repositories, each of which waits for a transaction that the other one holds
//! back, would wait for ever. A transaction that was deferred for too long is answered with a
//! conflict.
//!
//! # Back
//! Independent transactions that are prepared as the last coordinated one ends are undone: they
//! have changed nothing, so their claims are given back, and they wait for their turn at their
//! proposals. That is right although others have been done since they were prepared, perhaps above
//! what their place will be: none of those touched the same keys. [`LockingExit`] has two other
//! ways.

use std::sync::Arc;

use muesli_core::parts::footprint_locks::Claim;
use muesli_core::parts::votes::Votes;
use muesli_core::{Nanos, TxnId};

use super::WaitQueue;
use super::active::Active;
use crate::granola::message::{Agreement, Ballots, Request, TimestampVote, evidence};
use crate::granola::participant::execution::prepared::PreparedRun;
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;
use crate::granola::switches::LockingExit;

/// A coordinated transaction that waits for the repository to enter locking mode.
#[derive(Clone, Debug)]
pub(in super::super) struct Deferred {
    pub request: Arc<Request>,
    pub since: Nanos,
    /// How many bytes it counts towards the limit of those that wait.
    pub bytes: usize,
}

impl Participant {
    /// Runs a transaction and puts aside what came of it.
    pub(in super::super) fn try_run(
        &self,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> (Box<PreparedRun>, Claim) {
        let mut prepared = Box::<PreparedRun>::default();
        let ran = self.run_parts(request, &mut prepared.sets, &mut prepared.notes, cx);
        prepared.ran = Some(ran);
        let claim = Claim::of_sets(&prepared.sets);
        cx.effects.work.validated += (claim.reads.len() + claim.writes.len()) as u64;
        (prepared, claim)
    }

    /// In locking mode: does a transaction of this repository alone at once, or not at all.
    pub(in super::super) fn perform_alone(&mut self, request: &Request, cx: &mut Context<'_>) {
        assert_eq!(request.agreement, Agreement::Alone, "how {} is agreed on", request.txn);
        if self.footprint_locks.is_empty() {
            let at = self.propose(request, cx);
            return self.perform(request, 0, at, cx); // Nobody can be in its way.
        }
        let (prepared, claim) = self.try_run(request, cx);
        if self.footprint_locks.conflict(&claim) {
            return self.refuse(request, TimestampVote::Conflict, cx);
        }
        let at = self.propose(request, cx);
        self.finish((request, 0), at, prepared, cx);
    }

    /// In locking mode: runs a transaction, claims what it touched, and votes.
    pub(in super::super) fn prepare(
        &mut self,
        request: Arc<Request>,
        early: Ballots,
        cx: &mut Context<'_>,
    ) {
        assert!(self.locking, "{} is prepared in timestamp mode", request.txn);
        let (mut prepared, claim) = self.try_run(&request, cx);
        if self.footprint_locks.conflict(&claim) {
            return self.refuse(&request, TimestampVote::Conflict, cx);
        }
        let at = self.propose(&request, cx);
        if let Some(Err(refusal)) = &mut prepared.ran {
            // What it saw is not to be changed below this.
            self.clock.raise(at);
            let ballot = TimestampVote::Abort(at, refusal.clone());
            return self.refuse(&request, ballot, cx);
        }
        let txn = request.txn;
        let is_logged = self.is_logged(&request);
        let voted = self.log_vote(is_logged, &request, at, cx);
        let about = evidence::about(&request, cx.settings, cx.catalog);
        self.send_vote(&request, TimestampVote::Commit(at), about, cx);
        self.footprint_locks.hold(txn, claim);
        let votes = Votes::from_voters(self.others(&request));
        let mut active = Active::new(request, about, at, votes, cx.now());
        (active.wait_queue, active.voted) = (WaitQueue::Behind(None), voted);
        self.moves.begin(&active.request);
        self.active.insert(active);
        self.active.put_aside(&txn, Some(prepared));
        self.report_what_moved(cx.settings);
        self.set_sweep_timer(cx);
        for (repository, vote) in early {
            self.on_vote(txn, repository, vote, cx);
        }
    }

    /// A coordinated transaction has come.
    pub(in super::super) fn take_up_coordinated(
        &mut self,
        request: Arc<Request>,
        early: Ballots,
        cx: &mut Context<'_>,
    ) {
        cx.effects.modes.transitions += u64::from(!self.locking);
        self.perform_ready(cx);
        if self.locking || self.enter_locking(cx) {
            self.prepare(request, early, cx);
            return self.go_on(cx);
        }
        let (bytes, most) = (request.counted_bytes(), cx.settings.limits.transaction_bytes);
        let others: usize = self.deferred.iter().map(|deferred| deferred.bytes).sum();
        let is_much = others > 0 && others.saturating_add(bytes) > most;
        if is_much || self.deferred.len() >= cx.settings.lock_waiters_max {
            return self.refuse(&request, TimestampVote::Conflict, cx);
        }
        cx.effects.modes.waited += 1;
        let txn = request.txn;
        assert!(!self.is_deferred(txn), "{txn} waits for locking mode twice");
        self.early_votes.put_back(txn, early, cx.now());
        self.deferred.push(Deferred { request, since: cx.now(), bytes });
        assert!(self.deferred.len() <= cx.settings.lock_waiters_max, "who waits has a bound");
        self.set_lock_timer(cx);
    }

    /// Prepares what was voted on in timestamp mode; false: there is a conflict, and all is as it
    /// was.
    pub(in super::super) fn enter_locking(&mut self, cx: &mut Context<'_>) -> bool {
        let queued = self.queue.all();
        if !self.switches.keeps(GranolaSwitch::LocksQueued) {
            self.locking = true;
            return true;
        }
        for (place, (_, txn)) in queued.iter().enumerate() {
            let request = self.active[txn].request.clone();
            // Who waits for what others tell cannot be run: it stays in the queue.
            let (prepared, claim) = match request.exchanges_data() {
                true => (None, self.all_it_may_touch(&request, cx)),
                false => {
                    let (prepared, claim) = self.try_run(&request, cx);
                    (Some(prepared), claim)
                }
            };
            if self.footprint_locks.conflict(&claim) {
                for (_, txn) in &queued[..place] {
                    self.footprint_locks.release(*txn);
                    self.active.put_aside(txn, None);
                }
                return false;
            }
            self.footprint_locks.hold(*txn, claim);
            self.active.put_aside(txn, prepared);
        }
        self.locking = true;
        self.queue.clear();
        for (bound, txn) in queued {
            match self.active.get(&txn).filter(|active| !active.is_prepared()) {
                Some(active) => self.queue.insert(active.wait_queue, (bound, txn)),
                None => self.perform_prepared(txn, cx),
            }
        }
        true
    }

    /// Does a prepared transaction if its place is known. One of this repository alone, which
    /// waited for its turn, gets a new timestamp: what is done from now on goes by no order.
    pub(in super::super) fn perform_prepared(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let Some(mut place) = self.active.get(&txn).and_then(|active| active.place) else { return };
        let active = self.active.remove(&txn).expect("just seen");
        assert!(active.is_prepared(), "{txn} is to be run in its turn");
        self.footprint_locks.release(txn);
        self.rest_on_vote(&active, cx);
        if active.request.agreement == Agreement::Alone {
            place = self.propose(&active.request, cx);
        }
        let (request, about) = (active.request.clone(), active.about);
        let prepared = active.into_prepared().expect("only what is prepared is done so");
        self.finish((&request, about), place, prepared, cx);
    }

    /// Something is over: the mode may change, and others may go on.
    pub(in super::super) fn go_on(&mut self, cx: &mut Context<'_>) {
        if self.locking {
            self.leave_locking();
        }
        if self.locking || !self.deferred.is_empty() {
            self.perform_ready(cx);
        } else if self.next_ready().is_some() || self.queue.has_hope() {
            self.set_ready_timer(cx);
        }
        // Each may be over at once, and whoever calls this then has gone on with the others.
        while !self.deferred.is_empty() && (self.locking || self.enter_locking(cx)) {
            let Deferred { request, since, .. } = self.deferred.remove(0);
            cx.effects.modes.waiting = cx.effects.modes.waiting + (cx.now() - since);
            let early = self.early_votes.take(request.txn);
            self.prepare(request, early, cx);
            if self.deferred.is_empty() {
                self.go_on(cx);
            }
        }
    }

    /// Goes back to timestamp mode if nothing keeps the repository from it.
    fn leave_locking(&mut self) {
        let coordinated = |active: &Active| active.request.agreement == Agreement::Coordinated;
        let stays = self.switches.always_locks() || self.is_blocked();
        if stays || self.active.values().any(coordinated) {
            return;
        }
        match self.switches.locking_exit {
            LockingExit::Stay if !self.active.is_empty() => return,
            LockingExit::Stay | LockingExit::UndoOnDemand => {}
            LockingExit::UndoNow => {
                let all: Vec<_> = self.active.keys().copied().collect();
                all.into_iter().for_each(|txn| self.undo(txn));
            }
        }
        // Who could not be prepared stands in the queue.
        for (txn, _) in self.active.iter().filter(|(_, active)| !active.is_prepared()) {
            self.footprint_locks.release(*txn);
        }
        self.locking = false;
    }

    /// Undoes a prepared transaction: it waits for its turn instead.
    pub(in super::super) fn undo(&mut self, txn: TxnId) {
        if !self.active.contains_key(&txn) {
            return;
        }
        if self.active.put_aside(&txn, None) {
            self.footprint_locks.release(txn);
            let active = self.active.get_mut(&txn).expect("just seen");
            active.wait_queue = self.vote_sequences.wait_queue_of(active);
            self.queue.insert(active.wait_queue, (active.bound, txn));
        }
    }

    /// Deferred transactions for which this was too long meet a conflict.
    pub(in super::super) fn on_lock_timeout(&mut self, cx: &mut Context<'_>) {
        self.lock_timer_set = false;
        let now = cx.now();
        let (late, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.deferred)
            .into_iter()
            .partition(|deferred| deferred.since + cx.settings.lock_wait <= now);
        self.deferred = rest;
        for Deferred { request, since, .. } in late {
            cx.effects.modes.waiting = cx.effects.modes.waiting + (now - since);
            self.early_votes.take(request.txn);
            self.refuse(&request, TimestampVote::Conflict, cx);
        }
        if !self.deferred.is_empty() {
            self.set_lock_timer(cx);
        }
    }

    /// A vote against a deferred transaction; false: it is not deferred.
    pub(in super::super) fn vote_on_deferred(
        &mut self,
        txn: TxnId,
        ballot: &TimestampVote,
        cx: &mut Context<'_>,
    ) -> bool {
        let found = self.deferred.iter().position(|deferred| deferred.request.txn == txn);
        let Some(place) = found.filter(|_| !matches!(ballot, TimestampVote::Commit(_))) else {
            return false;
        };
        let Deferred { request, .. } = self.deferred.remove(place);
        self.early_votes.take(txn);
        self.refuse(&request, ballot.clone(), cx);
        true
    }

    /// Whether a transaction waits for locking mode, and was not voted on.
    pub(in super::super) fn is_deferred(&self, txn: TxnId) -> bool {
        self.deferred.iter().any(|deferred| deferred.request.txn == txn)
    }
}
