//! Whether a command commits, from what is before it in the order.

use std::fmt::Debug;

use muesli_core::{SmallBytes, SpaceId, Timestamp};

use super::OrderedCommit;

/// A certification: all sites come to the same answer, as they ask it of the same commands in the
/// same order.
pub trait Certify: Clone + Copy + Debug + Send + Sync + 'static {
    /// Whether a command commits, where `newest` tells the newest version of each key.
    fn certify(command: &OrderedCommit, newest: impl Fn(SpaceId, &SmallBytes) -> Timestamp)
    -> bool;
}

/// Everything that was read is still the newest: transactions are serializable in the order of the
/// broadcast.
#[derive(Clone, Copy, Debug)]
pub enum ReadsAreNewest {}

impl Certify for ReadsAreNewest {
    fn certify(
        command: &OrderedCommit,
        newest: impl Fn(SpaceId, &SmallBytes) -> Timestamp,
    ) -> bool {
        command.reads.iter().all(|(space, key, version)| newest(*space, key) == *version)
    }
}

/// Everything commits. It is there to see that the checker notices.
#[derive(Clone, Copy, Debug)]
pub enum Nothing {}

impl Certify for Nothing {
    fn certify(_: &OrderedCommit, _: impl Fn(SpaceId, &SmallBytes) -> Timestamp) -> bool {
        true
    }
}
