//! Transactions of one repository whose client is on the repository's own node: done in the call
//! that asks for them.
//!
//! They need no message, no entry among what is pending and no memory of their end: nobody else can
//! ask for them a second time. Where somebody is before them in the queue, or in the way, they go
//! by messages within the node like all others.

use muesli_core::procedure::Invoked;
use muesli_core::recorder::{RecordedOperations, Status, TxnRecord};
use muesli_core::{Answer, Failure, Here, Role, Step, TxnOptions};

use super::calls::given;
use super::{Context, Coordinator};
use crate::granola::Granola;
use crate::granola::message::{Agreement, ReplyOutcome, Request};

impl Coordinator {
    /// Does a transaction at once, if it is one of a repository of this node alone and nobody is
    /// before it.
    pub(super) fn invoke_here(
        &mut self,
        request: &Request,
        options: TxnOptions,
        here: &mut Here<'_, Granola>,
        cx: &mut Context<'_>,
    ) -> Option<Step<Invoked>> {
        let repository = *request.participants.first()?;
        if request.agreement != Agreement::Alone || cx.catalog.home(repository) != self.id {
            return None;
        }
        assert_eq!(request.participants.len(), 1, "who takes part in {}", request.txn);
        let participant = here.repository(repository)?;
        let role = Role::Repository(repository);
        let end = participant.perform_here(request, &mut cx.at(role))?;
        let (status, at, answer) = match end {
            ReplyOutcome::Done { at, answers } => {
                let results = answers.into_iter().map(|(_, answer)| given(answer)).collect();
                (Status::Committed, Some(at), Ok(Invoked { at, results }))
            }
            ReplyOutcome::Refused { refusal, .. } => {
                (Status::Aborted, None, Err(Failure::from(refusal)))
            }
            ReplyOutcome::Conflict | ReplyOutcome::Moved { .. } => {
                unreachable!("who is in the way is asked before")
            }
        };
        let now = cx.now();
        if let Some(recorder) = &mut cx.effects.recorder {
            let (id, session, read_only) = (request.txn, options.session, request.read_only);
            let (begin, end, staleness) = (now, Some(now), None);
            let record = TxnRecord { id, session, begin, end, status, read_only, at, staleness };
            recorder.transaction(&record, &RecordedOperations::default());
        }
        Some(self.answer_here(answer, role, cx))
    }

    /// The answer of a role goes out at once, or when what it rests on is stable.
    fn answer_here(
        &mut self,
        answer: Result<Invoked, Failure>,
        role: Role,
        cx: &mut Context<'_>,
    ) -> Step<Invoked> {
        if !cx.settings.logging {
            return Step::Done(answer);
        }
        let (op, after) = (self.next_op(), cx.gate_of(role));
        cx.complete_after(op, answer.map(Answer::Invoked), after);
        Step::Wait(op)
    }
}
