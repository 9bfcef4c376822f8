//! What votes carry up the tree as the thesis prints it for timestamps: what their transaction has
//! read and writes, with the values (Amaro 2018, appendix B, `gets` and `puts`).
//!
//! Nothing needs it. It is here to see what it costs, and what comes of validators that look at it
//! ([`ParentsKeepNoVersions`](crate::two_phase::TreeSwitch::ParentsKeepNoVersions)).

use muesli_core::{SmallBytes, SpaceId, Timestamp, wire_struct};

use crate::sizes::KEY_BYTES;

/// What the voters hold of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VotedFootprint {
    /// What it read at.
    pub snapshot: Timestamp,
    /// What it has read.
    pub reads: Vec<(SpaceId, SmallBytes)>,
    /// What it writes, with the values, if these climb, too.
    pub writes: Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>,
}

wire_struct!(VotedFootprint {
    snapshot: Timestamp,
    reads: Vec<(SpaceId, SmallBytes)>,
    writes: Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>,
});

impl VotedFootprint {
    /// Takes in what other voters hold.
    pub(in crate::two_phase) fn join(&mut self, other: &VotedFootprint) {
        self.snapshot = self.snapshot.max(other.snapshot);
        self.reads.extend_from_slice(&other.reads);
        self.writes.extend_from_slice(&other.writes);
    }

    /// How many bytes it is, for models of networks.
    pub(in crate::two_phase) fn bytes(&self) -> usize {
        let value = |it: &Option<SmallBytes>| it.as_ref().map_or(0, SmallBytes::len);
        let reads = self.reads.iter().map(|(_, key)| KEY_BYTES + key.len()).sum::<usize>();
        let writes = self.writes.iter().map(|(_, key, put)| KEY_BYTES + key.len() + value(put));
        8 + reads + writes.sum::<usize>()
    }
}
