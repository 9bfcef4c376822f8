//! The tree that votes climb.
//!
//! An inner node may have several validators, each for a share of the transactions. Which one it is
//! follows from the transaction's id, so all participants and the validators below vote to the same
//! one, without a word about it. Validators are counted through the inner nodes
//! ([`Hierarchy`](muesli_core::catalog::Hierarchy)); a service's number is that number.

use muesli_core::{Address, Catalog, NodeId, RepositoryId, ServiceId, ServiceKind, TxnId};

/// The validator of this number.
pub(in crate::two_phase) fn validator(number: u16) -> ServiceId {
    ServiceId::new(ServiceKind::Validator, number)
}

/// The tree of a catalog. Where it has none, there is a root above all repositories, which lives
/// where the first repository does.
#[derive(Clone, Copy, Debug)]
pub(in crate::two_phase) struct Tree<'a>(&'a Catalog);

impl<'a> Tree<'a> {
    /// That of this catalog.
    pub fn of(catalog: &'a Catalog) -> Tree<'a> {
        Tree(catalog)
    }

    /// The validators that live on `node`.
    pub fn living_on(self, node: NodeId) -> Vec<ServiceId> {
        match &self.0.hierarchy {
            Some(tree) => tree.living_on(node).map(validator).collect(),
            None => [validator(0)].into_iter().filter(|_| self.root() == node).collect(),
        }
    }

    fn root(self) -> NodeId {
        self.0.home(RepositoryId(0))
    }

    /// The inner node above a repository.
    pub fn above(self, repository: RepositoryId) -> u16 {
        self.0.hierarchy.as_ref().map_or(0, |tree| tree.above(repository))
    }

    /// The inner node above another one; `None`: that is the root.
    pub fn parent(self, inner: u16) -> Option<u16> {
        self.0.hierarchy.as_ref().and_then(|tree| tree.parent(inner))
    }

    /// The child of an inner node that a repository is below; `None`: it hangs from that inner node
    /// itself, or is not below it.
    pub fn child_above(self, inner: u16, repository: RepositoryId) -> Option<u16> {
        let tree = self.0.hierarchy.as_ref()?;
        tree.path(tree.above(repository)).find(|it| tree.parent(*it) == Some(inner))
    }

    /// The lowest inner node that is above all of these.
    pub fn lowest_above(self, repositories: &[RepositoryId]) -> u16 {
        assert!(!repositories.is_empty(), "who is above nobody");
        self.0.hierarchy.as_ref().and_then(|tree| tree.lowest_above(repositories)).unwrap_or(0)
    }

    /// An inner node and those above it, up to and with another one.
    pub fn path_to(self, inner: u16, last: u16) -> Vec<u16> {
        let Some(tree) = &self.0.hierarchy else { return vec![inner] };
        let mut path: Vec<u16> = tree.path(inner).take_while(|it| *it != last).collect();
        path.push(last);
        path
    }

    /// Whether an inner node is somewhere above another one.
    pub fn is_ancestor(self, inner: u16, below: u16) -> bool {
        let tree = self.0.hierarchy.as_ref();
        tree.is_some_and(|tree| tree.path(below).skip(1).any(|it| it == inner))
    }

    /// Whether a repository is below an inner node.
    pub fn covers(self, inner: u16, repository: RepositoryId) -> bool {
        self.0.hierarchy.as_ref().is_none_or(|tree| tree.covers(inner, repository))
    }

    /// Where the validator of an inner node is reached that works for this transaction.
    pub fn address(self, inner: u16, txn: TxnId) -> Address {
        match &self.0.hierarchy {
            Some(tree) => {
                let homes = tree.homes(inner);
                let share = share(txn, homes.len());
                let number = tree.validator(inner, share);
                Address::service(homes[usize::from(share)], validator(number))
            }
            None => Address::service(self.root(), validator(0)),
        }
    }

    /// The inner node of the validator of this number, if that works for this transaction.
    pub fn inner_for(self, number: u16, txn: TxnId) -> Option<u16> {
        let Some(tree) = &self.0.hierarchy else { return (number == 0).then_some(0) };
        let (inner, mine) = tree.inner_of(number)?;
        (share(txn, tree.homes(inner).len()) == mine).then_some(inner)
    }
}

/// Which of so many validators of an inner node works for a transaction. Coordinators that commit
/// by any pattern deal their transactions evenly.
fn share(txn: TxnId, validators: usize) -> u16 {
    assert!((1..=usize::from(u16::MAX)).contains(&validators), "{txn} has {validators} validators");
    let id = txn.sequence.wrapping_add((u64::from(txn.node.0) << 32) | u64::from(txn.incarnation));
    let mixed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((mixed * validators as u64) >> 32) as u16
}

#[cfg(test)]
mod tests {
    use muesli_core::catalog::{Hierarchy, InnerNode};

    use super::*;

    fn catalog() -> Catalog {
        let homes = [0, 1].map(NodeId);
        let inner = |homes: &[u32], parent| InnerNode {
            homes: homes.iter().copied().map(NodeId).collect(),
            parent,
        };
        let tree = vec![inner(&[2, 3, 4], None), inner(&[0], Some(0)), inner(&[1, 3], Some(0))];
        let tree = Hierarchy::new(tree, vec![1, 2]).expect("a tree");
        let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog");
        catalog.with_hierarchy(tree).expect("a leaf for each repository")
    }

    #[test]
    fn everybody_finds_the_same_validator_of_a_transaction() {
        let catalog = catalog();
        let tree = Tree::of(&catalog);
        let nodes: Vec<_> = (0..5).map(NodeId).collect();
        for sequence in 1..100 {
            let txn = TxnId { node: NodeId(7), incarnation: 3, sequence };
            for inner in 0..3 {
                let address = tree.address(inner, txn);
                let working = |node: &NodeId| {
                    let here = tree.living_on(*node).into_iter();
                    let mine = here.filter(|it| tree.inner_for(it.number(), txn) == Some(inner));
                    mine.map(|it| Address::service(*node, it)).collect::<Vec<_>>()
                };
                assert_eq!(nodes.iter().flat_map(working).collect::<Vec<_>>(), [address]);
            }
        }
        assert_eq!(tree.inner_for(6, TxnId::default()), None, "there is no such validator");
    }

    #[test]
    fn a_way_down_begins_with_the_child_above_a_repository() {
        let catalog = catalog();
        let (tree, leaves) = (Tree::of(&catalog), [0, 1].map(RepositoryId));
        assert_eq!(leaves.map(|it| tree.child_above(0, it)), [Some(1), Some(2)]);
        assert_eq!(leaves.map(|it| tree.child_above(1, it)), [None, None], "right below, or not");
        assert_eq!((tree.lowest_above(&leaves), tree.lowest_above(&leaves[1..])), (0, 2));
        assert!(tree.is_ancestor(0, 2) && !tree.is_ancestor(2, 0) && !tree.is_ancestor(0, 0));
    }

    #[test]
    #[should_panic(expected = "who is above nobody")]
    fn nobody_has_no_inner_node_above() {
        Tree::of(&catalog()).lowest_above(&[]);
    }

    #[test]
    fn validators_have_even_shares_whatever_the_pattern() {
        for (validators, step) in [(2, 1), (2, 2), (3, 1), (4, 4), (8, 10)] {
            let mut shares = vec![0_u32; validators];
            for at in 0..8_000 {
                let txn = TxnId { node: NodeId(1 << 31), incarnation: 5, sequence: 1 + at * step };
                shares[usize::from(share(txn, validators))] += 1;
            }
            let even = 8_000 / validators as u32;
            let fits = |it: &u32| (even * 9 / 10..=even * 11 / 10).contains(it);
            assert!(shares.iter().all(fits), "{validators} by {step}: {shares:?}");
        }
    }
}
