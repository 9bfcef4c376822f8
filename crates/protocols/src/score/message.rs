//! What is said, in detail: the family's messages, of SCORe.

use super::Snapshots;
use crate::two_phase::message;

pub use message::Found;

/// See [`message::Prepare`].
pub type Prepare = message::Prepare<Snapshots>;
/// See [`message::Vote`].
pub type Vote = message::Vote<Snapshots>;
/// See [`message::RepositoryVote`].
pub type RepositoryVote = message::RepositoryVote<Snapshots>;
