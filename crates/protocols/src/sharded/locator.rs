//! Which repositories keep a key: those of its shard.
//!
//! Repositories are cut into shards by their numbers, so many each as a key has replicas, and one
//! more where they do not come out even. What is said here holds for ever: a shard agrees on an
//! order by quorums of its members.

use std::collections::BTreeSet;
use std::ops::Range;

use muesli_core::{Catalog, KeyRange, NodeId, RepositoryId, SmallBytes, SpaceId, wire};

/// A shard, by its number: repositories that keep the same keys and agree on one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

impl wire::Wire for ShardId {
    const LEAST_BYTES: usize = 2;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut wire::Reader<'_>) -> Result<Self, wire::WireError> {
        u16::decode(input).map(ShardId)
    }
}

/// How many shards there are.
pub fn shards(catalog: &Catalog) -> usize {
    let count = (catalog.repositories() / usize::from(catalog.replicas.max(1))).max(1);
    assert!(count <= catalog.repositories(), "{count} shards, and not as many repositories");
    count
}

/// The members of a shard, in order.
pub fn members(shard: ShardId, catalog: &Catalog) -> Range<u16> {
    let (all, count) = (catalog.repositories(), shards(catalog));
    let first = |shard: usize| (shard * all / count) as u16;
    let place = usize::from(shard.0);
    assert!(place < count, "{shard:?} of {count}");
    first(place)..first(place + 1)
}

/// The shard of a repository.
pub fn shard_of(repository: RepositoryId, catalog: &Catalog) -> ShardId {
    let (all, count) = (catalog.repositories(), shards(catalog));
    let place = ((usize::from(repository.0) + 1) * count - 1) / all;
    let shard = ShardId(place as u16);
    assert!(members(shard, catalog).contains(&repository.0), "{repository:?} is of no shard");
    shard
}

/// The shard that keeps a partition.
pub fn shard_of_partition(partition: u16, catalog: &Catalog) -> ShardId {
    let repository = usize::from(partition) % catalog.repositories();
    shard_of(RepositoryId(repository as u16), catalog)
}

/// The shard that keeps a key.
pub fn shard_of_key(space: SpaceId, key: &SmallBytes, catalog: &Catalog) -> ShardId {
    shard_of_partition(catalog.partition(space, key), catalog)
}

/// The shards that may keep keys of a range.
pub fn shards_of_range(range: &KeyRange, catalog: &Catalog) -> BTreeSet<ShardId> {
    let partitions = catalog.partitions_of_range(range.space, &range.lo, range.hi.as_ref());
    partitions.map(|partition| shard_of_partition(partition, catalog)).collect()
}

/// The members of a shard as a node asks them: its own first, then the one that it is near to, then
/// those of its site, then the others, each node beginning with another one.
pub fn by_distance(shard: ShardId, node: NodeId, catalog: &Catalog) -> Vec<RepositoryId> {
    let all = members(shard, catalog);
    let (first, count) = (all.start, all.len() as u32);
    let near = catalog.nearest(node).unwrap_or(node);
    let distance = |repository: &RepositoryId| {
        let home = catalog.home(*repository);
        let rank = match home {
            _ if home == node => 0,
            _ if home == near => 1,
            _ if catalog.sites.are_colocated(home, near) => 2,
            _ => 3,
        };
        let turned = (u32::from(repository.0 - first) + count - node.0 % count) % count;
        (rank, turned)
    };
    let mut ordered: Vec<_> = all.map(RepositoryId).collect();
    ordered.sort_by_key(distance);
    assert!(!ordered.is_empty(), "{shard:?} has no members");
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(repositories: u32, replicas: usize) -> Catalog {
        let homes: Vec<_> = (0..repositories).map(NodeId).collect();
        Catalog::new(&homes, replicas, &homes).expect("a catalog")
    }

    #[test]
    fn each_repository_is_of_one_shard_and_each_shard_has_its_replicas() {
        for (repositories, replicas) in [(1, 1), (3, 3), (4, 2), (5, 2), (8, 3), (12, 1), (7, 7)] {
            let catalog = catalog(repositories, replicas);
            let all = (0..shards(&catalog) as u16).map(ShardId);
            let members = all.flat_map(|shard| {
                let of_shard = members(shard, &catalog);
                assert!(of_shard.len() >= replicas, "{shard:?}: {of_shard:?}");
                of_shard.map(move |repository| (shard, RepositoryId(repository)))
            });
            let members: Vec<_> = members.collect();
            assert_eq!(members.len(), repositories as usize);
            let fits = members.iter().all(|(shard, it)| shard_of(*it, &catalog) == *shard);
            assert!(fits, "{members:?}");
        }
    }

    #[test]
    fn a_node_asks_its_own_member_first_and_others_in_an_order_of_its_own() {
        let catalog = catalog(6, 3).with_nearest(&[(NodeId(9), NodeId(4))]);
        let of = |shard, node| by_distance(ShardId(shard), NodeId(node), &catalog);
        let numbers = |all: [u16; 3]| all.map(RepositoryId).to_vec();
        assert_eq!(of(0, 1), numbers([1, 2, 0]));
        assert_eq!(of(1, 1), numbers([4, 5, 3]));
        assert_eq!(of(1, 9)[0], RepositoryId(4), "it is near");
    }
}
