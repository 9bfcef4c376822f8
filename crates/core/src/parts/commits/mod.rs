//! Votes, and transactions from their commit on.

pub mod commit_log;
pub mod commit_queue;
pub mod votes;
