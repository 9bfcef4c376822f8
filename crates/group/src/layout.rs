//! Groups in a catalog: which repositories are the members of which group.
//!
//! A grouped database's catalog has `size` repositories a group, one a member. The protocol inside
//! sees a catalog with one repository a group, at the home of its first member; that home is only
//! a name, for who leads is found out.

use std::sync::Arc;

use muesli_core::catalog::CatalogError;
use muesli_core::{Address, Catalog, NodeId, RepositoryId, Role};
use thiserror::Error;

/// The member with this place of a group.
pub fn member(group: u16, place: u16, size: u16) -> RepositoryId {
    RepositoryId(group * size + place)
}

/// The group and the place of a member.
pub fn place(member: RepositoryId, size: u16) -> (u16, u16) {
    (member.0 / size, member.0 % size)
}

/// How many groups a catalog has.
pub fn groups(catalog: &Catalog, size: u16) -> u16 {
    (catalog.repositories() / usize::from(size)) as u16
}

/// The address of a member.
pub fn address(catalog: &Catalog, group: u16, place: u16, size: u16) -> Address {
    let repository = member(group, place, size);
    Address::repository(catalog.home(repository), repository)
}

/// Homes of the members of `groups` groups over `nodes` nodes: member `m` of group `g` lives on
/// node `g + m`, round the ring, so that no node holds two of a group.
///
/// # Errors
/// There are fewer nodes than members in a group.
pub fn homes(groups: u16, size: u16, nodes: u32) -> Result<Vec<NodeId>, TooFewNodes> {
    if u32::from(size) > nodes {
        return Err(TooFewNodes { size, nodes });
    }
    let of = |group: u16| (0..size).map(move |place| u32::from(group) + u32::from(place));
    Ok((0..groups).flat_map(of).map(|at| NodeId(at % nodes)).collect())
}

/// Groups do not fit on the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("groups of {size} on {nodes} nodes: each member needs a node of its own")]
pub struct TooFewNodes {
    /// How many members a group has.
    pub size: u16,
    /// How many nodes there are.
    pub nodes: u32,
}

/// Whether a name in the inner catalog is one: that of a coordinator, or of a group that there is.
pub fn is_inner(address: Address, catalog: &Catalog, size: u16) -> bool {
    match address.role {
        Role::Coordinator => true,
        Role::Repository(group) => group.0 < groups(catalog, size),
    }
}

/// The catalog as the protocol inside sees it.
///
/// # Panics
/// If there is [none](try_inner): drivers look before they take a catalog in.
pub fn inner(outer: &Catalog, size: u16) -> Arc<Catalog> {
    Arc::new(try_inner(outer, size).expect("a grouped catalog fits its groups"))
}

/// The catalog as the protocol inside sees it, if the outer one is of groups of this size.
///
/// # Errors
/// It has replicas or splits for more repositories than it has groups, or not even one group.
pub fn try_inner(outer: &Catalog, size: u16) -> Result<Catalog, CatalogError> {
    let groups = groups(outer, size);
    let homes: Vec<_> = (0..groups).map(|group| outer.home(member(group, 0, size))).collect();
    let mut inner = Catalog::new(&homes, usize::from(outer.replicas), &outer.coordinators)?;
    inner.visiting_coordinators = outer.visiting_coordinators;
    for space in outer.spaces() {
        inner = inner.with_space(&space.name, space.options.clone())?;
    }
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_group_live_on_nodes_of_their_own() {
        let homes = homes(4, 3, 4).unwrap();
        let catalog = Catalog::new(&homes, 2, &[NodeId(0)]).unwrap();
        for group in 0..groups(&catalog, 3) {
            let at = |it| address(&catalog, group, it, 3).node;
            let mut nodes: Vec<_> = (0..3).map(at).collect();
            nodes.dedup();
            assert_eq!(nodes.len(), 3);
            assert_eq!(place(member(group, 2, 3), 3), (group, 2));
        }
        assert_eq!(inner(&catalog, 3).repositories(), 4);
        assert!(super::homes(4, 3, 2).is_err());
    }
}
