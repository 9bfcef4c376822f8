//! Commits that are not answered in time: what is sent again, what their clients are told, and what
//! has become of them.

use muesli_core::recorder::Status;
use muesli_core::{Answer, Decision, Doubt, Failure, Outcome, RepositoryId, Timestamp, TxnId};

use super::Phase;
use crate::two_phase::coordinator::Coordinator;
use crate::two_phase::message::Message;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant};

impl<V: Variant> Coordinator<V> {
    /// The end of a transaction is known after its client was told that nobody knows.
    pub(super) fn learn_late(
        &mut self,
        id: TxnId,
        result: Result<Answer, Failure>,
        at: Option<Timestamp>,
        cx: &mut Context<'_, V>,
    ) {
        if let (Some(recorder), Some(at)) = (&mut cx.effects.recorder, at) {
            recorder.applied(id, at);
        }
        let outcome = match result {
            Ok(Answer::Committed(committed)) => Outcome::Committed(committed),
            Err(Failure::Aborted(reason)) => Outcome::Aborted(reason),
            other => unreachable!("a decision answers a commit, not with {other:?}"),
        };
        self.unknown.learn(id.sequence, outcome);
    }

    /// What has become of a commit that was not answered in time.
    pub(in crate::two_phase) fn outcome_of(&self, txn: TxnId) -> Outcome {
        if txn.incarnation != self.incarnation {
            return Outcome::NotKnown(Doubt::Elsewhere);
        }
        self.unknown.of(txn.sequence)
    }

    /// Prepares and decisions that were not answered go out again. A client does not wait for
    /// ever: in the end it is told that the outcome is unknown, and the commit goes on.
    pub(in crate::two_phase) fn retry_commits(&mut self, cx: &mut Context<'_, V>) {
        let (now, settings) = (cx.now(), cx.settings);
        let (mut given_up, is_client) = (Vec::new(), self.is_client(cx));
        for commit in self.committing.values_mut() {
            if commit.is_under_way(cx) {
                commit.quiet = now;
                continue;
            }
            let is_late = commit.is_late(cx);
            if is_late && commit.op.is_some() {
                given_up.push(commit.id.sequence);
            }
            if commit.quiet + settings.retry_after > now
                || commit.quiet + settings.retry_after + commit.patience() > now
            {
                continue;
            }
            (commit.sent, commit.quiet) = (now, now);
            match &commit.phase {
                Phase::Preparing(votes) => {
                    let missing: Vec<_> = votes.missing().collect();
                    let asks_all = is_late && is_client;
                    let asked = |id: &RepositoryId| asks_all || missing.contains(id);
                    commit.repeated = true;
                    let after = commit.after;
                    for (repository, prepare) in commit.prepares.iter().filter(|it| asked(&it.0)) {
                        let prepare = Message::Prepare(prepare.clone());
                        cx.send_to_repository_after(*repository, prepare, after);
                    }
                }
                Phase::Deciding { decision, unacknowledged } => {
                    let missing = commit.awaited.missing_from();
                    let missing = missing.filter(|it| !unacknowledged.contains(it));
                    for repository in unacknowledged.iter().copied().chain(missing) {
                        cx.send_to_repository(repository, commit.decision_message(decision));
                    }
                }
            }
        }
        for sequence in given_up {
            self.give_up(sequence, cx);
        }
    }

    /// A repository may have forgotten how a commit ended of which it was asked before, and so
    /// nobody will know: what is in doubt elsewhere is ended there.
    pub(super) fn give_up_for_good(&mut self, sequence: u64, cx: &mut Context<'_, V>) {
        self.give_up(sequence, cx);
        self.unknown.forget(sequence);
        self.abandon_answers(sequence);
        self.committing.remove(sequence);
    }

    /// A client has waited for too long: it is told what is known.
    fn give_up(&mut self, sequence: u64, cx: &mut Context<'_, V>) {
        let Some(commit) = self.committing.get_mut(sequence) else { return };
        if let Phase::Deciding { decision: Decision::Commit(place), .. } = &commit.phase {
            let at = V::Time::version_of(place);
            return self.answer_commit(sequence, at, cx);
        }
        let (txn, id, op) = (commit.txn, commit.id, commit.op.take());
        commit.awaited.abandon();
        let after_ms = cx.settings.give_up_after.as_millis();
        if let Some(op) = op {
            cx.effects.maintenance.given_up += 1;
            self.end(txn, Some(id), Status::Unknown, None, cx);
            self.unknown.add(id.sequence);
            cx.complete(op, Err(Failure::Unknown { after_ms, txn: id }));
        }
    }
}
