//! Levels: the parts of a running transaction that can be undone alone (closed nesting).
//!
//! A child that begins is a *mark*: how much its parent had read, written, scanned and noted until
//! then. Reads are kept in order, so that the level of each is told by the marks. Writes are kept
//! by key, so that a read of one's own write is one look-up whatever the depth; what a child
//! overwrites of its parents is put aside, once a level. A transaction without children has no
//! marks, and pays nothing.
//!
//! A child ends in one of three ways. It is *merged*: all that it did is its parent's. It is
//! *dropped*: its writes are undone, and what it read is its parent's, which has been influenced by
//! that. It is *rolled back*, with all levels inside of it: nothing is left of it.

use std::collections::BTreeMap;

use crate::bytes::SmallBytes;

/// So many levels of a transaction may be open, one inside of the other.
pub const LEVELS_MAX: u32 = 256;

/// How much there was when a level began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelMark {
    pub(super) reads: usize,
    pub(super) writes: usize,
    pub(super) scans: usize,
    pub(super) operations: usize,
    pub(super) written_bytes: usize,
}

/// The open levels of a transaction; level 0 is the transaction itself, and has no mark.
///
/// Invariants: marks never fall from a level to the next, and do not pass what there is; what was
/// put aside at a level was written before it began; `guarded` is the innermost mark of writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    pub(super) marks: Vec<LevelMark>,
    /// What the first overwrite of a level has replaced, by level and place among the writes.
    pub(super) replaced: BTreeMap<(u32, usize), Option<SmallBytes>>,
    /// Writes before this place were there as the innermost level began.
    pub(super) guarded: usize,
}

impl Levels {
    /// Forgets all levels.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.marks.is_empty() {
            *self = Levels::default();
        }
    }

    pub(super) fn depth(&self) -> u32 {
        self.marks.len() as u32
    }

    pub(super) fn mark(&self, level: u32) -> &LevelMark {
        &self.marks[level as usize - 1]
    }

    /// Takes the innermost mark.
    pub(super) fn close(&mut self) -> LevelMark {
        let mark = self.marks.pop().expect("a level that is open");
        self.guarded = self.marks.last().map_or(0, |mark| mark.writes);
        mark
    }

    /// Whether a level, or one inside of it, has replaced a write of an outer one.
    pub(super) fn has_replaced(&self, level: u32) -> bool {
        self.replaced.range((level, 0)..).next().is_some()
    }
}
