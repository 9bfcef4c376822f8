//! Maps and spaces as they go over the wire and to the disk: plain values that may make no sense.

use muesli_core::{
    Index, NodeId, Partitioning, RepositoryId, SmallBytes, SpaceOptions, wire_struct,
};

/// A map as it goes over the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapParts {
    /// The servers, and where they listen.
    pub servers: Vec<(NodeId, String)>,
    /// How many servers kept each repository at first; the catalog's repositories are places of
    /// members where that is more than one.
    pub group: u16,
    /// How many servers, one after the other, are loops of one process, and end together.
    pub loops: u16,
    /// Those of the servers that have left for good, in the order of their names.
    pub left: Vec<NodeId>,
    /// The epoch of the spaces.
    pub epoch: u64,
    /// The epoch of the placement.
    pub placement: u64,
    /// The home of each repository, and since which epoch of the placement.
    pub homes: Vec<(NodeId, u64)>,
    /// Those of them that are to go.
    pub leaving: Vec<RepositoryId>,
    /// Groups that are known to have begun.
    pub begun: Vec<u16>,
    /// How many repositories hold each key.
    pub replicas: u16,
    /// How many partitions there are for each repository.
    pub partitions_per_repository: u16,
    /// Which of the servers decide for the clients, under protocols that have masters.
    pub masters: Vec<NodeId>,
    /// The spaces, in the order of their numbers.
    pub spaces: Vec<SpaceParts>,
}

/// A space as it goes over the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceParts {
    /// Its name.
    pub name: String,
    /// Whether it has an ordered index.
    pub ordered: bool,
    /// Where its partitions are split; `None` is by hash.
    pub splits: Option<Vec<SmallBytes>>,
}

wire_struct!(SpaceParts { name: String, ordered: bool, splits: Option<Vec<SmallBytes>> });
wire_struct!(MapParts {
    servers: Vec<(NodeId, String)>,
    group: u16,
    loops: u16,
    left: Vec<NodeId>,
    epoch: u64,
    placement: u64,
    homes: Vec<(NodeId, u64)>,
    leaving: Vec<RepositoryId>,
    begun: Vec<u16>,
    replicas: u16,
    partitions_per_repository: u16,
    masters: Vec<NodeId>,
    spaces: Vec<SpaceParts>,
});

impl SpaceParts {
    /// As a space's name and options.
    pub fn of(name: &str, options: &SpaceOptions) -> SpaceParts {
        let splits = match &options.partitioning {
            Partitioning::Hash => None,
            Partitioning::Range(splits) => Some(splits.clone()),
        };
        SpaceParts { name: name.to_owned(), ordered: options.index == Index::Ordered, splits }
    }

    /// The options.
    pub fn options(&self) -> SpaceOptions {
        let index = if self.ordered { Index::Ordered } else { Index::Hash };
        let partitioning = self.splits.clone().map_or(Partitioning::Hash, Partitioning::Range);
        SpaceOptions { index, partitioning }
    }
}
