//! Ranges of keys, scans of them, and the rows that these give.

use crate::bytes::SmallBytes;
use crate::ids::SpaceId;
use crate::wire_struct;

/// A row of a scan: key and value.
pub type Row = (SmallBytes, SmallBytes);

/// A range `[lo, hi)` of a space; `hi` `None` is open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRange {
    /// The space.
    pub space: SpaceId,
    /// First key inside.
    pub lo: SmallBytes,
    /// First key after it.
    pub hi: Option<SmallBytes>,
}

impl KeyRange {
    /// Whether the range holds `key` of `space`.
    pub fn contains(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.space == space && *key >= self.lo && self.hi.as_ref().is_none_or(|hi| key < hi)
    }

    /// The part of it that a scan has seen whose last key was `to`; all of it where there is none.
    pub fn seen(&self, reverse: bool, to: Option<&SmallBytes>) -> KeyRange {
        let mut seen = self.clone();
        match to {
            Some(to) if reverse => seen.lo = to.clone(),
            Some(to) => seen.hi = Some(to.successor()),
            None => {}
        }
        seen
    }

    /// The part of it that a scan has still to see whose last key so far was `to`.
    pub fn beyond(&self, reverse: bool, to: &SmallBytes) -> KeyRange {
        let mut beyond = self.clone();
        match reverse {
            true => beyond.hi = Some(to.clone()),
            false => beyond.lo = to.successor(),
        }
        beyond
    }

    /// The keys that two ranges have in common, if there can be any.
    pub fn common(&self, other: &KeyRange) -> Option<KeyRange> {
        let lo = self.lo.clone().max(other.lo.clone());
        let hi = match (&self.hi, &other.hi) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs).clone()),
            (mine, theirs) => mine.clone().or_else(|| theirs.clone()),
        };
        let some = self.space == other.space && hi.as_ref().is_none_or(|hi| lo < *hi);
        some.then_some(KeyRange { space: self.space, lo, hi })
    }

    /// Whether two ranges have a key in common, or follow each other without one between.
    pub fn touches(&self, other: &KeyRange) -> bool {
        let reaches =
            |hi: &Option<SmallBytes>, lo: &SmallBytes| hi.as_ref().is_none_or(|hi| lo <= hi);
        self.space == other.space && reaches(&self.hi, &other.lo) && reaches(&other.hi, &self.lo)
    }

    /// The smallest range that holds both of two that touch each other.
    pub fn join(&mut self, other: &KeyRange) {
        assert!(self.touches(other), "{self:?} and {other:?} have keys between them");
        self.lo = self.lo.clone().min(other.lo.clone());
        self.hi = match (self.hi.take(), &other.hi) {
            (Some(mine), Some(theirs)) => Some(mine.max(theirs.clone())),
            _ => None,
        };
    }
}

wire_struct!(KeyRange { space: SpaceId, lo: SmallBytes, hi: Option<SmallBytes> });

/// A range scan: the keys of `[lo, hi)` in ascending order (or descending), at most `limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The space.
    pub space: SpaceId,
    /// First key of the range.
    pub lo: SmallBytes,
    /// First key after the range; `None` is open.
    pub hi: Option<SmallBytes>,
    /// From the end of the range backwards.
    pub reverse: bool,
    /// Most rows wanted.
    pub limit: usize,
}
