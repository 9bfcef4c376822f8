//! Topology: a tree whose leaves are the repositories, and whose inner nodes are validators.
//!
//! An inner node has one validator or several, on nodes of their own choice: each works for a share
//! of the transactions. Validators are counted through, those of inner node 0 first, so where each
//! inner node has one the numbers of both are the same.

use std::fmt;

use thiserror::Error;

use crate::ids::{NodeId, RepositoryId};
use crate::roles::SERVICES_MAX;
use crate::wire::{Reader, Wire, WireError};
use crate::wire_struct;

/// The most inner nodes.
pub const INNER_NODES_MAX: usize = 1024;

/// An inner node of the tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InnerNode {
    /// Where its validators live, one for each share of the transactions.
    pub homes: Vec<NodeId>,
    /// The inner node above it; `None`: it is the root.
    pub parent: Option<u16>,
}

wire_struct!(InnerNode { homes: Vec<NodeId>, parent: Option<u16> });

impl InnerNode {
    /// One with a validator.
    pub fn new(home: NodeId, parent: Option<u16>) -> InnerNode {
        InnerNode { homes: vec![home], parent }
    }
}

/// The tree. Inner nodes are known by their numbers, from 0, and so are validators.
///
/// Invariants: there is one root, from which every inner node is reached; each leaf hangs from an
/// inner node; each inner node has a validator, and there are [`SERVICES_MAX`] in all at most.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hierarchy {
    inner: Vec<InnerNode>,
    /// The inner node above each repository.
    above: Vec<u16>,
    /// The number of each inner node's first validator.
    first: Vec<u16>,
}

/// Something that is no tree above the repositories.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotATree {
    /// There is not one root.
    #[error("a tree has one root: here are {0}")]
    Roots(usize),
    /// A parent that there is not.
    #[error("there is no inner node {0}")]
    Unknown(u16),
    /// Inner nodes above each other.
    #[error("inner node {0} is above itself")]
    Circle(u16),
    /// Leaves for other repositories than there are.
    #[error("the tree has {leaves} leaves for {repositories} repositories")]
    Leaves {
        /// How many it has.
        leaves: usize,
        /// How many repositories there are.
        repositories: usize,
    },
    /// More inner nodes than a tree may have.
    #[error("the tree has {0} inner nodes: there can be {INNER_NODES_MAX}")]
    InnerNodes(usize),
    /// An inner node without anybody who validates.
    #[error("inner node {0} has no validator")]
    NoValidator(u16),
    /// More validators than there are numbers for.
    #[error("the tree has {0} validators: there can be {SERVICES_MAX}")]
    Validators(usize),
    /// A width that no tree has.
    #[error("a tree of {0} children for each inner node: there must be 2 at least")]
    Width(usize),
}

impl Hierarchy {
    /// The tree of these inner nodes, where `above` tells the one above each repository.
    ///
    /// # Errors
    /// It is none.
    pub fn new(inner: Vec<InnerNode>, above: Vec<u16>) -> Result<Hierarchy, NotATree> {
        if inner.len() > INNER_NODES_MAX {
            return Err(NotATree::InnerNodes(inner.len()));
        }
        let roots = inner.iter().filter(|it| it.parent.is_none()).count();
        if roots != 1 {
            return Err(NotATree::Roots(roots));
        }
        let first = numbered(&inner)?;
        let mut named = inner.iter().filter_map(|it| it.parent).chain(above.iter().copied());
        if let Some(unknown) = named.find(|it| usize::from(*it) >= inner.len()) {
            return Err(NotATree::Unknown(unknown));
        }
        assert_eq!(inner.len(), first.len(), "each inner node has a first validator");
        let tree = Hierarchy { inner, above, first };
        for start in 0..tree.inner.len() as u16 {
            if tree.path(start).take(tree.inner.len() + 1).count() > tree.inner.len() {
                return Err(NotATree::Circle(start));
            }
        }
        Ok(tree)
    }

    /// The lowest tree in which each inner node has at most `width` children, over so many
    /// repositories; the homes of inner nodes go round `homes`. The root is the last one.
    ///
    /// # Errors
    /// A width below 2, or no repository or home.
    pub fn balanced(
        repositories: usize,
        width: usize,
        homes: &[NodeId],
    ) -> Result<Hierarchy, NotATree> {
        if width < 2 {
            return Err(NotATree::Width(width));
        }
        if repositories == 0 || homes.is_empty() {
            return Err(NotATree::Roots(0));
        }
        let above = (0..repositories).map(|it| (it / width) as u16).collect();
        let (mut inner, mut level) = (Vec::new(), repositories.div_ceil(width));
        loop {
            let first_above = inner.len() + level;
            let parent = |at: usize| (level > 1).then(|| (first_above + at / width) as u16);
            let new = |at| {
                let home = homes[(inner.len() + at) % homes.len()];
                InnerNode::new(home, parent(at))
            };
            let made: Vec<_> = (0..level).map(new).collect();
            inner.extend(made);
            if level == 1 {
                return Hierarchy::new(inner, above);
            }
            level = level.div_ceil(width);
        }
    }

    /// How many repositories it has as leaves.
    pub fn leaves(&self) -> usize {
        self.above.len()
    }

    /// How many inner nodes it has.
    pub fn inner_nodes(&self) -> u16 {
        self.inner.len() as u16
    }

    /// Where the validators of an inner node live.
    pub fn homes(&self, inner: u16) -> &[NodeId] {
        &self.inner[usize::from(inner)].homes
    }

    /// How many validators there are.
    pub fn validators(&self) -> u16 {
        let last = self.inner.len() - 1;
        self.first[last] + self.inner[last].homes.len() as u16
    }

    /// The number of the validator of an inner node that works for this share of the transactions,
    /// counted from 0.
    pub fn validator(&self, inner: u16, share: u16) -> u16 {
        assert!(usize::from(share) < self.homes(inner).len(), "share {share} of {inner}");
        self.first[usize::from(inner)] + share
    }

    /// The inner node of a validator, and for which share of the transactions that works; `None`:
    /// there is no such validator.
    pub fn inner_of(&self, validator: u16) -> Option<(u16, u16)> {
        if validator >= self.validators() {
            return None;
        }
        let inner = self.first.partition_point(|first| *first <= validator) - 1;
        let share = validator - self.first[inner];
        assert!(usize::from(share) < self.inner[inner].homes.len(), "validator {validator}");
        Some((inner as u16, share))
    }

    /// The validators that live on `node`, by their numbers.
    pub fn living_on(&self, node: NodeId) -> impl Iterator<Item = u16> + '_ {
        let homes = (0..).zip(self.inner.iter().flat_map(|it| &it.homes));
        homes.filter(move |(_, home)| **home == node).map(|(number, _)| number)
    }

    /// The nodes on which validators live, in the order of their names.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut all: Vec<_> = self.inner.iter().flat_map(|it| it.homes.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The inner node above another one; `None`: that is the root.
    pub fn parent(&self, inner: u16) -> Option<u16> {
        self.inner[usize::from(inner)].parent
    }

    /// The inner node above a repository.
    pub fn above(&self, repository: RepositoryId) -> u16 {
        self.above[usize::from(repository.0)]
    }

    /// An inner node and those above it, up to the root.
    pub fn path(&self, inner: u16) -> impl Iterator<Item = u16> + '_ {
        std::iter::successors(Some(inner), |it| self.parent(*it))
    }

    /// Whether a repository is below an inner node.
    pub fn covers(&self, inner: u16, repository: RepositoryId) -> bool {
        self.path(self.above(repository)).any(|it| it == inner)
    }

    /// The lowest inner node that [covers](Self::covers) all of these; `None`: there are none.
    pub fn lowest_above(&self, repositories: &[RepositoryId]) -> Option<u16> {
        let (first, others) = repositories.split_first()?;
        let covers_all = |inner: &u16| others.iter().all(|it| self.covers(*inner, *it));
        self.path(self.above(*first)).find(covers_all)
    }
}

/// The number of the first validator of each inner node.
fn numbered(inner: &[InnerNode]) -> Result<Vec<u16>, NotATree> {
    if let Some(bare) = inner.iter().position(|it| it.homes.is_empty()) {
        return Err(NotATree::NoValidator(bare as u16));
    }
    let validators: usize = inner.iter().map(|it| it.homes.len()).sum();
    if validators > usize::from(SERVICES_MAX) {
        return Err(NotATree::Validators(validators));
    }
    let first = inner.iter().scan(0, |next, it| {
        let first = *next;
        *next += it.homes.len() as u16;
        Some(first)
    });
    Ok(first.collect())
}

/// On one line, from the root down: the nodes where validators live, and what is below in
/// parentheses, repositories as `r` and their number.
impl fmt::Display for Hierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = (0..self.inner_nodes()).find(|it| self.parent(*it).is_none());
        self.write_below(root.expect("a tree has a root"), f)
    }
}

impl Hierarchy {
    fn write_below(&self, inner: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let homes: Vec<_> = self.homes(inner).iter().map(|home| home.0.to_string()).collect();
        write!(f, "{}(", homes.join("+"))?;
        let mut gap = "";
        for child in (0..self.inner_nodes()).filter(|it| self.parent(*it) == Some(inner)) {
            f.write_str(std::mem::replace(&mut gap, " "))?;
            self.write_below(child, f)?;
        }
        for (leaf, _) in self.above.iter().enumerate().filter(|(_, above)| **above == inner) {
            write!(f, "{}r{leaf}", std::mem::replace(&mut gap, " "))?;
        }
        f.write_str(")")
    }
}

impl Wire for Hierarchy {
    const LEAST_BYTES: usize = 2 * u32::LEAST_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        self.inner.encode(out);
        self.above.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Hierarchy, WireError> {
        let at = input.position();
        let (inner, above) = (Wire::decode(input)?, Wire::decode(input)?);
        Hierarchy::new(inner, above).map_err(|_| WireError::no_variant("tree", at, 0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOMES: [NodeId; 3] = [NodeId(5), NodeId(6), NodeId(7)];

    #[test]
    fn paths_meet_at_the_lowest_inner_node_above_all() {
        let tree = Hierarchy::balanced(4, 2, &HOMES).unwrap();
        assert_eq!((tree.inner_nodes(), tree.leaves()), (3, 4));
        let lowest = |all: &[u16]| {
            let all: Vec<_> = all.iter().copied().map(RepositoryId).collect();
            tree.lowest_above(&all)
        };
        assert_eq!((lowest(&[0, 1]), lowest(&[3, 2]), lowest(&[1])), (Some(0), Some(1), Some(0)));
        assert_eq!((lowest(&[1, 2]), lowest(&[])), (Some(2), None));
        assert!(tree.covers(1, RepositoryId(2)) && !tree.covers(0, RepositoryId(2)));
        assert_eq!(tree.path(0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(tree.living_on(NodeId(6)).collect::<Vec<_>>(), [1]);
        assert_eq!(tree.to_string(), "7(5(r0 r1) 6(r2 r3))");
        let mut bytes = Vec::new();
        tree.encode(&mut bytes);
        assert_eq!(Hierarchy::decode_all(&bytes), Ok(tree));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let node = |parent| InnerNode::new(NodeId(0), parent);
        let new = |inner: &[Option<u16>], above: &[u16]| {
            Hierarchy::new(inner.iter().copied().map(node).collect(), above.to_vec()).err()
        };
        assert_eq!(new(&[], &[]), Some(NotATree::Roots(0)));
        assert_eq!(new(&[None, None], &[0]), Some(NotATree::Roots(2)));
        assert_eq!(new(&[None], &[1]), Some(NotATree::Unknown(1)));
        assert_eq!(new(&[None, Some(2), Some(1)], &[0]), Some(NotATree::Circle(1)));
        let validators = |count| {
            let homes = vec![NodeId(0); count];
            Hierarchy::new(vec![InnerNode { homes, parent: None }], vec![0]).err()
        };
        assert_eq!(validators(0), Some(NotATree::NoValidator(0)));
        assert_eq!(validators(4_096), None);
        assert_eq!(validators(4_097), Some(NotATree::Validators(4_097)));
        let wide = |count: usize| new(&[&[None], &vec![Some(0); count][..]].concat(), &[0]);
        assert_eq!((wide(1_023), wide(1_024)), (None, Some(NotATree::InnerNodes(1_025))));
        assert_eq!(Hierarchy::balanced(4, 1, &HOMES).err(), Some(NotATree::Width(1)));
        assert_eq!(Hierarchy::balanced(0, 2, &HOMES).err(), Some(NotATree::Roots(0)));
    }

    #[test]
    fn validators_are_counted_through_the_inner_nodes() {
        let inner = |homes: &[NodeId], parent| InnerNode { homes: homes.to_vec(), parent };
        let all = vec![inner(&HOMES, None), inner(&HOMES[..1], Some(0)), inner(&HOMES, Some(0))];
        let tree = Hierarchy::new(all, vec![1, 2]).unwrap();
        assert_eq!((tree.inner_nodes(), tree.validators()), (3, 7));
        let places: Vec<_> = (0..8).map(|it| tree.inner_of(it)).collect();
        let expected = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2)];
        assert_eq!(places, expected.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
        for (number, (inner, share)) in (0..).zip(expected) {
            assert_eq!(tree.validator(inner, share), number);
        }
        assert_eq!(tree.living_on(NodeId(5)).collect::<Vec<_>>(), [0, 3, 4]);
        assert_eq!((tree.homes(2), tree.nodes()), (&HOMES[..], HOMES.to_vec()));
        assert_eq!(tree.to_string(), "5+6+7(5(r0) 5+6+7(r1))");
    }

    proptest! {
        #[test]
        fn the_root_of_a_balanced_tree_covers_all(count in 1usize..40, width in 2usize..6) {
            let tree = Hierarchy::balanced(count, width, &HOMES).unwrap();
            let root = tree.inner_nodes() - 1;
            prop_assert_eq!(tree.parent(root), None);
            let all: Vec<_> = (0..count as u16).map(RepositoryId).collect();
            prop_assert!(all.iter().all(|it| tree.covers(root, *it)));
            for inner in 0..tree.inner_nodes() {
                let nodes = (0..tree.inner_nodes()).filter(|it| tree.parent(*it) == Some(inner));
                let leaves = all.iter().filter(|it| tree.above(**it) == inner).count();
                prop_assert!((1..=width).contains(&(nodes.count() + leaves)));
            }
        }
    }
}
