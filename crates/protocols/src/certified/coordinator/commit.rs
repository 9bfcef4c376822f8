//! The end of a transaction.

use muesli_broadcast::epochs::MemberName;
use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::parts::single_repository::UNSETTLED_MAX;
use muesli_core::recorder::{Recorder, Status};
use muesli_core::{
    Answer, Committed, Decision, Failure, Here, Invoked, Nanos, OpId, RepositoryId, Role, Step,
    Timestamp, Txn, TxnId,
};

use super::CertifiedCoordinator;
use super::elsewhere::AskedElsewhere;
use super::keys::at_site;
use super::running::RunningTransaction;
use crate::certified::message::command::{CallsEnd, CertifiedCommand, ReadKey};
use crate::certified::message::{Message, ReaderNumber};
use crate::certified::switches::LocalReads;
use crate::certified::{Certified, Context};

/// A commit that is not answered.
#[derive(Clone, Debug)]
pub struct PendingCommit {
    id: TxnId,
    /// Who waits; `None`: the client was told that nobody knows, or there is none.
    pub op: Option<OpId>,
    /// The transaction, for the history.
    transaction: RunningTransaction,
    /// What was asked.
    pub command: CertifiedCommand,
    /// Who has read for it.
    pub reader: Option<ReaderNumber>,
    /// When that was, the last time and the first.
    pub sent: Nanos,
    /// When it was first asked.
    pub since: Nanos,
    /// Of which member of the site it is asked, if one was known.
    pub member: Option<MemberName>,
    /// What was asked of other sites.
    pub elsewhere: AskedElsewhere,
}

impl PendingCommit {
    /// Where it was asked for.
    pub fn site(&self) -> RepositoryId {
        self.transaction.site
    }

    /// Since when it has been tried, where it has lost so often that it is to be let through.
    pub fn tried_since(&self) -> Option<Nanos> {
        Some(self.transaction.options.tried_since).filter(|since| *since > Nanos(0))
    }

    /// Writes it into a history, unless that has it.
    pub fn record_unanswered(&self, recorder: &mut Recorder) {
        if self.op.is_some() {
            self.transaction.record_at(self.id, Status::Unknown, recorder);
        }
    }
}

impl CertifiedCoordinator {
    pub(super) fn commit(
        &mut self,
        txn: Txn,
        here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) -> Step {
        if let Err(failure) = self.open(txn) {
            return Step::Done(Err(failure));
        }
        // Reads that are under way as their transaction is to end have come too late.
        self.fail_operations(txn, &Failure::Ended, cx);
        self.leave_lost_site(txn, cx);
        let mut running = self.running.remove(&txn.slot).expect("an open transaction");
        let only_reads = running.sets.writes.is_empty();
        if running.is_empty() || only_reads && self.ends_locally(&running.options) {
            return self.end_here(txn, &running, here, cx);
        }
        let command = running.command(self.id(self.sequence + 1));
        let limit = cx.settings.limits.transaction_bytes;
        if let Err(failure) = check_size(Limit::Transaction, command.bytes(), limit) {
            let id = self.unasked_id();
            running.record(id, Status::Aborted, (Some(cx.now()), None), cx);
            self.release(txn, &running);
            return Step::Done(Err(failure));
        }
        self.sequence += 1;
        let reader = running.has_asked.then(|| self.reader(txn));
        self.ask_for_commit(command, (running, reader), cx)
    }

    /// Asks the site for a commit.
    pub(super) fn ask_for_commit(
        &mut self,
        command: CertifiedCommand,
        (transaction, reader): (RunningTransaction, Option<ReaderNumber>),
        cx: &mut Context<'_>,
    ) -> Step {
        let op = OpId(self.next_number());
        self.send_commit(command, (transaction, reader), Some(op), cx);
        Step::Wait(op)
    }

    /// Sends a commit to its site, for somebody who waits for its end or for nobody.
    fn send_commit(
        &mut self,
        command: CertifiedCommand,
        (transaction, reader): (RunningTransaction, Option<ReaderNumber>),
        op: Option<OpId>,
        cx: &mut Context<'_>,
    ) {
        let (id, site) = (command.txn, transaction.site);
        assert!(id.sequence <= self.sequence, "{id} has a number that was not given out");
        self.forget_far_behind();
        let (sent, since) = (cx.now(), cx.now());
        let (member, elsewhere) = (self.sites.member(site), AskedElsewhere::default());
        let commit =
            PendingCommit { id, op, transaction, command, reader, sent, since, member, elsewhere };
        let (command, tried_since) = (commit.command.clone(), commit.tried_since());
        let before = self.commits.insert(id.sequence, commit);
        assert!(before.is_none(), "{id} commits twice");
        let settled_below = self.settled_below();
        assert!(settled_below <= id.sequence, "{id} settles itself");
        let again = false;
        let ask = Message::Commit { settled_below, reader, again, member, tried_since, command };
        cx.send_to_repository(site, ask);
    }

    /// A transaction that has lost may hold what it has read, and now waits for somebody to change
    /// it. So these reads are committed by themselves, which ends its claim on them. If they are
    /// not the newest any more it need not wait: its next attempt comes here again, or commits.
    pub(super) fn give_claim_back(
        &mut self,
        mut transaction: RunningTransaction,
        reads: &[ReadKey],
        cx: &mut Context<'_>,
    ) {
        assert!(transaction.is_empty(), "what it has read and written is not in its commit");
        assert!(!reads.is_empty(), "it gives back nothing");
        self.sequence += 1;
        let id = self.id(self.sequence);
        let command = CertifiedCommand { reads: reads.to_vec(), ..transaction.command(id) };
        self.send_commit(command, (transaction, None), None, cx);
    }

    /// Sites take no commit that is far ahead of all that are settled. So those of which nobody
    /// says how they ended, and whose clients wait no more, are not asked for any longer once many
    /// others have come since.
    fn forget_far_behind(&mut self) {
        let oldest = self.sequence.saturating_sub(UNSETTLED_MAX / 2);
        while let Some(commit) = self.commits.first_entry()
            && *commit.key() < oldest
            && commit.get().op.is_none()
        {
            let sequence = *commit.key();
            commit.remove();
            self.unknown.forget(sequence);
        }
    }

    /// Ends a transaction of which no other site need hear.
    fn end_here(
        &mut self,
        txn: Txn,
        running: &RunningTransaction,
        here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) -> Step {
        let (at, id) = (running.options.lower_bound.max(running.cut), self.unasked_id());
        running.record(id, Status::Committed, (Some(cx.now()), Some(at)), cx);
        let site = running.site;
        let is_local = self.has_local_reads() || running.may_be_stale();
        let mut here = here;
        let answer = Ok(Answer::Committed(Committed { at }));
        let Some(there) = here.repository(site).filter(|_| running.has_asked) else {
            self.release(txn, running);
            return Step::Done(answer);
        };
        let reader = self.reader(txn);
        at_site(there, site, cx, |site, cx| site.release(cx.me.node, reader));
        // What was read is not to be taken back by a crash of this node.
        let logged = cx.gate_of(Role::Repository(site));
        if !is_local {
            return Step::Done(answer);
        }
        let op = OpId(self.next_number());
        cx.complete_after(op, answer, logged);
        Step::Wait(op)
    }

    /// All transactions below have ended, as far as sites can be asked.
    pub(super) fn settled_below(&self) -> u64 {
        self.commits.keys().next().copied().unwrap_or(self.sequence + 1)
    }

    /// A site says how a transaction ended, its own one or another.
    pub(super) fn on_ended(
        &mut self,
        site: RepositoryId,
        txn: TxnId,
        (decision, calls): (Decision, Option<CallsEnd>),
        cx: &mut Context<'_>,
    ) {
        if txn != self.id(txn.sequence) {
            return;
        }
        let Some(commit) = self.commits.get(&txn.sequence) else { return };
        let gives = matches!(decision, Decision::Commit(_)) && !commit.command.calls.is_empty();
        let can_be = match &calls {
            Some(CallsEnd::Given { .. }) => gives,
            Some(CallsEnd::Refused { .. } | CallsEnd::Faulty { .. }) => !gives,
            None => true, // It had no procedures, or what they gave is not kept.
        };
        if !can_be || !self.is_believed(commit.since, decision, cx) {
            return;
        }
        let commit = self.commits.remove(&txn.sequence).expect("just seen");
        if matches!(decision, Decision::Commit(_)) {
            // A site may say of a commit that has no place in the order that it is aborted.
            let in_one_order = self.switches.local_reads == LocalReads::InOneOrder;
            let asked = (commit.site(), commit.since);
            self.sites.has_committed(asked, site, in_one_order, cx.now());
        }
        let Some(op) = commit.op else { return self.unknown.learn_end(txn, decision, cx) };
        let (status, at, answer) = match decision {
            Decision::Commit(at) => (Status::Committed, Some(at), given(at, calls, gives)),
            Decision::Abort(reason) => {
                (Status::Aborted, None, Err(CallsEnd::failure(calls, reason)))
            }
        };
        let now = cx.now();
        commit.transaction.record(txn, status, (Some(now), at), cx);
        cx.complete(op, answer);
    }

    /// The client of a commit waits no longer.
    pub(super) fn give_up(&mut self, sequence: u64, cx: &mut Context<'_>) {
        let after_ms = cx.settings.give_up_after.as_millis();
        let commit = self.commits.get_mut(&sequence).expect("a commit that is not answered");
        let op = commit.op.take().expect("its client waits");
        let txn = commit.id;
        commit.transaction.record(txn, Status::Unknown, (None, None::<Timestamp>), cx);
        self.unknown.add(sequence);
        cx.effects.maintenance.given_up += 1;
        cx.complete(op, Err(Failure::Unknown { after_ms, txn }));
    }
}

/// What the client of a transaction is told that committed, and has procedures or none.
fn given(at: Timestamp, calls: Option<CallsEnd>, gives: bool) -> Result<Answer, Failure> {
    match calls {
        Some(CallsEnd::Given { results }) => Ok(Answer::Invoked(Invoked { at, results })),
        // Procedures that refused commit nothing.
        Some(CallsEnd::Refused { .. } | CallsEnd::Faulty { .. }) | None => match gives {
            true => Err(Failure::AnswerLost),
            false => Ok(Answer::Committed(Committed { at })),
        },
    }
}
