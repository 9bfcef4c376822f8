//! Which way links go in the tree of validators, as the catalog has it.

use super::Node;
use crate::batching::LinkClass;
use crate::catalog::Catalog;
use crate::contract::Protocol;
use crate::ids::{NodeId, RepositoryId};
use crate::roles::ServiceKind;

impl<P: Protocol> Node<P> {
    /// Of which class the link to another node is. Where each of the two has a validator above
    /// something of the other's, it goes up.
    pub fn link_class(&self, other: NodeId) -> LinkClass {
        if self.is_above(other, self.id) {
            LinkClass::Up
        } else if self.is_above(self.id, other) {
            LinkClass::Down
        } else {
            LinkClass::Other
        }
    }

    /// Whether a validator on `upper` is above a repository or a validator on `lower`.
    fn is_above(&self, upper: NodeId, lower: NodeId) -> bool {
        let catalog = &*self.catalog;
        let above = self.validators_on(upper);
        if above.is_empty() || upper == lower {
            return false;
        }
        let repositories = (0..catalog.repositories() as u16).map(RepositoryId);
        let mut leaves = repositories.filter(|&it| catalog.home(it) == lower);
        let below = self.validators_on(lower);
        leaves.any(|leaf| above.iter().any(|&inner| covers(catalog, inner, leaf)))
            || below.iter().any(|&it| above.iter().any(|&inner| is_ancestor(catalog, inner, it)))
    }

    /// The inner nodes of the tree of which a validator lives on `node`; none under protocols that
    /// have no validators. Without a tree a validator is the root's, which counts as 0.
    fn validators_on(&self, node: NodeId) -> Vec<u16> {
        let services = P::services(&self.switches, node, &self.catalog);
        let validators = services.iter().filter(|it| it.kind() == ServiceKind::Validator);
        let inner = |number| match &self.catalog.hierarchy {
            Some(tree) => tree.inner_of(number).map(|(inner, _)| inner),
            None => Some(0),
        };
        validators.filter_map(|it| inner(it.number())).collect()
    }
}

/// Whether a repository is below an inner node. Without a tree there is a root above all. Where
/// several repositories are one leaf, as the members of a group are, their numbers follow each
/// other.
fn covers(catalog: &Catalog, inner: u16, repository: RepositoryId) -> bool {
    let Some(tree) = &catalog.hierarchy else { return true };
    let of_each = (catalog.repositories() / tree.leaves().max(1)).max(1);
    let leaf = usize::from(repository.0) / of_each;
    leaf < tree.leaves() && tree.covers(inner, RepositoryId(leaf as u16))
}

/// Whether an inner node is above another one.
fn is_ancestor(catalog: &Catalog, inner: u16, below: u16) -> bool {
    let tree = catalog.hierarchy.as_ref().filter(|tree| below < tree.inner_nodes());
    tree.is_some_and(|tree| tree.path(below).skip(1).any(|it| it == inner))
}
