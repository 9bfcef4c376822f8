//! The tree that votes climb.

use muesli_core::{Address, Catalog, NodeId, RepositoryId, ServiceId, ServiceKind};

/// The validator of an inner node of the tree.
pub(in crate::two_phase) fn validator(inner: u16) -> ServiceId {
    ServiceId::new(ServiceKind::Validator, inner)
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

    /// The inner nodes whose validators live on `node`.
    pub fn living_on(self, node: NodeId) -> Vec<ServiceId> {
        match &self.0.hierarchy {
            Some(tree) => tree.living_on(node).map(validator).collect(),
            None => [validator(0)].into_iter().filter(|_| self.home(0) == node).collect(),
        }
    }

    fn home(self, inner: u16) -> NodeId {
        match &self.0.hierarchy {
            Some(tree) => tree.home(inner),
            None => self.0.home(RepositoryId(0)),
        }
    }

    /// The validator above a repository.
    pub fn above(self, repository: RepositoryId) -> u16 {
        self.0.hierarchy.as_ref().map_or(0, |tree| tree.above(repository))
    }

    /// The validator above an inner node; `None`: that is the root.
    pub fn parent(self, inner: u16) -> Option<u16> {
        self.0.hierarchy.as_ref().and_then(|tree| tree.parent(inner))
    }

    /// Whether a repository is below an inner node.
    pub fn covers(self, inner: u16, repository: RepositoryId) -> bool {
        self.0.hierarchy.as_ref().is_none_or(|tree| tree.covers(inner, repository))
    }

    /// Where the validator of an inner node is reached.
    pub fn address(self, inner: u16) -> Address {
        Address::service(self.home(inner), validator(inner))
    }
}
