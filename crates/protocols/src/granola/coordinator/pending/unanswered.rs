//! Transactions that were not answered in time: what their clients are told, and what has become of
//! them.

use muesli_core::recorder::{RecordedOperations, Status};
use muesli_core::{Abort, Committed, Doubt, Failure, Outcome, TxnId};

use super::super::interactive::commit::note_absent;
use super::super::{Context, Coordinator, Purpose, RequestVerdict};
use crate::granola::message::{Refusal, Request};
use crate::granola::switches::GranolaSwitch;

impl Coordinator {
    pub(super) fn give_up(&mut self, request: &Request, purpose: Purpose, cx: &mut Context<'_>) {
        cx.effects.maintenance.given_up += 1;
        let after_ms = cx.settings.give_up_after.as_millis();
        let failure = match request.is_update() {
            true => Failure::Unknown { after_ms, txn: request.txn },
            false => Failure::Timeout { after_ms },
        };
        let status = if request.is_update() { Status::Unknown } else { Status::Aborted };
        match purpose {
            Purpose::Read(op) => {
                if let Some(txn) = self.operations.get(op.0).map(|operation| operation.txn) {
                    self.abort(txn, &failure, cx);
                }
            }
            Purpose::Commit(txn, op) => {
                self.end(txn, Some(request.txn), status, None, cx);
                cx.complete(op, Err(failure));
            }
            Purpose::Names => self.learning = false,
            Purpose::Partitions(op) | Purpose::Issue(op) => {
                cx.complete(op, Err(failure));
            }
            Purpose::Move(moving) => self.give_up_move(&moving, request, cx),
            Purpose::Invoke(invocation) => {
                let now = cx.now();
                if let Some(recorder) = &mut cx.effects.recorder {
                    let end = (status != Status::Unknown).then_some(now);
                    let record = invocation.record(request, end, status, None);
                    recorder.transaction(&record, &RecordedOperations::default());
                }
                cx.complete(invocation.op, Err(failure));
            }
        }
        if !request.is_update() {
            self.pending.remove(request.txn.sequence);
        } else {
            self.unknown.add(request.txn.sequence);
        }
    }

    /// The end of a transaction is known after its client was told that nobody knows.
    pub(super) fn learn_late(
        &mut self,
        txn: TxnId,
        verdict: &RequestVerdict,
        cx: &mut Context<'_>,
    ) {
        assert!(self.unknown.is_unknown(txn.sequence), "{txn} ends late, and was not given up");
        let outcome = match verdict {
            RequestVerdict::Done(at, _) => Outcome::Committed(Committed { at: *at }),
            // An earlier copy may have been done.
            verdict
                if verdict.knows_nothing()
                    && self.switches.keeps(GranolaSwitch::DoubtsForgotten) =>
            {
                self.unknown.forget(txn.sequence);
                return;
            }
            RequestVerdict::Conflict | RequestVerdict::Moved(_) | RequestVerdict::Forgotten(_) => {
                Outcome::Aborted(Abort::Locked)
            }
            RequestVerdict::Refused(Refusal::Aborted(reason)) => Outcome::Aborted(*reason),
            RequestVerdict::Refused(..) => Outcome::Aborted(Abort::Rollback),
        };
        if let (Some(recorder), RequestVerdict::Done(at, _)) = (&mut cx.effects.recorder, verdict) {
            recorder.applied(txn, *at);
        }
        if let RequestVerdict::Done(at, answers) = verdict {
            note_absent(txn, *at, answers, cx);
        }
        self.unknown.learn(txn.sequence, outcome);
    }

    /// What has become of a transaction that was not answered in time.
    pub(in super::super) fn outcome_of(&self, txn: TxnId) -> Outcome {
        if txn.incarnation != self.incarnation {
            return Outcome::NotKnown(Doubt::Elsewhere);
        }
        self.unknown.of(txn.sequence)
    }
}
