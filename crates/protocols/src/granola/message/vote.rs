//! Votes: what participants say of a transaction that others decide by.

use muesli_core::{RepositoryId, Timestamp};

use super::outcome::{Refusal, ReplyOutcome};

/// How a participant votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimestampVote {
    /// To be done, at this timestamp or later.
    Commit(Timestamp),
    /// Another transaction is in the way; the coordinator is to try again.
    Conflict,
    /// It is refused, for a reason of its own.
    Abort(Timestamp, Refusal),
    /// A partition is not here: it was moved at this timestamp or later, or is about to be.
    Moved(Timestamp),
}

/// A vote as a client was told it, to be shown to those who take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Who voted.
    pub repository: RepositoryId,
    /// How.
    pub ballot: TimestampVote,
    /// On what.
    pub about: u64,
    /// That a member has said so.
    pub tag: u64,
}

/// Where a vote stands among those of its voter for one other repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteOrder {
    /// The voter's life: its first proposal in it.
    pub stream: Timestamp,
    /// From 1, without gaps.
    pub number: u64,
}

/// A vote, and what it is about.
pub(in crate::granola) type Vote = (TimestampVote, u64);

/// Votes on a transaction, each repository's once.
pub(in crate::granola) type Ballots = Vec<(RepositoryId, Vote)>;

impl TimestampVote {
    /// How a transaction ends that is voted on so; `None`: it is voted for.
    pub(in crate::granola) fn end_against(&self) -> Option<ReplyOutcome> {
        match self {
            TimestampVote::Commit(_) => None,
            TimestampVote::Conflict => Some(ReplyOutcome::Conflict),
            TimestampVote::Moved(at) => Some(ReplyOutcome::Moved { at: *at }),
            TimestampVote::Abort(at, refusal) => {
                Some(ReplyOutcome::Refused { at: *at, refusal: refusal.clone() })
            }
        }
    }
}
