//! What a repository does for those who read at a copy of it.
//!
//! A coordinator that keeps a copy is told what changes ([`feed`]); a replica that follows the log
//! of its group answers readers from what it has replayed ([`follower_reads`]).

pub mod feed;
pub mod follower_reads;
