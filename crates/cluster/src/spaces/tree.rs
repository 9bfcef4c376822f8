//! The tree on a map: above its repositories or groups, with validators on its servers.

use std::sync::Arc;

use muesli_core::catalog::{FIRST_TREE_EPOCH, Hierarchy, NotATree, TreePlan};
use muesli_core::{Catalog, NodeId};
use muesli_group::layout;

use crate::spaces::error::MapError;
use crate::spaces::map::Map;

impl Map {
    /// This map with a tree of the next epoch, `None` for none, over the nodes with data. The
    /// validators live on `apart`, or where data do if that is empty.
    ///
    /// # Errors
    /// The tree does not fit the servers, or they are none of the cluster's.
    pub fn with_next_tree(
        &self,
        tree: Option<&TreePlan>,
        apart: &[NodeId],
    ) -> Result<Map, MapError> {
        let catalog = Catalog::clone(&self.catalog);
        let there: Vec<_> = self.there().map(|(node, _)| *node).collect();
        let tree = match tree {
            None => None,
            Some(plan) if self.group > 1 => {
                Some(plan.over(&layout::inner(&catalog).homes, apart, &there)?)
            }
            Some(plan) => Some(plan.over(&catalog.homes, apart, &there)?),
        };
        self.with_catalog(Arc::new(catalog.with_next_tree(tree))).checked()
    }

    /// The tree as a text on one line, or that there is none.
    pub fn tree_text(&self) -> String {
        let tree = self.catalog.hierarchy.as_deref().map(Hierarchy::to_string);
        tree.map_or_else(|| "none".to_owned(), |tree| format!("`{tree}`"))
    }

    /// Whether this map and another one have trees as their servers were started with, and not the
    /// same.
    pub fn differs_in_tree(&self, other: &Map) -> bool {
        let (one, two) = (&self.catalog, &other.catalog);
        one.hierarchy != two.hierarchy && one.tree_epoch.max(two.tree_epoch) <= FIRST_TREE_EPOCH
    }

    /// Looks whether the tree is above the repositories, or above the groups, and its validators
    /// live on servers.
    pub(super) fn check_tree(&self) -> Result<(), MapError> {
        let Some(tree) = &self.catalog.hierarchy else { return Ok(()) };
        let repositories = match self.group > 1 {
            true => usize::from(layout::groups(&self.catalog)),
            false => self.catalog.repositories(),
        };
        if tree.leaves() != repositories {
            return Err(NotATree::Leaves { leaves: tree.leaves(), repositories }.into());
        }
        // A validator, as a member, may live on a server that joined, of which is heard next.
        let is_server = |node: &NodeId| self.servers.iter().any(|(server, _)| server == node);
        match tree.nodes().into_iter().find(|node| self.group <= 1 && !is_server(node)) {
            Some(stranger) => Err(MapError::Validator(stranger.0)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::catalog::TreeShape;

    use super::*;
    use crate::spaces::map::{Beside, Deal};
    use crate::spaces::parts::MapParts;

    fn servers(count: u32) -> Vec<(NodeId, String)> {
        (0..count).map(|node| (NodeId(node), format!("a:{node}"))).collect()
    }

    fn with_tree(shape: &str, count: u32, group: u16, apart: &[NodeId]) -> Result<Map, MapError> {
        let plan = TreePlan::from(shape.parse::<TreeShape>().unwrap());
        let deal = Deal { repositories: 4, group, ..Deal::default() };
        let beside = Beside { tree: Some(&plan), validators: apart, ..Beside::default() };
        Map::deal_beside(servers(count), deal, beside)
    }

    #[test]
    fn a_map_has_a_tree_over_its_servers_or_groups() {
        let map = with_tree("2x2", 4, 1, &[]).unwrap();
        assert_eq!(map.tree_text(), "`0(0(r0 r1) 2(r2 r3))`");
        assert_eq!(with_tree("2x2", 4, 3, &[]).unwrap().tree_text(), map.tree_text());
        let apart = with_tree("2x2", 6, 1, &[NodeId(4), NodeId(5)]).unwrap();
        assert_eq!(apart.tree_text(), "`4(5(r0 r1) 4(r2 r3))`");
        assert_eq!(with_tree("2x2", 4, 1, &[NodeId(4)]), Err(MapError::Validator(4)));
        let error = with_tree("2x2", 3, 1, &[]).unwrap_err().to_string();
        assert!(error.contains("has 4 leaves, and there are 3 nodes"), "{error}");
        let mut parts = MapParts::from(&map);
        parts.homes.pop();
        let leaves = NotATree::Leaves { leaves: 4, repositories: 3 };
        assert_eq!(Map::try_from(parts), Err(MapError::Leaves(leaves)));
    }

    #[test]
    fn trees_that_servers_were_started_with_are_the_same_and_newer_ones_are_kept() {
        let plain = Map::deal(servers(4), Deal { repositories: 4, ..Deal::default() }).unwrap();
        let map = with_tree("2x2", 4, 1, &[]).unwrap();
        let wide = with_tree("4", 4, 1, &[]).unwrap();
        assert_eq!(map.moved_to(&map), Some(map.clone()));
        assert_eq!((map.moved_to(&wide), map.moved_to(&plain)), (None, None));
        let text = map.differences(&wide).join("; ");
        let expected = "`tree` was `0(0(r0 r1) 2(r2 r3))` and is `0(r0 r1 r2 r3)`";
        assert!(text.contains(expected), "{text}");
        let plan = TreePlan::from("4".parse::<TreeShape>().unwrap());
        let changed = map.with_next_tree(Some(&plan), &[]).unwrap();
        assert_eq!(changed.catalog.tree_epoch, 2);
        assert_eq!(changed.moved_to(&map), Some(changed.clone()));
        assert_eq!(map.newest(&changed), Some(changed.clone()));
        assert_eq!(changed.newest(&map), None);
        let apart = map.with_next_tree(Some(&plan), &[NodeId(9)]);
        assert_eq!(apart, Err(MapError::Validator(9)));
    }
}
