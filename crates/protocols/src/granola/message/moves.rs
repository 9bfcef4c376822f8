//! Partitions that move: how much of them is loaded, and the move itself.

use muesli_core::parts::spaces::Newest;
use muesli_core::{RepositoryId, Timestamp};

use super::Write;

/// A move: what its participants agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// What moves.
    pub partition: u16,
    /// From where.
    pub from: RepositoryId,
    /// To where.
    pub to: RepositoryId,
    /// Its epoch afterwards.
    pub epoch: u64,
    /// What is to be at the destination, and all that there is at the source.
    pub has: Fetched,
}

/// How much of a partition is fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// How many pieces.
    pub pieces: u32,
    /// How many changes since the first piece.
    pub changes: u64,
    /// Which attempt this is: later ones of a repository have higher numbers.
    pub stream: Timestamp,
    /// By which name the source knows it, in that life; zero until it has told.
    pub source: Timestamp,
}

impl Fetched {
    /// Whether nothing is fetched.
    pub(in crate::granola) fn is_nothing(self) -> bool {
        self == Fetched { stream: self.stream, ..Fetched::default() }
    }
}

/// What a source gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// The next piece of all keys.
    Piece {
        /// From 1.
        number: u32,
        /// Keys with their newest versions, deleted ones too.
        keys: Vec<Newest>,
    },
    /// All pieces are there; these changes are next.
    Changes {
        /// So many came before.
        from: u64,
        /// What was written where, as it was done.
        changes: Vec<(Timestamp, Vec<Write>)>,
        /// There are no more.
        whole: bool,
    },
    /// This attempt is not known here, or the partition is not: begin anew.
    Unknown,
}
