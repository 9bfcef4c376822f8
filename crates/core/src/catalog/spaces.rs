//! Spaces: named sets of keys.

use crate::bytes::SmallBytes;

/// How a space finds its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Index {
    /// By hash only: point look-ups; scans are refused.
    Hash,
    /// By hash and in order: point look-ups as fast, scans allowed; inserts cost a tree's insert
    /// and about 45 bytes more a key.
    #[default]
    Ordered,
}

/// How a space's keys are dealt to partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partitioning {
    /// By a hash of the key that never changes (XXH3).
    #[default]
    Hash,
    /// By ranges: partition `i` holds the keys from split `i - 1` (included) to split `i`
    /// (excluded). Splits ascend, and there are fewer of them than partitions.
    Range(Vec<SmallBytes>),
}

/// What a space is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceOptions {
    /// Its index.
    pub index: Index,
    /// How its keys are dealt to partitions.
    pub partitioning: Partitioning,
}

/// A space: a name and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Unique name.
    pub name: String,
    /// Index and placement.
    pub options: SpaceOptions,
}
