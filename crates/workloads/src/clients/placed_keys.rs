//! Keys that are numbered, and of which a client knows on which node each is and who uses it.
//!
//! This is the key generator of a benchmark that controls two things (Amaro 2018, section 3.6.2):
//! *on which node* a key is that a transaction uses, and *who else uses it*. Keys are dealt to
//! repositories in turn by their numbers, and ranges keep them there: number `n` is the key `n / r`
//! of repository `n % r`, with `r` repositories. So a node's keys are counted without a table, and
//! each draw takes the same time however many keys there are.
//!
//! The first keys of a node, as many as asked for, are *shared*: any client may draw them. The
//! others are dealt to the clients in turn, and a client draws none but its *own* of them. Clients
//! that draw their own keys only have none in common.
//!
//! Where nodes are is looked up once, so all clients of a run divide the keys alike. A repository
//! that moves later takes its keys along, and they still count for the node that they were on.

use std::collections::BTreeMap;

use muesli::{Partitioning, SmallBytes};
use muesli_core::parts::locator::Static;
use muesli_core::{Catalog, NodeId, RepositoryId, SpaceId};

use crate::chance::Chance;

/// Draws keys by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedKeys {
    /// How many keys there are.
    total: u64,
    repositories: u64,
    clients: u64,
    /// How many keys of each node are shared; all, where it has fewer.
    shared: u64,
    /// By the numbers of the nodes.
    nodes: Box<[NodeKeys]>,
    /// For each range with keys, which of these nodes has it.
    node_of_range: Box<[usize]>,
}

/// The keys of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeKeys {
    node: NodeId,
    /// Ranges of keys whose first replica is here, in order: their numbers are those of
    /// repositories.
    ranges: Box<[u64]>,
    count: u64,
    /// Which nodes, by their places among those with keys, are below the lowest inner node above
    /// this one.
    subtree: Box<[usize]>,
}

/// Which keys of a node are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOwner {
    /// Those that every client may draw.
    Shared,
    /// Those of one client, by its number.
    Client(u32),
}

impl PlacedKeys {
    /// How a space of such keys is cut on so many repositories.
    pub fn partitioning(repositories: usize) -> Partitioning {
        let splits = (1..repositories as u64).map(|range| range_start(range).into());
        Partitioning::Range(splits.collect())
    }

    /// The keys of a space with [that](Self::partitioning) partitioning, `total` of them, for so
    /// many clients; `shared` of each node are shared.
    ///
    /// Nodes stand in rows of `siblings`, by their numbers, as under the lowest inner nodes of a
    /// tree of that width; 0: as under those of the catalog's tree, or all in one.
    pub fn new(
        catalog: &Catalog,
        space: SpaceId,
        total: u64,
        (clients, shared): (u32, u64),
        siblings: usize,
    ) -> PlacedKeys {
        let repositories = catalog.repositories() as u64;
        let mut nodes: BTreeMap<NodeId, Vec<RepositoryId>> = BTreeMap::new();
        for range in 0..repositories.min(total) {
            let partition = catalog.partition(space, &range_start(range).into());
            let mut replicas = Static.replicas_of(partition, catalog);
            let first = replicas.next().expect("each partition is somewhere");
            assert_eq!(u64::from(first.0), range, "range {range} is at {first:?}");
            nodes.entry(catalog.home(first)).or_default().push(first);
        }
        let subtrees = subtrees(catalog, &nodes, siblings);
        let keys = nodes.into_iter().zip(subtrees).map(|((node, ranges), subtree)| {
            let ranges: Box<[u64]> = ranges.iter().map(|it| u64::from(it.0)).collect();
            let count = ranges.iter().map(|range| (total - range).div_ceil(repositories)).sum();
            NodeKeys { node, ranges, count, subtree }
        });
        let nodes: Box<[NodeKeys]> = keys.collect();
        let has = |range: u64| nodes.iter().position(|it| it.ranges.contains(&range));
        let node_of = |range| has(range).expect("each range is on a node");
        let node_of_range = (0..repositories.min(total)).map(node_of).collect();
        let clients = u64::from(clients.max(1));
        PlacedKeys { total, repositories, clients, shared, nodes, node_of_range }
    }

    /// How many keys there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The key with this number.
    pub fn key(&self, number: u64) -> SmallBytes {
        let mut key = range_start(number % self.repositories);
        key.extend_from_slice(&(number / self.repositories).to_be_bytes());
        key.into()
    }

    /// How many repositories have keys: those with the first numbers.
    pub fn ranges(&self) -> u64 {
        self.repositories.min(self.total)
    }

    /// The numbers of the keys of a repository, in their order.
    pub fn numbers_in(&self, range: u64) -> impl Iterator<Item = u64> + use<> {
        (range..self.total).step_by(self.repositories as usize)
    }

    /// The numbers of all keys: those of a repository follow each other.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.ranges()).flat_map(|range| self.numbers_in(range))
    }

    /// The nodes with keys, by their numbers. Elsewhere a node is its place in this.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.nodes.iter().map(|it| it.node)
    }

    /// The node that counts as a client's own. Where clients run beside the data, in the simulator
    /// or in a process, that is the one that it runs on.
    pub fn own_node(&self, client: u32) -> usize {
        client as usize % self.nodes.len()
    }

    /// The nodes below the lowest inner node of the tree above this one, itself included.
    pub fn subtree(&self, node: usize) -> &[usize] {
        &self.nodes[node].subtree
    }

    /// The node of the key with this number.
    pub fn node_of(&self, number: u64) -> usize {
        self.node_of_range[(number % self.repositories) as usize]
    }

    /// How many keys of a node an owner has.
    pub fn count(&self, node: usize, owner: KeyOwner) -> u64 {
        let NodeKeys { count, .. } = self.nodes[node];
        let shared = self.shared.min(count);
        match owner {
            KeyOwner::Shared => shared,
            KeyOwner::Client(client) => {
                let first = u64::from(client) % self.clients;
                (count - shared).saturating_sub(first).div_ceil(self.clients)
            }
        }
    }

    /// The number of one of an owner's keys on a node, all alike, and none of `taken`; `None`: all
    /// are taken.
    pub fn draw(
        &self,
        node: usize,
        owner: KeyOwner,
        taken: &[u64],
        chance: &mut Chance,
    ) -> Option<u64> {
        let count = self.count(node, owner);
        let all_taken = count <= taken.len() as u64
            && (0..count).all(|at| taken.contains(&self.number(node, owner, at)));
        if all_taken {
            return None;
        }
        loop {
            let number = self.number(node, owner, chance.below(count));
            assert!(number < self.total, "{number} of {} keys", self.total);
            if !taken.contains(&number) {
                return Some(number);
            }
        }
    }

    /// The number of the key at this place among those of an owner on a node.
    fn number(&self, node: usize, owner: KeyOwner, at: u64) -> u64 {
        let NodeKeys { ranges, count, .. } = &self.nodes[node];
        let at = match owner {
            KeyOwner::Shared => at,
            KeyOwner::Client(client) => {
                let first = u64::from(client) % self.clients;
                self.shared.min(*count) + first + at * self.clients
            }
        };
        let each = ranges.len() as u64;
        at / each * self.repositories + ranges[(at % each) as usize]
    }
}

/// What keys of a range begin with.
fn range_start(range: u64) -> Vec<u8> {
    (range as u16).to_be_bytes().to_vec()
}

/// For each node, those below the lowest inner node above it.
fn subtrees(
    catalog: &Catalog,
    nodes: &BTreeMap<NodeId, Vec<RepositoryId>>,
    siblings: usize,
) -> Vec<Box<[usize]>> {
    let of_each: Vec<&Vec<RepositoryId>> = nodes.values().collect();
    let below = |own: usize, other: usize| match &catalog.hierarchy {
        _ if siblings > 0 => own / siblings == other / siblings,
        Some(tree) => {
            let lowest = tree.lowest_above(of_each[own]);
            let is_covered = |it: &RepositoryId| lowest.is_some_and(|top| tree.covers(top, *it));
            of_each[other].iter().all(is_covered)
        }
        None => true,
    };
    let of = |own| (0..of_each.len()).filter(|other| below(own, *other)).collect();
    (0..of_each.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use muesli::{Index, SpaceOptions};
    use muesli_core::catalog::{TreePlan, TreeShape};
    use proptest::prelude::*;

    use super::*;

    const SPACE: SpaceId = SpaceId(0);

    /// Repositories dealt to nodes in turn, perhaps with a tree above them.
    fn catalog(nodes: usize, each: usize, shape: Option<&str>) -> Catalog {
        let homes: Vec<_> = (0..nodes * each).map(|it| NodeId((it % nodes) as u32)).collect();
        let partitioning = PlacedKeys::partitioning(homes.len());
        let options = SpaceOptions { index: Index::Hash, partitioning };
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = catalog.with_space("keys", options).unwrap();
        match shape {
            Some(shape) => {
                let plan = TreePlan::from(shape.parse::<TreeShape>().unwrap());
                catalog.with_tree(&plan, &[]).unwrap()
            }
            None => catalog,
        }
    }

    fn owners(clients: u32) -> impl Iterator<Item = KeyOwner> {
        std::iter::once(KeyOwner::Shared).chain((0..clients).map(KeyOwner::Client))
    }

    proptest! {
        #[test]
        fn each_key_is_on_its_node_and_has_one_owner(
            nodes in 1usize..5, each in 1usize..4, total in 1u64..200, clients in 1u32..6,
            shared in 0u64..20,
        ) {
            let catalog = catalog(nodes, each, None);
            let keys = PlacedKeys::new(&catalog, SPACE, total, (clients, shared), 0);
            let mut seen = BTreeSet::new();
            for (node, id) in keys.nodes().enumerate() {
                for owner in owners(clients) {
                    for at in 0..keys.count(node, owner) {
                        let number = keys.number(node, owner, at);
                        prop_assert!(seen.insert(number), "{} has two owners", number);
                        prop_assert_eq!(keys.node_of(number), node);
                        let partition = catalog.partition(SPACE, &keys.key(number));
                        let first = Static.replicas_of(partition, &catalog).next().unwrap();
                        prop_assert_eq!(catalog.home(first), id);
                    }
                }
                prop_assert!(keys.count(node, KeyOwner::Shared) <= shared);
            }
            prop_assert_eq!(seen.len() as u64, total);
            prop_assert_eq!(keys.numbers().collect::<BTreeSet<_>>(), seen);
            let written: BTreeSet<_> = keys.numbers().map(|it| keys.key(it)).collect();
            prop_assert_eq!(written.len() as u64, total);
        }
    }

    #[test]
    fn draws_are_of_the_wanted_node_and_owner_and_repeat() {
        let keys = PlacedKeys::new(&catalog(4, 2, None), SPACE, 400, (3, 5), 0);
        let drawn = |seed| {
            let mut chance = Chance::new(seed, 0, 1);
            let mut all = Vec::new();
            for owner in owners(3) {
                for node in 0..4 {
                    let number = keys.draw(node, owner, &[], &mut chance).unwrap();
                    assert_eq!(keys.node_of(number), node);
                    let of_owner = |at| keys.number(node, owner, at) == number;
                    assert!((0..keys.count(node, owner)).any(of_owner), "{number} is {owner:?}'s");
                    all.push(number);
                }
            }
            all
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }

    #[test]
    fn draws_are_even_and_differ_until_all_are_taken() {
        let keys = PlacedKeys::new(&catalog(2, 1, None), SPACE, 24, (2, 4), 0);
        let (mut chance, owner) = (Chance::new(3, 0, 1), KeyOwner::Client(1));
        let mut counts = BTreeMap::new();
        for _ in 0..4_000 {
            *counts.entry(keys.draw(1, owner, &[], &mut chance).unwrap()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 4, "{counts:?}");
        assert!(counts.values().all(|it| (900..1_100).contains(it)), "{counts:?}");
        let mut taken = Vec::new();
        while let Some(number) = keys.draw(1, owner, &taken, &mut chance) {
            assert!(!taken.contains(&number));
            taken.push(number);
        }
        assert_eq!(taken.len(), 4);
    }

    #[test]
    fn subtrees_are_those_of_the_tree_or_of_rows_as_long() {
        let rows_of_one =
            |siblings| PlacedKeys::new(&catalog(4, 1, None), SPACE, 100, (1, 0), siblings);
        let tree = PlacedKeys::new(&catalog(4, 3, Some("2x2")), SPACE, 100, (1, 0), 0);
        let rows = PlacedKeys::new(&catalog(4, 3, None), SPACE, 100, (1, 0), 2);
        assert_eq!(tree, rows);
        assert_eq!((tree.subtree(1), tree.subtree(2)), (&[0, 1][..], &[2, 3][..]));
        let root =
            |siblings| PlacedKeys::new(&catalog(4, 1, Some("4")), SPACE, 100, (1, 0), siblings);
        assert_eq!(root(0).subtree(3), [0, 1, 2, 3]);
        assert_eq!(root(2), rows_of_one(2), "whatever the tree is");
        let root = root(0);
        assert_eq!((root.own_node(3), root.own_node(6)), (3, 2));
    }
}
