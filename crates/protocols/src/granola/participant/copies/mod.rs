//! What a repository does for those who read at a copy of it.
//!
//! A coordinator that keeps a copy is told what changes ([`feed`]), which `copy` takes; a replica
//! that follows the log of its group answers readers from what it has replayed
//! ([`follower_reads`]).

mod copy;
pub mod feed;
pub mod follower_reads;

use muesli_core::parts::spaces::ChainKinds;

/// What a piece begins with.
const PIECES: ChainKinds = ChainKinds { chains: 0, rest: 1, cuts: true };
