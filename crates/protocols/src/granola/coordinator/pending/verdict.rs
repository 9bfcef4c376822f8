//! What the answers to a request come to.

use muesli_core::{Abort, RepositoryId};

use super::super::{Purpose, RequestVerdict};
use super::Pending;
use crate::granola::message::{Agreement, Few, Refusal, ReplyOutcome};

impl Pending {
    /// What the answers come to so far, if that is enough.
    pub(super) fn verdict(&self) -> Option<RequestVerdict> {
        let coordinated = self.request.agreement == Agreement::Coordinated;
        for (_, end) in &self.ends {
            match end {
                ReplyOutcome::Conflict => return Some(RequestVerdict::Conflict),
                ReplyOutcome::Moved { at } => return Some(RequestVerdict::Moved(*at)),
                ReplyOutcome::Refused { at, refusal: Refusal::Aborted(Abort::Forgotten) } => {
                    return Some(RequestVerdict::Forgotten(*at));
                }
                ReplyOutcome::Refused { refusal, .. } if coordinated => {
                    return Some(RequestVerdict::Refused(refusal.clone()));
                }
                ReplyOutcome::Refused { .. } | ReplyOutcome::Done { .. } => {}
            }
        }
        self.unanswered.is_empty().then(|| self.verdict_of_all())
    }

    /// What the answers of all participants come to, none of which met a conflict.
    fn verdict_of_all(&self) -> RequestVerdict {
        let (mut place, mut answers, mut refused) = (None, Few::new(), None);
        assert!(!self.ends.is_empty(), "nobody takes part in {}", self.request.txn);
        for (repository, end) in &self.ends {
            match end {
                ReplyOutcome::Done { at, answers: some } => {
                    // Of a reader: a participant that started again has voted twice.
                    if place.is_some_and(|(place, _)| place != *at) {
                        return RequestVerdict::Conflict;
                    }
                    place = Some((*at, *repository));
                    answers.extend(some.iter().cloned());
                }
                ReplyOutcome::Refused { refusal, .. } => refused = Some((*repository, refusal)),
                ReplyOutcome::Conflict => return RequestVerdict::Conflict,
                ReplyOutcome::Moved { at } => return RequestVerdict::Moved(*at),
            }
        }
        match (place, refused) {
            (Some((_, done)), Some((by, refusal))) if self.request.is_update() => {
                let text = half_done(done, by, refusal);
                RequestVerdict::Refused(Refusal::Faulty(text))
            }
            (_, Some((_, refusal))) => RequestVerdict::Refused(refusal.clone()),
            (Some((at, _)), None) => {
                answers.sort_by_key(|(part, _)| *part);
                answers.dedup_by_key(|(part, _)| *part);
                let (given, parts) = (answers.len(), self.request.parts.len());
                assert!(given <= parts, "{given} answers to {}, of {parts}", self.request.txn);
                let reads = matches!(self.purpose, Some(Purpose::Invoke(_)));
                match reads && !self.request.is_update() && given < parts {
                    true => RequestVerdict::Conflict, // What it read is forgotten: it reads again.
                    false => RequestVerdict::Done(at, answers),
                }
            }
            (None, None) => unreachable!("somebody takes part"),
        }
    }
}

/// An independent transaction did not keep what its class promises: that all participants come to
/// the same decision. What it did stands, where it did it; its client is told.
fn half_done(done: RepositoryId, by: RepositoryId, refusal: &Refusal) -> String {
    let why = match refusal {
        Refusal::Refused(reason) => String::from_utf8_lossy(reason.as_slice()).into_owned(),
        Refusal::Faulty(text) => text.clone(),
        Refusal::Aborted(reason) => reason.to_string(),
    };
    format!(
        "repository {} refused an independent transaction that took effect at repository {}: \
         {why}; a procedure that may refuse by data of its own repository needs class \
         `Coordinated`",
        by.0, done.0
    )
}
