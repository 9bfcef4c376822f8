//! What a repository's log holds.

use std::sync::Arc;

use muesli_core::parts::spaces::Newest;
use muesli_core::{Timestamp, TxnId};

use super::outcome::ReplyOutcome;
use super::request::Request;
use super::vote::TimestampVote;
use super::{PartData, Write};

/// What a repository's log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Voted to commit.
    Voted {
        /// What was asked.
        request: Arc<Request>,
        /// What was proposed.
        at: Timestamp,
    },
    /// Voted against, or is to be refused for ever.
    Against {
        /// The transaction.
        txn: TxnId,
        /// How.
        ballot: TimestampVote,
    },
    /// Done: everything before it in the log was done before.
    Done {
        /// The transaction.
        txn: TxnId,
        /// Its place in the serial order.
        at: Timestamp,
        /// What it wrote.
        writes: Vec<Write>,
        /// What its coordinator is told, until it has heard.
        end: ReplyOutcome,
    },
    /// What the others are told of the keys here, at the transaction's place.
    SharedData {
        /// The transaction.
        txn: TxnId,
        /// What keys have.
        shared: Vec<PartData>,
    },
    /// Voted on, and not done: somebody else voted against it.
    Dropped {
        /// The transaction.
        txn: TxnId,
        /// What its coordinator is told.
        end: ReplyOutcome,
    },
    /// Keys of a partition that is to move here, as they are elsewhere.
    Staged {
        /// The partition.
        partition: u16,
        /// What was fetched of it before counts no more.
        anew: bool,
        /// The keys.
        keys: Vec<Newest>,
    },
    /// Whatever this log does not know of lies above this: for copies that replay it.
    Reached {
        /// The bound.
        at: Timestamp,
    },
    /// Nothing is done or proposed above this before the next such record is stable.
    UpperBound {
        /// The bound.
        at: Timestamp,
    },
}
