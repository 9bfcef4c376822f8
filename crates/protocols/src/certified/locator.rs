//! Where transactions are run: all sites have all keys.

use muesli_core::{Catalog, NodeId, RepositoryId};

/// The sites as a node uses them: its own first, or the one that it is near to, then those where
/// that is, then the others, by their numbers.
pub(super) fn by_distance(
    node: NodeId,
    catalog: &Catalog,
) -> impl Iterator<Item = RepositoryId> + Clone {
    let (first, count) = (base(node, catalog), catalog.repositories() as u16);
    assert!(first.0 < count, "{first:?} of {count} sites");
    let all = (0..count).map(move |step| RepositoryId((first.0 + step) % count));
    let home = catalog.home(first);
    let is_close = move |site: &RepositoryId| are_colocated(*site, home, catalog);
    all.clone().filter(is_close).chain(all.filter(move |site| !is_close(site)))
}

/// The site that a node's transactions are run at: its own, or the nearest, or one where the node
/// is; among several one by the node's number.
fn base(node: NodeId, catalog: &Catalog) -> RepositoryId {
    let sites = || (0..catalog.repositories() as u16).map(RepositoryId);
    let of = |home: NodeId| sites().find(|site| catalog.home(*site) == home);
    let near = catalog.nearest(node).unwrap_or(node);
    if let Some(one) = of(node).or_else(|| of(near)) {
        return one;
    }
    let close = || sites().filter(|site| are_colocated(*site, near, catalog));
    let by_number = |count: usize| node.0 as usize % count;
    match close().count() {
        0 => RepositoryId(by_number(catalog.repositories()) as u16),
        count => close().nth(by_number(count)).expect("one of those that are close"),
    }
}

/// Whether a site is where a node is.
fn are_colocated(site: RepositoryId, node: NodeId, catalog: &Catalog) -> bool {
    catalog.sites.are_colocated(catalog.home(site), node)
}

#[cfg(test)]
mod tests {
    use muesli_core::catalog::Sites;

    use super::*;

    /// Data on nodes 0 to 3; nodes are at two sites in turn.
    fn catalog() -> Catalog {
        let homes: Vec<_> = (0..4).map(NodeId).collect();
        let catalog = Catalog::new(&homes, 1, &[]).unwrap();
        catalog.with_sites(Sites::round_robin(&["east", "west"], 8))
    }

    fn numbers(node: u32, catalog: &Catalog) -> Vec<u16> {
        by_distance(NodeId(node), catalog).map(|site| site.0).collect()
    }

    #[test]
    fn a_node_without_data_uses_what_is_where_it_is() {
        let catalog = catalog();
        assert_eq!(numbers(2, &catalog), [2, 0, 3, 1], "its own, then the other one there");
        assert_eq!(numbers(4, &catalog), [0, 2, 1, 3]);
        assert_eq!(numbers(5, &catalog), [3, 1, 0, 2]);
        assert_eq!(numbers(7, &catalog), [3, 1, 0, 2]);
        assert_eq!(numbers(9, &catalog), [1, 3, 2, 0], "it is at no site");
    }

    #[test]
    fn what_a_node_is_near_to_counts_before_its_own_site() {
        let near = [(NodeId(4), NodeId(1)), (NodeId(6), NodeId(5))];
        let catalog = catalog().with_nearest(&near);
        assert_eq!(numbers(4, &catalog), [1, 3, 2, 0]);
        assert_eq!(numbers(6, &catalog)[0], 1, "where the node is that it is near to");
    }
}
