//! Maps and spaces as they go over the wire and to the disk: plain values that may make no sense.

use muesli_core::catalog::{Hierarchy, Sites};
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Index, NodeId, Partitioning, RepositoryId, SpaceOptions, wire_struct};

/// This bit of `group` says that a tree follows the spaces. Maps without one are what they were
/// before there were trees, and a program that knows none takes no map with one.
const TREE_FOLLOWS: u16 = 1 << 15;
/// The same, where sites come behind all.
const SITES_FOLLOW: u16 = 1 << 14;
const FOLLOW: u16 = TREE_FOLLOWS | SITES_FOLLOW;

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
    /// Where nodes are, as far as that was said.
    pub sites: Sites,
    /// The spaces, in the order of their numbers.
    pub spaces: Vec<SpaceParts>,
    /// The tree above the repositories, if one was ever said.
    pub tree: Option<TreeParts>,
}

/// A tree as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeParts {
    /// The epoch of the tree.
    pub epoch: u64,
    /// The tree; `None`: there is none any more.
    pub tree: Option<Hierarchy>,
}

/// A space as it goes over the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceParts {
    /// Its name.
    pub name: String,
    /// Whether it has an ordered index.
    pub ordered: bool,
    /// How its keys are dealt to partitions. By hash and by ranges it has the layout that it had
    /// before there were units, and a program that knows none takes no map with another one.
    pub partitioning: Partitioning,
}

wire_struct!(SpaceParts { name: String, ordered: bool, partitioning: Partitioning });
wire_struct!(TreeParts { epoch: u64, tree: Option<Hierarchy> });

impl Wire for MapParts {
    const LEAST_BYTES: usize = 4 * u16::LEAST_BYTES + 6 * u32::LEAST_BYTES + 2 * u64::LEAST_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        self.servers.encode(out);
        let tree = if self.tree.is_some() { TREE_FOLLOWS } else { 0 };
        let sites = if self.sites == Sites::default() { 0 } else { SITES_FOLLOW };
        ((self.group & !FOLLOW) | tree | sites).encode(out);
        self.loops.encode(out);
        self.left.encode(out);
        self.epoch.encode(out);
        self.placement.encode(out);
        self.homes.encode(out);
        self.leaving.encode(out);
        self.begun.encode(out);
        self.replicas.encode(out);
        self.partitions_per_repository.encode(out);
        self.masters.encode(out);
        self.spaces.encode(out);
        if let Some(tree) = &self.tree {
            tree.encode(out);
        }
        if sites != 0 {
            self.sites.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<MapParts, WireError> {
        let (servers, group) = (Wire::decode(input)?, u16::decode(input)?);
        let mut map = MapParts {
            servers,
            group: group & !FOLLOW,
            loops: Wire::decode(input)?,
            left: Wire::decode(input)?,
            epoch: Wire::decode(input)?,
            placement: Wire::decode(input)?,
            homes: Wire::decode(input)?,
            leaving: Wire::decode(input)?,
            begun: Wire::decode(input)?,
            replicas: Wire::decode(input)?,
            partitions_per_repository: Wire::decode(input)?,
            masters: Wire::decode(input)?,
            sites: Sites::default(),
            spaces: Wire::decode(input)?,
            tree: None,
        };
        if group & TREE_FOLLOWS != 0 {
            map.tree = Some(Wire::decode(input)?);
        }
        if group & SITES_FOLLOW != 0 {
            map.sites = Wire::decode(input)?;
        }
        Ok(map)
    }
}

impl SpaceParts {
    /// As a space's name and options.
    pub fn of(name: &str, options: &SpaceOptions) -> SpaceParts {
        let partitioning = options.partitioning.clone();
        SpaceParts { name: name.to_owned(), ordered: options.index == Index::Ordered, partitioning }
    }

    /// The options.
    pub fn options(&self) -> SpaceOptions {
        let index = if self.ordered { Index::Ordered } else { Index::Hash };
        SpaceOptions { index, partitioning: self.partitioning.clone() }
    }
}
