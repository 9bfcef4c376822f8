//! How transactions end, and what their parts give.

use std::sync::Arc;

use muesli_core::recorder::RecordedOperations;
use muesli_core::{Abort, Failure, SmallBytes, SpaceId, Stop, Timestamp};

use super::Fetched;
use super::{Few, Owners};

/// How a transaction ended at a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// It was done.
    Done {
        /// Its place in the serial order.
        at: Timestamp,
        /// What the parts done here gave, by their number in the request.
        answers: Few<(u16, PartAnswer)>,
    },
    /// It is not done, as another one was in the way.
    Conflict,
    /// It is not done, as a partition of it is elsewhere.
    Moved {
        /// Where that is known to whoever looks at this timestamp or later.
        at: Timestamp,
    },
    /// It has no effect here: somebody refused.
    Refused {
        /// The highest timestamp that the refusal depends on.
        at: Timestamp,
        /// Why.
        refusal: Refusal,
    },
}

/// Why a transaction is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// By a procedure, for a reason of its own.
    Refused(SmallBytes),
    /// A procedure did what it may not do; the text says what.
    Faulty(String),
    /// What an interactive transaction read has changed since.
    Aborted(Abort),
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Refusal {
        match stop {
            Stop::Refused(reason) => Refusal::Refused(reason),
            Stop::Faulty(text) => Refusal::Faulty(text),
        }
    }
}

/// What a part gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartAnswer {
    /// The result of a procedure.
    Given(SmallBytes),
    /// Keys, in the order asked.
    Found(Vec<FoundVersion>),
    /// The keys of a range in ascending order, deleted ones too; and the last key that was looked
    /// at, of whatever partition, if the range was not seen to its end.
    Rows(Vec<(SmallBytes, FoundVersion)>, Option<SmallBytes>),
    /// What was read has not changed, and what was to be written is; or a partition was moved.
    Installed,
    /// How much of a partition is fetched.
    Taken {
        /// What is here.
        has: Fetched,
        /// It was all that there was.
        whole: bool,
    },
    /// Who holds the partitions that were moved.
    Names(Vec<(u16, Owners)>),
    /// As [`Installed`](PartAnswer::Installed); and for histories, where collected deletions are
    /// recorded: the deletions of keys that the transaction has read and that are absent. These it
    /// ended with, whichever it found when it read.
    Absent(Vec<(SpaceId, SmallBytes, Timestamp)>),
}

/// What procedures did, by the numbers of their parts, as the client is told of it: histories are
/// judged by that. Only drivers that record histories have it, and they do not turn it into bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted(pub Option<Arc<Vec<(u16, RecordedOperations)>>>);

/// A version of a key as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVersion {
    /// The version.
    pub version: Timestamp,
    /// Its value.
    pub value: Option<SmallBytes>,
    /// For histories: where no version was found, the collected deletion that was read.
    pub collected: Timestamp,
}

impl FoundVersion {
    /// What was read, for histories.
    pub fn recorded(&self) -> Timestamp {
        self.version.max(self.collected)
    }
}

/// What a client is told of a refusal.
impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        match refusal {
            Refusal::Refused(reason) => Failure::Refused(reason),
            Refusal::Faulty(text) => Failure::Procedure(text),
            Refusal::Aborted(reason) => Failure::Aborted(reason),
        }
    }
}
