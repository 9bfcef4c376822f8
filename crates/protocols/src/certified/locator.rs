//! Where transactions are run: all sites have all keys.

use muesli_core::{Catalog, NodeId, RepositoryId};

/// The site that a node's transactions are run at: its own, or the nearest, and among several one
/// by the node's number.
pub(super) fn base(node: NodeId, catalog: &Catalog) -> RepositoryId {
    let sites = || (0..catalog.repositories() as u16).map(RepositoryId);
    if let Some(own) = sites().find(|site| catalog.home(*site) == node) {
        return own;
    }
    let near = catalog.nearest(node);
    let nearest = sites().find(|site| near == Some(catalog.home(*site)));
    let by_number = || RepositoryId((node.0 as usize % catalog.repositories()) as u16);
    nearest.unwrap_or_else(by_number)
}
