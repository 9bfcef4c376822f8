//! The row that says where members live, and the rules by which it changes.
//!
//! The row is in a space of the database itself ([`SPACE`], [`KEY`]). Whoever wants a change reads
//! it, asks a rule of this module for the next one, and writes that, in one transaction; then it
//! tells one node, any (`docs/placement.md`). So changes follow each other whoever makes them.

use muesli_core::{Catalog, NodeId, RepositoryId, wire_struct};
use thiserror::Error;

use crate::layout;

/// The space that the row is in; databases of groups have it from their beginning.
pub const SPACE: &str = "muesli.placement";
/// The key of the row.
pub const KEY: &[u8] = b"members";

/// The row. Before the first change there is none, and the first placement holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The placement's epoch.
    pub epoch: u64,
    /// For each member its home, and since which epoch it lives there.
    pub homes: Vec<(NodeId, u64)>,
    /// Nodes that joined after the beginning, and where they listen; in the order of their names.
    pub joined: Vec<(NodeId, String)>,
    /// Nodes that have left for good; their names are not used again.
    pub left: Vec<NodeId>,
}

wire_struct!(Row {
    epoch: u64,
    homes: Vec<(NodeId, u64)>,
    joined: Vec<(NodeId, String)>,
    left: Vec<NodeId>,
});

/// What a cluster keeps for ever.
///
/// A *server* is a process; each of its loops is a node. The nodes of a server are lost together,
/// so no two of them may hold members of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many members a group has.
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

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// There is no such member.
    #[error("there is no member {member}; there are members 0 to {}", members - 1)]
    NoMember {
        /// Asked for.
        member: u16,
        /// There are.
        members: usize,
    },
    /// It is there already.
    #[error("member {member} lives on node {} already", node.0)]
    There {
        /// The member.
        member: u16,
        /// Its home.
        node: NodeId,
    },
    /// Another member of its group lives there.
    #[error("member {other} of the same group lives on node {}", node.0)]
    Taken {
        /// The other member.
        other: u16,
        /// Its home.
        node: NodeId,
    },
    /// Another member of its group is under way or cannot be reached.
    #[error(
        "member {other} of the same group does not take part; one member of a group moves at a time"
    )]
    UnderWay {
        /// The other member.
        other: u16,
    },
    /// Another member of its group lives on another loop of the same server.
    #[error(
        "member {other} of the same group lives on node {}, which is another loop of the server \
         of node {}: both would be lost at once",
        there.0, node.0
    )]
    SameServer {
        /// The other member.
        other: u16,
        /// Its home.
        there: NodeId,
        /// Asked for.
        node: NodeId,
    },
    /// The node has left for good.
    #[error("node {} has left the cluster", node.0)]
    Left {
        /// Which one.
        node: NodeId,
    },
    /// The name of a server is not the next one.
    #[error("the next server to join is node {next}, not node {server}")]
    NotNext {
        /// Asked for.
        server: u32,
        /// Free.
        next: u32,
    },
    /// A server that still holds members cannot leave.
    #[error(
        "server {server} holds members {}: `muesli admin drain {server}` moves them elsewhere",
        members.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
    )]
    Holds {
        /// Asked for.
        server: u32,
        /// What it holds.
        members: Vec<u16>,
    },
    /// The first server makes the spaces.
    #[error("server 0 makes the spaces of the cluster and cannot leave; it can be drained")]
    First,
}

impl Row {
    /// The row that says what a catalog says, where nobody has joined.
    pub fn of(catalog: &Catalog) -> Row {
        let (joined, left) = (Vec::new(), Vec::new());
        Row { epoch: catalog.placement, homes: catalog.stays(), joined, left }
    }

    /// Where a member lives.
    ///
    /// # Errors
    /// There is no such member.
    pub fn home(&self, member: RepositoryId) -> Result<NodeId, Refused> {
        let found = self.homes.get(usize::from(member.0)).map(|(home, _)| *home);
        found.ok_or(Refused::NoMember { member: member.0, members: self.homes.len() })
    }

    /// The other members of a member's group of `size`.
    pub fn others(
        &self,
        member: RepositoryId,
        size: u16,
    ) -> impl Iterator<Item = RepositoryId> + use<> {
        let (group, place) = layout::place(member, size);
        let places = (0..size).filter(move |&other| other != place);
        places.map(move |other| layout::member(group, other, size))
    }

    /// The next row, in which a member lives on another node. `takes_part` knows of every member
    /// whether it takes part, as its node says that goes by *this* row.
    ///
    /// The member itself need not take part: a node that is lost for good is left in this way, and
    /// one that is under way may be sent elsewhere, because whoever takes a member in asks all
    /// others of its group, who listen to its earlier homes no more.
    ///
    /// # Errors
    /// The rules say no.
    pub fn moved(
        &self,
        member: RepositoryId,
        to: NodeId,
        shape: Shape,
        takes_part: impl Fn(RepositoryId) -> bool,
    ) -> Result<Row, Refused> {
        if self.home(member)? == to {
            return Err(Refused::There { member: member.0, node: to });
        }
        if self.left.contains(&to) {
            return Err(Refused::Left { node: to });
        }
        for other in self.others(member, shape.group) {
            let there = self.home(other)?;
            if there == to {
                return Err(Refused::Taken { other: other.0, node: to });
            }
            if shape.server(there) == shape.server(to) {
                return Err(Refused::SameServer { other: other.0, there, node: to });
            }
            if !takes_part(other) {
                return Err(Refused::UnderWay { other: other.0 });
            }
        }
        let mut next = Row { epoch: self.epoch + 1, ..self.clone() };
        next.homes[usize::from(member.0)] = (to, next.epoch);
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
    ) -> Result<Row, Refused> {
        let next = shape.server(NodeId(nodes as u32));
        if server != next {
            return Err(Refused::NotNext { server, next });
        }
        let mut row = Row { epoch: self.epoch + 1, ..self.clone() };
        row.joined.extend(shape.nodes(server).zip(addresses.iter().cloned()));
        Ok(row)
    }

    /// The next row, in which a server has left for good.
    ///
    /// # Errors
    /// It is the first, has left already, or members live there.
    pub fn without_server(&self, server: u32, shape: Shape) -> Result<Row, Refused> {
        if server == 0 {
            return Err(Refused::First);
        }
        let nodes: Vec<_> = shape.nodes(server).collect();
        if let Some(&node) = nodes.iter().find(|node| self.left.contains(node)) {
            return Err(Refused::Left { node });
        }
        let here = (0..).zip(&self.homes).filter(|(_, (home, _))| nodes.contains(home));
        let members: Vec<u16> = here.map(|(member, _)| member).collect();
        if !members.is_empty() {
            return Err(Refused::Holds { server, members });
        }
        let mut row = Row { epoch: self.epoch + 1, ..self.clone() };
        row.left.extend(nodes);
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muesli_core::Wire;
    use proptest::prelude::*;

    const SIZE: u16 = 3;
    const SHAPE: Shape = Shape { group: SIZE, loops: 1 };

    fn first() -> Row {
        let homes = layout::homes(4, SIZE, 5).unwrap();
        Row::of(&Catalog::new(&homes, 1, &[]).unwrap())
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_no_server_holds_two_of_a_group_and_epochs_follow_each_other(
            loops in 1u16..3,
            asked in prop::collection::vec((0u16..14, 0u32..10, 0u16..14), 0..60),
        ) {
            let shape = Shape { group: SIZE, loops };
            let mut row = first();
            row.homes.iter_mut().for_each(|(home, _)| home.0 *= u32::from(loops));
            for (member, to, absent) in asked {
                let before = row.clone();
                let takes_part = |it: RepositoryId| it.0 != absent;
                let next = row.moved(RepositoryId(member), NodeId(to), shape, takes_part);
                if let Ok(next) = next {
                    prop_assert!(absent / SIZE != member / SIZE || absent == member);
                    prop_assert_eq!(next.epoch, before.epoch + 1);
                    prop_assert_eq!(next.homes[usize::from(member)], (NodeId(to), next.epoch));
                    prop_assert!(!before.left.contains(&NodeId(to)));
                    row = next;
                }
                if let Ok(next) = row.without_server(to % 7, shape) {
                    prop_assert!(row.homes.iter().all(|(home, _)| !next.left.contains(home)));
                    row = next;
                }
                for group in row.homes.chunks(usize::from(SIZE)) {
                    let mut servers: Vec<_> = group.iter().map(|it| shape.server(it.0)).collect();
                    servers.sort_unstable();
                    servers.dedup();
                    prop_assert_eq!(servers.len(), usize::from(SIZE));
                }
            }
        }

        #[test]
        fn any_bytes_are_a_row_or_refused(bytes: Vec<u8>) {
            let _ = Row::decode_all(&bytes);
        }
    }

    #[test]
    fn refusals_say_what_is_in_the_way() {
        let row = first();
        let refused = |member, to, absent: u16| {
            let takes_part = |it: RepositoryId| it.0 != absent;
            row.moved(RepositoryId(member), NodeId(to), SHAPE, takes_part).unwrap_err().to_string()
        };
        assert!(refused(12, 0, 99).contains("members 0 to 11"));
        assert!(refused(0, 0, 99).contains("on node 0 already"));
        assert!(refused(0, 1, 99).contains("member 1 of the same group lives on node 1"));
        assert!(refused(0, 4, 2).contains("member 2 of the same group does not take part"));
        assert!(row.moved(RepositoryId(0), NodeId(4), SHAPE, |it| it.0 != 0).is_ok());
    }

    #[test]
    fn two_members_of_a_group_on_two_loops_of_a_server_are_refused() {
        let row = first();
        let shape = Shape { group: SIZE, loops: 2 };
        // Members 0, 1 and 2 live on nodes 0, 1 and 2, which would be servers 0, 0 and 1.
        let refused = row.moved(RepositoryId(0), NodeId(3), shape, |_| true).unwrap_err();
        let told = "member 2 of the same group lives on node 2, which is another loop of the \
                    server of node 3";
        assert!(refused.to_string().starts_with(told), "{refused}");
        assert!(row.moved(RepositoryId(2), NodeId(3), shape, |_| true).is_ok());
    }

    #[test]
    fn servers_join_one_after_the_other_and_leave_once_they_are_empty() {
        let row = first().with_server(5, &["a:1".to_owned()], 5, SHAPE).unwrap();
        assert_eq!((row.epoch, row.joined.len()), (2, 1));
        let error = row.with_server(9, &["a:2".to_owned()], 6, SHAPE).unwrap_err().to_string();
        assert!(error.contains("next server to join is node 6, not node 9"), "{error}");
        let gone = row.without_server(5, SHAPE).unwrap();
        assert_eq!((gone.epoch, &gone.left[..]), (3, &[NodeId(5)][..]));
        assert_eq!(gone.without_server(5, SHAPE), Err(Refused::Left { node: NodeId(5) }));
        assert_eq!(gone.without_server(0, SHAPE), Err(Refused::First));
        let back = gone.moved(RepositoryId(0), NodeId(5), SHAPE, |_| true).unwrap_err();
        assert_eq!(back.to_string(), "node 5 has left the cluster");
        let error = gone.without_server(4, SHAPE).unwrap_err().to_string();
        assert!(error.contains("holds members 8, 10: `muesli admin drain 4`"), "{error}");
        let next = gone.with_server(5, &["a:3".to_owned()], 6, SHAPE);
        assert_eq!(next, Err(Refused::NotNext { server: 5, next: 6 }));
    }

    #[test]
    fn a_server_of_two_loops_joins_and_leaves_with_both() {
        let shape = Shape { group: SIZE, loops: 2 };
        let addresses = ["a:1".to_owned(), "a:2".to_owned()];
        let row = first().with_server(3, &addresses, 6, shape).unwrap();
        assert_eq!(row.joined[1], (NodeId(7), "a:2".to_owned()));
        assert_eq!(row.without_server(3, shape).unwrap().left, [NodeId(6), NodeId(7)]);
    }
}
