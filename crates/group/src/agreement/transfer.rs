//! What members say to each other when one of them has to catch up: entries and pieces of state, a
//! few at a time.
//!
//! # The problem
//! A member that was away lacks entries; one that lost its disk, that is new, or that was deposed
//! lacks the state of the participant as well. Both may have gigabytes. The consensus library sends
//! whatever another member lacks in one message.
//!
//! # The idea
//! The library is left the short end of the log. The rest goes by messages of this module, which
//! have a bounded size: whoever lacks something asks one of the others for it
//! ([`Fetch`], [`FetchState`]), and each of its requests says how far it has come and has that on
//! its disk. The sender is ahead of what was acknowledged by at most a window of bytes. So the
//! receiver's disk sets the pace, and the sender goes on with its work in between. What is lost
//! with a link is asked for again; where a sender is gone, another one is asked.
//!
//! Entries come first: they let a member vote. Where the entries that it lacks were trimmed, its
//! log begins anew at a number that is decided ([`Base`]). The state follows while it votes
//! already.

use muesli_core::wire_struct;

use crate::agreement::entry::Entry;
use crate::agreement::summary::Summary;

/// A member asks another one for entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// It has so many, and has them on its disk.
    pub after: u64,
    /// Whether it asks for entries that are not decided, too: it has no memory.
    pub whole: bool,
    /// What was sent after that before was lost.
    pub again: bool,
}

/// Where a log begins whose beginning was trimmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// After so many entries, all decided.
    pub upto: u64,
    /// The bytes of these.
    pub bytes: u64,
}

/// The answer to [`Fetch`]: the next entries. Without entries: there are no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryBatch {
    /// What the sender knows.
    pub summary: Summary,
    /// The entries asked for were trimmed: the log is to begin here.
    pub base: Option<Base>,
    /// How many entries come before these.
    pub from: u64,
    /// The entries.
    pub entries: Vec<Entry>,
}

/// A member asks another one for the state of its participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchState {
    /// Of which transfer it has the first so many pieces on its disk; `None`: a new one is to
    /// begin.
    pub have: Option<(u64, u64)>,
    /// What was sent after that before was lost.
    pub again: bool,
}

/// The answer to [`FetchState`]: the next piece of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePiece {
    /// The number of the transfer.
    pub transfer: u64,
    /// The state is that after so many entries.
    pub covers: u64,
    /// The number of the piece, from 0.
    pub number: u64,
    /// How much of the state went before, of 100.
    pub percent: u8,
    /// The piece; `None`: there are no more, and `needs` counts.
    pub piece: Option<Entry>,
    /// The state is of use once this many entries were replayed.
    pub needs: u64,
}

wire_struct!(Fetch { after: u64, whole: bool, again: bool });
wire_struct!(Base { upto: u64, bytes: u64 });
wire_struct!(EntryBatch { summary: Summary, base: Option<Base>, from: u64, entries: Vec<Entry> });
wire_struct!(FetchState { have: Option<(u64, u64)>, again: bool });
wire_struct!(StatePiece {
    transfer: u64,
    covers: u64,
    number: u64,
    percent: u8,
    piece: Option<Entry>,
    needs: u64,
});
