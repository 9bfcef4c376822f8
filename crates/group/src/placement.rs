//! The row that says where members live, and the rules by which it changes.
//!
//! The row is in a space of the database itself ([`SPACE`], [`KEY`]). Whoever wants a change reads
//! it, asks a rule of this module for the next one, and writes that, in one transaction; then it
//! tells one node, any (`docs/inside/placement.md`). So changes follow each other whoever makes
//! them.

mod refused;

use muesli_core::{Catalog, NodeId, ReplicaRole, RepositoryId, wire_struct};

use crate::layout;

pub use refused::Refused;

/// The space that the row is in; databases of groups have it from their beginning.
pub const SPACE: &str = "muesli.placement";
/// The key of the row.
pub const KEY: &[u8] = b"members";

/// A placement of more epochs later than the one known here is nobody's: each is an
/// administrator's work.
pub const EPOCHS_AHEAD_MAX: u64 = 1 << 16;

/// The row. Before the first change there is none, and the first placement holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRow {
    /// The placement's epoch.
    pub epoch: u64,
    /// For each member its home, and since which epoch it lives there.
    pub homes: Vec<(NodeId, u64)>,
    /// Nodes that joined after the beginning, and where they listen; in the order of their names.
    pub joined: Vec<(NodeId, String)>,
    /// Nodes that have left for good; their names are not used again.
    pub left: Vec<NodeId>,
    /// Members that are to go; in the order of their numbers.
    pub leaving: Vec<RepositoryId>,
}

wire_struct!(PlacementRow {
    epoch: u64,
    homes: Vec<(NodeId, u64)>,
    joined: Vec<(NodeId, String)>,
    left: Vec<NodeId>,
    leaving: Vec<RepositoryId>,
});

/// What a cluster keeps for ever.
///
/// A *server* is a process; each of its loops is a node. The nodes of a server are lost together,
/// so no two of them may hold members of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many members a group had at first.
    pub group: u16,
    /// How many nodes a server has, one after the other.
    pub loops: u16,
}

impl Shape {
    fn nodes_a_server(self) -> u32 {
        u32::from(self.loops.max(1))
    }

    /// The server that a node belongs to.
    pub fn server(self, node: NodeId) -> u32 {
        node.0 / self.nodes_a_server()
    }

    /// The nodes of a server.
    pub fn nodes(self, server: u32) -> impl Iterator<Item = NodeId> + use<> {
        let loops = self.nodes_a_server();
        (0..loops).map(move |number| NodeId(server.saturating_mul(loops).saturating_add(number)))
    }
}

impl PlacementRow {
    /// The row that says what a catalog says, where nobody has joined.
    pub fn of(catalog: &Catalog) -> PlacementRow {
        let (joined, left, leaving) = (Vec::new(), Vec::new(), catalog.leaving.to_vec());
        PlacementRow { epoch: catalog.placement, homes: catalog.stays(), joined, left, leaving }
    }

    fn next_epoch(&self) -> Result<u64, Refused> {
        self.epoch.checked_add(1).ok_or(Refused::LastEpoch)
    }

    /// Where a member lives.
    ///
    /// # Errors
    /// There is no such member.
    pub fn home(&self, member: RepositoryId) -> Result<NodeId, Refused> {
        let found = self.homes.get(usize::from(member.0)).map(|(home, _)| *home);
        let found = found.filter(|home| *home != NodeId::NOWHERE);
        found.ok_or(Refused::NoMember { member: member.0 })
    }

    /// The members of a group, those that are to go included.
    pub fn members(&self, group: u16) -> impl Iterator<Item = RepositoryId> + '_ {
        let places = (0..layout::PLACES).map(move |place| layout::member(group, place));
        places.filter(|member| self.home(*member).is_ok())
    }

    /// Those of them that are to stay.
    fn staying(&self, group: u16) -> impl Iterator<Item = RepositoryId> + '_ {
        self.members(group).filter(|member| !self.leaving.contains(member))
    }

    /// The other members of a member's group, those that are to go included.
    pub fn others(&self, member: RepositoryId) -> impl Iterator<Item = RepositoryId> + '_ {
        let (group, _) = layout::place(member);
        self.members(group).filter(move |other| *other != member)
    }

    /// Whether a member is the last of its group to have come where it lives, and nobody is to go:
    /// whatever its group has not come through yet is its coming.
    fn is_last_to_come(&self, member: RepositoryId) -> bool {
        let since = |it: RepositoryId| self.homes.get(usize::from(it.0)).map(|(_, since)| *since);
        let (group, _) = layout::place(member);
        let is_going = self.members(group).any(|it| self.leaving.contains(&it));
        !is_going && self.others(member).all(|other| since(other) < since(member))
    }

    /// The next row, in which a member lives on another node. `role` knows of every member the post
    /// that its node says it has, if the node answers and goes by *this* row.
    ///
    /// The member itself need not take part: a node that is lost for good is left in this way, and
    /// one that is under way may be sent elsewhere, because whoever takes a member in asks all
    /// others of its group, who listen to its earlier homes no more. So may one that is new, before
    /// its group has taken it in.
    ///
    /// # Errors
    /// The rules say no.
    pub fn moved(
        &self,
        member: RepositoryId,
        to: NodeId,
        shape: Shape,
        role: impl Fn(RepositoryId) -> Option<ReplicaRole>,
    ) -> Result<PlacementRow, Refused> {
        if self.home(member)? == to {
            return Err(Refused::There { member: member.0, node: to });
        }
        if self.left.contains(&to) {
            return Err(Refused::Left { node: to });
        }
        if self.leaving.contains(&member) {
            return Err(Refused::Leaving { member: member.0 });
        }
        let is_enough = self.through_or_waiting_for(member);
        for other in self.others(member) {
            self.has_capacity(other, to, shape)?;
            // Who is to go does not vote any more where all others take part.
            if !role(other).is_some_and(is_enough) && !self.leaving.contains(&other) {
                return Err(Refused::UnderWay { other: other.0 });
            }
        }
        let mut next = PlacementRow { epoch: self.next_epoch()?, ..self.clone() };
        next.homes[usize::from(member.0)] = (to, next.epoch);
        Ok(next)
    }

    /// Whether a node may hold another member of the group of `other`.
    fn has_capacity(&self, other: RepositoryId, to: NodeId, shape: Shape) -> Result<(), Refused> {
        let there = self.home(other)?;
        if there == to {
            return Err(Refused::Taken { other: other.0, node: to });
        }
        if shape.server(there) == shape.server(to) {
            return Err(Refused::SameServer { other: other.0, there, node: to });
        }
        Ok(())
    }

    /// Which roles of others allow a change of this member: those of whoever has come
    /// through the last change; or, if that was its own coming, of whoever votes.
    fn through_or_waiting_for(&self, member: RepositoryId) -> fn(ReplicaRole) -> bool {
        if self.is_last_to_come(member) { ReplicaRole::votes } else { ReplicaRole::takes_part }
    }

    /// Whether a majority of these has such roles: then the group has begun, and is able to
    /// make another change.
    fn majority(
        &self,
        group: u16,
        members: &[RepositoryId],
        has: impl Fn(RepositoryId) -> bool,
    ) -> Result<(), Refused> {
        let now = members.iter().filter(|member| has(**member)).count();
        if now <= members.len() / 2 {
            return Err(Refused::TooFew { group, now });
        }
        Ok(())
    }

    fn check_group(&self, group: u16) -> Result<(), Refused> {
        let groups = (self.homes.len() / usize::from(layout::PLACES)) as u16;
        if group >= groups {
            return Err(Refused::NoGroup { group, groups });
        }
        Ok(())
    }

    /// The next row, in which a group has one more member, on `to`, and which member that is.
    /// `role` as in [`moved`](Self::moved).
    ///
    /// # Errors
    /// The rules say no.
    pub fn grown(
        &self,
        group: u16,
        to: NodeId,
        shape: Shape,
        role: impl Fn(RepositoryId) -> Option<ReplicaRole>,
    ) -> Result<(PlacementRow, RepositoryId), Refused> {
        self.check_group(group)?;
        if self.left.contains(&to) {
            return Err(Refused::Left { node: to });
        }
        for other in self.members(group) {
            self.has_capacity(other, to, shape)?;
            if self.leaving.contains(&other) {
                return Err(Refused::Leaving { member: other.0 });
            }
        }
        let mut free = (0..layout::PLACES).map(|place| layout::member(group, place));
        let free = free.find(|member| self.home(*member).is_err());
        let Some(member) = free else { return Err(Refused::Full { group }) };
        let takes_part = |it| role(it).is_some_and(ReplicaRole::takes_part);
        self.majority(group, &self.members(group).collect::<Vec<_>>(), takes_part)?;
        let mut next = PlacementRow { epoch: self.next_epoch()?, ..self.clone() };
        next.homes[usize::from(member.0)] = (to, next.epoch);
        Ok((next, member))
    }

    /// The member of a group that lives on a node.
    ///
    /// # Errors
    /// There is no such group, or none of its members lives there.
    pub fn member_on(&self, group: u16, node: NodeId) -> Result<RepositoryId, Refused> {
        self.check_group(group)?;
        let found = self.members(group).find(|member| self.home(*member) == Ok(node));
        found.ok_or(Refused::NotThere { group, node })
    }

    /// The next row, in which a member of a group is to go, alive or lost. The same row, if it is
    /// to go already. One that is new may go before its group has taken it in.
    ///
    /// # Errors
    /// The rules say no.
    pub fn shrinking(
        &self,
        member: RepositoryId,
        role: impl Fn(RepositoryId) -> Option<ReplicaRole>,
    ) -> Result<PlacementRow, Refused> {
        self.home(member)?;
        if self.leaving.contains(&member) {
            return Ok(self.clone());
        }
        let (group, _) = layout::place(member);
        let rest: Vec<_> = self.staying(group).filter(|other| *other != member).collect();
        if rest.len() < layout::LEAST {
            return Err(Refused::Least { group });
        }
        let is_enough = self.through_or_waiting_for(member);
        self.majority(group, &rest, |it| role(it).is_some_and(is_enough))?;
        let mut next = PlacementRow { epoch: self.next_epoch()?, ..self.clone() };
        next.leaving.push(member);
        next.leaving.sort_unstable();
        Ok(next)
    }

    /// The next row, in which a member that was to go is gone. A majority of the others takes part
    /// without it, so nobody needs what it knows to learn how the group went on.
    ///
    /// # Errors
    /// The rules say no.
    pub fn shrunk(
        &self,
        member: RepositoryId,
        role: impl Fn(RepositoryId) -> Option<ReplicaRole>,
    ) -> Result<PlacementRow, Refused> {
        self.home(member)?;
        if !self.leaving.contains(&member) {
            return Err(Refused::Stays { member: member.0 });
        }
        let (group, _) = layout::place(member);
        let takes_part = |it| role(it).is_some_and(ReplicaRole::takes_part);
        self.majority(group, &self.staying(group).collect::<Vec<_>>(), takes_part)?;
        let mut next = PlacementRow { epoch: self.next_epoch()?, ..self.clone() };
        next.leaving.retain(|it| *it != member);
        next.homes[usize::from(member.0)] = (NodeId::NOWHERE, next.epoch);
        Ok(next)
    }

    /// The next row, in which a server has joined whose nodes are reached at `addresses`, where
    /// there are `nodes` so far, those that joined and those that left included.
    ///
    /// # Errors
    /// It is not the next one.
    pub fn with_server(
        &self,
        server: u32,
        addresses: &[String],
        nodes: usize,
        shape: Shape,
    ) -> Result<PlacementRow, Refused> {
        let next = shape.server(NodeId(nodes as u32));
        if server != next {
            return Err(Refused::NotNext { server, next });
        }
        let mut row = PlacementRow { epoch: self.next_epoch()?, ..self.clone() };
        row.joined.extend(shape.nodes(server).zip(addresses.iter().cloned()));
        Ok(row)
    }

    /// The next row, in which a server has left for good.
    ///
    /// # Errors
    /// It has left already, or members live there.
    pub fn without_server(&self, server: u32, shape: Shape) -> Result<PlacementRow, Refused> {
        let nodes: Vec<_> = shape.nodes(server).collect();
        if let Some(&node) = nodes.iter().find(|node| self.left.contains(node)) {
            return Err(Refused::Left { node });
        }
        let here = (0..).zip(&self.homes).filter(|(_, (home, _))| nodes.contains(home));
        let members: Vec<u16> = here.map(|(member, _)| member).collect();
        if !members.is_empty() {
            return Err(Refused::Holds { server, members });
        }
        let mut row = PlacementRow { epoch: self.next_epoch()?, ..self.clone() };
        row.left.extend(nodes);
        Ok(row)
    }
}

#[cfg(test)]
mod tests;
