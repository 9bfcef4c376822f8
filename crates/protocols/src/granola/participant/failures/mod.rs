//! What a repository does so that crashes, and clients that never come back, do no harm.
//!
//! A repository that starts again restores a [`checkpoint`] and [replays](replay) the records of
//! its log after it; of a record that another member of its group has written it first asks
//! whether it can be (`judge_record`). What is kept for clients that are gone is given up
//! (`gone_clients`).

pub mod checkpoint;
pub(super) mod gone_clients;
mod judge_record;
pub mod replay;
