//! The numbers of records.

use std::fmt;

/// The number of a record; the first one has 1, and 0 is before all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The next one.
    pub fn next(self) -> Sequence {
        Sequence(self.0 + 1)
    }

    /// The one before; that of 0 is 0.
    pub fn before(self) -> Sequence {
        Sequence(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}
