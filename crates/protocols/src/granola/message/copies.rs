//! What coordinators that keep copies of repositories, and these, say to each other.

use muesli_core::{SmallBytes, Timestamp};

use super::{Holding, Write};

/// What a coordinator that follows a repository has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Which of its attempts this is; later ones have higher numbers.
    pub stream: u64,
    /// How many pieces it has.
    pub pieces: u32,
    /// It has all changes up to this.
    pub upto: Timestamp,
}

/// What those who follow a repository are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The next piece of all keys.
    Piece {
        /// From 1.
        number: u32,
        /// Keys with their newest versions.
        bytes: SmallBytes,
    },
    /// All pieces are there; this was done since, and nothing else will be done at `upto` or below.
    Changes {
        /// Up to where.
        upto: Timestamp,
        /// What was written where, in ascending order.
        changes: Vec<(Timestamp, Vec<Write>)>,
        /// Which partitions the repository holds at `upto`, of those that came or went.
        held: Vec<(u16, Holding)>,
    },
    /// This attempt is not known here: begin anew.
    Unknown,
}
