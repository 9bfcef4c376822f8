//! What delayed actions gave, on its way to whoever asked for it.
//!
//! # The idea
//! A client that asks is told along with the outcome of its commit, so it waits for its turn;
//! others are told as soon as the votes are in, as ever. In the turn every replica has the same
//! answers. It logs them, says them when they are stable, and remembers them for as long as
//! somebody may ask how the transaction ended; the coordinator takes the first that come, and until
//! they are all there sends its decision again, which makes a replica say them again. So an answer
//! that is lost, or given before a crash and again after it, is the same answer.
//!
//! All answers of a repository go into one record and one message, with what procedures wrote in
//! the same turn. So together they may have as many bytes as a transaction; what has no room is
//! [`TooMuch`](muesli_core::Gave::TooMuch), and so is at the coordinator what is more than an
//! operation may be answered with.
//!
//! A client that has waited for too long is told that its transaction committed, and
//! [`Unknown`](muesli_core::Gave::Unknown) for what has not come by then.

use muesli_core::limits::writes_bytes;
use muesli_core::recorder::Status;
use muesli_core::{Address, Answer, Committed, Decision, Failure, SmallBytes, Timestamp, TxnId};

use crate::two_phase::coordinator::Coordinator;
use crate::two_phase::coordinator::commit::{Committing, Phase};
use crate::two_phase::message::{Answers, Message, Prepare, Record, Writes};
use crate::two_phase::participant::Participant;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant};

impl<V: Variant> Coordinator<V> {
    pub(in crate::two_phase) fn on_ran(
        &mut self,
        txn: TxnId,
        answers: Answers,
        violation: Option<SmallBytes>,
        cx: &mut Context<'_, V>,
    ) {
        let Some(commit) = self.committing.get_mut(txn.sequence) else { return };
        if commit.id != txn {
            return; // Of an earlier life.
        }
        commit.awaited.take(answers, cx.settings.limits.answer_bytes);
        if violation.is_some() {
            commit.awaited.violation = violation;
        }
        let Phase::Deciding { decision: Decision::Commit(place), .. } = &commit.phase else {
            return;
        };
        if commit.awaited.are_all_there() {
            let at = V::Time::version_of(place);
            self.answer_commit(txn.sequence, at, cx);
        }
    }

    /// What a commit that was just decided is answered with.
    pub(in crate::two_phase) fn awaited_by(
        &mut self,
        sequence: u64,
        committed: Committed,
    ) -> Result<Answer, Failure> {
        let commit = self.committing.get_mut(sequence);
        commit.map_or(Ok(Answer::Committed(committed)), |it| it.awaited.result(committed))
    }

    /// Nobody waits for the answers of a transaction any more.
    pub(in crate::two_phase) fn abandon_answers(&mut self, sequence: u64) {
        if let Some(commit) = self.committing.get_mut(sequence) {
            commit.awaited.abandon();
        }
    }

    /// A transaction has committed, and what was asked is known, or will not be waited for.
    pub(in crate::two_phase) fn answer_commit(
        &mut self,
        sequence: u64,
        at: Timestamp,
        cx: &mut Context<'_, V>,
    ) {
        let Some(commit) = self.committing.get_mut(sequence) else { return };
        let Some(op) = commit.op.take() else { return };
        let (txn, id) = (commit.txn, commit.id);
        let is_decided = matches!(commit.phase, Phase::Deciding { .. });
        assert!(is_decided, "{id} is answered before its votes decide");
        let result = commit.awaited.result(Committed { at });
        self.settle_if_over(sequence);
        self.end(txn, Some(id), Status::Committed, Some(at), cx);
        cx.complete(op, result);
    }

    /// Forgets a commit that everybody has acknowledged and whose answers nobody waits for.
    pub(in crate::two_phase) fn settle_if_over(&mut self, sequence: u64) {
        if self.committing.get(sequence).is_some_and(Committing::is_over) {
            self.committing.remove(sequence);
        }
    }
}

impl<V: Variant> Participant<V> {
    /// Something that was delayed has been done, and wrote this; whoever asked is told what it
    /// gave.
    pub(in crate::two_phase) fn tell(
        &mut self,
        prepare: &Prepare<V>,
        writes: Writes,
        mut answers: Answers,
        cx: &mut Context<'_, V>,
    ) {
        let mut sent_bytes = writes_bytes(&writes);
        assert!(
            answers.len() <= prepare.asked().len(),
            "{} is told what it did not ask",
            prepare.txn
        );
        for (_, gave) in &mut answers {
            gave.limit(&mut sent_bytes, cx.settings.limits.transaction_bytes);
        }
        if prepare.calls().is_empty() && answers.is_empty() {
            return;
        }
        let txn = prepare.txn;
        self.note_moved(sent_bytes);
        self.table.keep_answers(txn, answers.clone());
        if self.replaying {
            return; // The log says it again if it was told.
        }
        let logged = answers.clone();
        cx.log_lazily(|| Record::Ran { txn, writes, answers: logged });
        self.send_answers(txn, answers, cx);
    }

    /// A decision has come again: its sender may not have heard what was asked.
    pub(in crate::two_phase) fn tell_again(&mut self, txn: TxnId, cx: &mut Context<'_, V>) {
        if let Some(answers) = self.table.answers(txn) {
            self.send_answers(txn, answers, cx);
        }
    }

    fn send_answers(&self, txn: TxnId, answers: Answers, cx: &mut Context<'_, V>) {
        if !answers.is_empty() {
            let message = Message::Ran { txn, answers, violation: None };
            cx.send_when_logged(Address::coordinator(txn.node), message);
        }
    }

    /// A transaction is going to be refused, for this reason.
    pub(in crate::two_phase) fn send_violation(
        &self,
        txn: TxnId,
        reason: &str,
        cx: &mut Context<'_, V>,
    ) {
        let violation = Some(SmallBytes::from(reason));
        cx.send_when_logged(
            Address::coordinator(txn.node),
            Message::Ran { txn, answers: Answers::new(), violation },
        );
    }
}
