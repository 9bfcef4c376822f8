//! At which moment of its site a transaction reads.

use muesli_core::{Nanos, Timestamp, wire_enum, wire_struct};

use super::SiteSnapshot;

/// At which moment of a site a read is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMoment {
    /// Its reader has none yet: now.
    Present,
    /// The one that the site named before.
    Known(SiteSnapshot),
    /// Its reader has none yet: that of a cut.
    Cut(CutBound),
}

wire_enum!(ReadMoment, "moment of a read" {
    0 => Present,
    1 => Known(snapshot: SiteSnapshot),
    2 => Cut(bound: CutBound),
});

/// Which cuts a reader can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutBound {
    /// Proposed no longer than this before the site hears of the reader, and so before it began.
    pub most: Nanos,
    /// Where there is none yet it waits; else it is refused.
    pub waits: bool,
    /// What its session has seen: the cut lies behind that.
    pub seen: Timestamp,
}

wire_struct!(CutBound { most: Nanos, waits: bool, seen: Timestamp });
