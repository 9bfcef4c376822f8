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
//!
//! A member drops what it has with that. So it is not asked to where it may have those entries
//! itself, accepted and not known as decided: another member may have counted it as one that keeps
//! them. Whether it has them, the ballots say: under one ballot there is one leader, and what two
//! members have accepted of it is the beginning of the same log. Except where entries that are
//! decided were fetched since: under a later leader others may have been decided than that one had.

use muesli_core::wire_struct;

use crate::agreement::ballot::Ballot;
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
    /// Whose entries it has, of those that are not decided as far as it knows.
    pub accepted: Ballot,
    /// How many entries it has with these.
    pub length: u64,
}

impl Fetch {
    /// Whether the member need not begin anew where a log begins after so many entries, all
    /// decided, of a member that knows this: it has them itself, though it does not know that they
    /// are decided. For both have what one leader had.
    pub fn has_up_to(&self, base: u64, known: &Summary) -> bool {
        !self.whole && self.length >= base && known.vouches_for(self.accepted)
    }
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

wire_struct!(Fetch { after: u64, whole: bool, again: bool, accepted: Ballot, length: u64 });
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
