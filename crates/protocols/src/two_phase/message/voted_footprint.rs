//! What votes carry up the tree as the thesis prints it: what their transaction has read and
//! writes, with the values (Amaro 2018, appendices A and B, `gets` and `puts`). Decisions carry
//! back to each participant what it holds of that.
//!
//! Nothing needs it. It is here to see what it costs, and what comes of validators that look at it
//! ([`ParentsKeepNoVersions`](crate::two_phase::TreeSwitch::ParentsKeepNoVersions)).

use muesli_core::parts::locator::Static;
use muesli_core::{Catalog, RepositoryId, SmallBytes, SpaceId, Timestamp, wire_struct};

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
        // Holders of copies say the same.
        for read in &other.reads {
            if !self.reads.contains(read) {
                self.reads.push(read.clone());
            }
        }
        for write in &other.writes {
            if !self.writes.contains(write) {
                self.writes.push(write.clone());
            }
        }
    }

    /// What some of the voters hold of it.
    pub(in crate::two_phase) fn of(
        &self,
        voters: &[RepositoryId],
        catalog: &Catalog,
    ) -> VotedFootprint {
        let holds = |space: SpaceId, key: &SmallBytes| {
            let partition = catalog.partition(space, key);
            voters.iter().any(|voter| Static.holds(*voter, partition, catalog))
        };
        let reads = self.reads.iter().filter(|(space, key)| holds(*space, key));
        let writes = self.writes.iter().filter(|(space, key, _)| holds(*space, key));
        VotedFootprint {
            snapshot: self.snapshot,
            reads: reads.cloned().collect(),
            writes: writes.cloned().collect(),
        }
    }

    /// The spaces that it names.
    pub(in crate::two_phase) fn spaces(&self) -> impl Iterator<Item = SpaceId> + '_ {
        let read = self.reads.iter().map(|(space, _)| *space);
        read.chain(self.writes.iter().map(|(space, ..)| *space))
    }

    /// How many bytes it is, for models of networks.
    pub(in crate::two_phase) fn bytes(&self) -> usize {
        let value = |it: &Option<SmallBytes>| it.as_ref().map_or(0, SmallBytes::len);
        let reads = self.reads.iter().map(|(_, key)| KEY_BYTES + key.len()).sum::<usize>();
        let writes = self.writes.iter().map(|(_, key, put)| KEY_BYTES + key.len() + value(put));
        8 + reads + writes.sum::<usize>()
    }
}
