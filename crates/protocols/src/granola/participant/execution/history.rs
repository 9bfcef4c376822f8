//! What histories are told of transactions that were done.

use std::sync::Arc;

use muesli_core::Timestamp;
use muesli_core::parts::transaction::TransactionSets;

use super::Notes;
use crate::granola::message::{Noted, Request, Task};
use crate::granola::participant::Context;

/// For histories: where the transaction lies, and what its procedures did.
pub(in super::super) fn record(
    request: &Request,
    at: Timestamp,
    sets: &TransactionSets,
    notes: &Notes,
    cx: &mut Context<'_>,
) -> Noted {
    let Some(recorder) = &mut cx.effects.recorder else { return Noted::default() };
    if request.is_update() && request.moving().is_none() {
        recorder.applied(request.txn, at);
    }
    let mut noted = Vec::new();
    for (part, marks) in notes {
        let task = &request.parts[usize::from(*part) % request.parts.len()].task;
        let found_absent = matches!(task, Task::Install(_)) && !marks.is_empty();
        if matches!(task, Task::Call { .. }) || found_absent {
            let operations = sets.operations.between(marks.clone());
            recorder.ran(request.txn, *part, at, operations.clone());
            noted.push((*part, operations));
        }
    }
    Noted(Some(Arc::new(noted)))
}
