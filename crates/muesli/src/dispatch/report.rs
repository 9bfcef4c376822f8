//! What a loop leaves behind when it stops.

use muesli_core::{Recorder, RepositoryId, SmallBytes, SpaceId, Timestamp};

/// What a node leaves behind: its history, its version chains, and counts.
#[derive(Debug, Default)]
pub struct Report {
    /// The node's number.
    pub node: u32,
    /// What its transactions did, if that was recorded.
    pub recorder: Recorder,
    /// The version chains of its repositories at the end, if a history was recorded.
    #[expect(clippy::type_complexity, reason = "one row a chain, read once")]
    pub chains: Vec<(RepositoryId, Vec<(SpaceId, SmallBytes, Vec<Timestamp>)>)>,
    /// Messages sent to other nodes.
    pub messages: u64,
}
