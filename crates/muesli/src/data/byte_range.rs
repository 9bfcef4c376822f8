//! Ranges of keys as they are stored.

use std::ops::Bound;

use muesli_core::SmallBytes;

/// A range of keys to scan, and how: by default all keys, ascending, without limit.
#[derive(Clone, Debug)]
pub struct Range {
    pub(crate) lo: SmallBytes,
    pub(crate) hi: Option<SmallBytes>,
    pub(crate) reverse: bool,
    pub(crate) limit: usize,
}

impl Range {
    /// All keys.
    pub fn all() -> Range {
        Range { lo: SmallBytes::EMPTY, hi: None, reverse: false, limit: usize::MAX }
    }

    /// The keys within two bounds, as `Range::of(lo..hi)` or with any other range of byte strings.
    pub fn of<K: AsRef<[u8]>>(bounds: impl std::ops::RangeBounds<K>) -> Range {
        let lo = match bounds.start_bound() {
            Bound::Included(lo) => SmallBytes::new(lo.as_ref()),
            Bound::Excluded(lo) => SmallBytes::new(lo.as_ref()).successor(),
            Bound::Unbounded => SmallBytes::EMPTY,
        };
        let hi = match bounds.end_bound() {
            Bound::Included(hi) => Some(SmallBytes::new(hi.as_ref()).successor()),
            Bound::Excluded(hi) => Some(SmallBytes::new(hi.as_ref())),
            Bound::Unbounded => None,
        };
        Range { lo, hi, ..Range::all() }
    }

    /// The keys that start with `prefix`, as they are stored. The encoding of a typed string has an
    /// end of its own, so other strings do not start with it: those that start with some text are
    /// [`KeyRange::prefix`](crate::KeyRange::prefix).
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Range {
        let lo = SmallBytes::new(prefix.as_ref());
        Range { hi: lo.prefix_end(), lo, ..Range::all() }
    }

    /// From the last key backwards.
    pub fn reverse(self) -> Range {
        Range { reverse: true, ..self }
    }

    /// At most `limit` rows.
    pub fn limit(self, limit: usize) -> Range {
        Range { limit, ..self }
    }
}
