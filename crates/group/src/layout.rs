//! Groups in a catalog: which repositories are the members of which group.
//!
//! A group has [`PLACES`] places, and a member in some of them. The catalog has a repository for
//! each place; one without a member lives [nowhere](NodeId::NOWHERE). So a group may grow and
//! shrink while every member keeps its number.
//!
//! The protocol inside sees a catalog with one repository a group, at the home of its first member;
//! that home is only a name, for who leads is found out.

use std::sync::Arc;

use muesli_core::catalog::{CatalogError, Hierarchy, NotATree, TreeError, TreePlan};
use muesli_core::ids::REPOSITORIES_MAX;
use muesli_core::{Address, Catalog, NodeId, RepositoryId, Role};
use thiserror::Error;

/// How many places a group has, and so the most members.
pub const PLACES: u16 = 9;
/// A group has at least so many members.
pub const LEAST: usize = 2;
/// So many groups are there at most: a catalog names all their places.
pub const GROUPS_MAX: u16 = REPOSITORIES_MAX as u16 / PLACES;

/// The member with this place of a group.
pub fn member(group: u16, place: u16) -> RepositoryId {
    RepositoryId(group * PLACES + place)
}

/// The group and the place of a member.
pub fn place(member: RepositoryId) -> (u16, u16) {
    (member.0 / PLACES, member.0 % PLACES)
}

/// How many groups a catalog has.
pub fn groups(catalog: &Catalog) -> u16 {
    (catalog.repositories() / usize::from(PLACES)) as u16
}

/// The places of a group that have a member, those that are to go included.
pub fn taken(catalog: &Catalog, group: u16) -> impl Iterator<Item = u16> + '_ {
    (0..PLACES).filter(move |&at| catalog.home(member(group, at)) != NodeId::NOWHERE)
}

/// The places of a group that are to have a member.
pub fn wanted(catalog: &Catalog, group: u16) -> Vec<u16> {
    taken(catalog, group).filter(|&at| !catalog.leaving.contains(&member(group, at))).collect()
}

/// The address of a member, if there is one.
pub fn address(catalog: &Catalog, group: u16, place: u16) -> Option<Address> {
    if place >= PLACES || group >= groups(catalog) {
        return None;
    }
    let repository = member(group, place);
    let home = catalog.home(repository);
    (home != NodeId::NOWHERE).then(|| Address::repository(home, repository))
}

/// Homes of `groups` groups of `size` members each over `nodes` nodes: member `m` of group `g`
/// lives on node `g + m`, round the ring, so that no node holds two of a group.
///
/// # Errors
/// There are fewer nodes than members in a group, more members than places, or too many groups.
pub fn homes(groups: u16, size: u16, nodes: u32) -> Result<Vec<NodeId>, Unfit> {
    if groups > GROUPS_MAX {
        return Err(Unfit::Groups(groups));
    }
    if size > PLACES {
        return Err(Unfit::Places(size));
    }
    if u32::from(size) > nodes {
        return Err(Unfit::Nodes { size, nodes });
    }
    let home = |group: u16, place: u16| match place < size {
        true => NodeId((u32::from(group) + u32::from(place)) % nodes),
        false => NodeId::NOWHERE,
    };
    let of = |group: u16| (0..PLACES).map(move |place| home(group, place));
    Ok((0..groups).flat_map(of).collect())
}

/// Groups that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// Groups do not fit on the nodes.
    #[error("groups of {size} on {nodes} nodes: each member needs a node of its own")]
    Nodes {
        /// How many members a group has.
        size: u16,
        /// How many nodes there are.
        nodes: u32,
    },
    /// Groups are too large.
    #[error("groups of {0}: a group has at most {PLACES} members")]
    Places(u16),
    /// There are too many groups.
    #[error("{0} groups, one for each repository: there must be 1 to {GROUPS_MAX}")]
    Groups(u16),
}

/// Whether a name in the inner catalog is one: that of a coordinator, or of a group that there is.
pub fn is_inner(address: Address, catalog: &Catalog) -> bool {
    match address.role {
        Role::Coordinator | Role::Service(_) => true,
        Role::Repository(group) => group.0 < groups(catalog),
    }
}

/// Whether this is a catalog of groups, each with enough members to be one.
pub fn is_sound(catalog: &Catalog) -> bool {
    let whole = catalog.repositories().is_multiple_of(usize::from(PLACES));
    whole && (0..groups(catalog)).all(|group| wanted(catalog, group).len() >= LEAST)
}

/// A catalog of groups with a tree above these.
///
/// # Errors
/// The tree has leaves for others.
pub fn with_hierarchy(outer: &Catalog, hierarchy: Hierarchy) -> Result<Catalog, NotATree> {
    let (leaves, repositories) = (hierarchy.leaves(), usize::from(groups(outer)));
    if leaves != repositories {
        return Err(NotATree::Leaves { leaves, repositories });
    }
    Ok(outer.clone().with_first_tree(hierarchy))
}

/// A catalog of groups with this tree over them: each group is below the inner node of the node
/// that it is [named](inner) by. Validators live on `apart`, or on those nodes.
///
/// # Errors
/// The tree does not fit the nodes.
pub fn with_tree(outer: &Catalog, plan: &TreePlan, apart: &[NodeId]) -> Result<Catalog, TreeError> {
    let tree = plan.over(&names(outer), apart, &outer.coordinators)?;
    Ok(with_hierarchy(outer, tree)?)
}

/// The node of each group's first member, by whose name the protocol inside knows the group.
fn names(outer: &Catalog) -> Vec<NodeId> {
    let name = |group| {
        let first = taken(outer, group).next().unwrap_or(0);
        outer.home(member(group, first))
    };
    (0..groups(outer)).map(name).collect()
}

/// The catalog as the protocol inside sees it.
///
/// # Panics
/// If there is [none](try_inner): drivers look before they take a catalog in.
pub fn inner(outer: &Catalog) -> Arc<Catalog> {
    Arc::new(try_inner(outer).expect("a grouped catalog fits its groups"))
}

/// The catalog as the protocol inside sees it.
///
/// # Errors
/// It has replicas or splits for more repositories than it has groups, or not even one group.
pub fn try_inner(outer: &Catalog) -> Result<Catalog, CatalogError> {
    let mut inner = Catalog::new(&names(outer), usize::from(outer.replicas), &outer.coordinators)?;
    inner = inner.with_partitions_per_repository(usize::from(outer.partitions_per_repository))?;
    inner.visiting_coordinators = outer.visiting_coordinators;
    inner = inner.with_masters(&outer.masters).without(&outer.left);
    inner = inner.with_sites(outer.sites.clone()).with_nearest_of(outer);
    (inner.hierarchy, inner.tree_epoch) = (outer.hierarchy.clone(), outer.tree_epoch);
    for space in outer.spaces() {
        inner = inner.with_space(&space.name, space.options.clone())?;
    }
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use muesli_core::catalog::TreeShape;

    use super::*;

    #[test]
    fn members_of_a_group_live_on_nodes_of_their_own() {
        let homes = homes(4, 3, 4).unwrap();
        let catalog = Catalog::new(&homes, 2, &[NodeId(0)]).unwrap();
        assert!(is_sound(&catalog));
        for group in 0..groups(&catalog) {
            assert_eq!(wanted(&catalog, group), [0, 1, 2]);
            let at = |it| address(&catalog, group, it).unwrap().node;
            let mut nodes: Vec<_> = (0..3).map(at).collect();
            nodes.dedup();
            assert_eq!(nodes.len(), 3);
            assert_eq!(address(&catalog, group, 3), None);
            assert_eq!(place(member(group, 2)), (group, 2));
        }
        assert_eq!(inner(&catalog).repositories(), 4);
        let homes: Vec<_> = (0..2).map(NodeId).collect();
        let tree = |leaves| Hierarchy::balanced(leaves, 2, &homes).unwrap();
        let above = with_hierarchy(&catalog, tree(4)).unwrap();
        assert_eq!(inner(&above).hierarchy.as_deref(), Some(&tree(4)));
        assert!(with_hierarchy(&catalog, tree(5)).is_err());
        let plan = TreePlan::from("2x2".parse::<TreeShape>().unwrap());
        let above = with_tree(&catalog, &plan, &[]).unwrap().hierarchy.unwrap();
        assert_eq!(above.to_string(), "0(0(r0 r1) 2(r2 r3))");
        assert_eq!(super::homes(4, 3, 2), Err(Unfit::Nodes { size: 3, nodes: 2 }));
        assert_eq!(super::homes(4, 10, 20), Err(Unfit::Places(10)));
        let most = super::homes(GROUPS_MAX, 3, 4).unwrap();
        assert!(Catalog::new(&most, 1, &[]).is_ok());
        assert_eq!(super::homes(GROUPS_MAX + 1, 3, 4), Err(Unfit::Groups(GROUPS_MAX + 1)));
    }

    #[test]
    fn groups_are_named_by_their_first_member_and_know_who_is_to_go() {
        let catalog = Catalog::new(&homes(1, 3, 3).unwrap(), 1, &[]).unwrap();
        let going = catalog.placed(2, &catalog.stays(), &[RepositoryId(0)]).unwrap();
        assert_eq!(wanted(&going, 0), [1, 2]);
        assert_eq!(inner(&going).homes[0], NodeId(0));
        let mut stays = going.stays();
        stays[0].0 = NodeId::NOWHERE;
        let gone = going.placed(3, &stays, &[]).unwrap();
        assert_eq!((inner(&gone).homes[0], is_sound(&gone)), (NodeId(1), true));
        assert!(!is_sound(&gone.placed(4, &stays, &[RepositoryId(1)]).unwrap()));
    }
}
