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
    /// Servers that joined after the beginning, and where they listen; in the order of their names.
    pub joined: Vec<(NodeId, String)>,
}

wire_struct!(Row { epoch: u64, homes: Vec<(NodeId, u64)>, joined: Vec<(NodeId, String)> });

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
    /// The name of a server is not the next one.
    #[error("the next server to join is node {}, not node {}", next.0, node.0)]
    NotNext {
        /// Asked for.
        node: NodeId,
        /// Free.
        next: NodeId,
    },
}

impl Row {
    /// The row that says what a catalog says, where nobody has joined.
    pub fn of(catalog: &Catalog) -> Row {
        Row { epoch: catalog.placement, homes: catalog.stays(), joined: Vec::new() }
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
        size: u16,
        takes_part: impl Fn(RepositoryId) -> bool,
    ) -> Result<Row, Refused> {
        if self.home(member)? == to {
            return Err(Refused::There { member: member.0, node: to });
        }
        for other in self.others(member, size) {
            if self.home(other)? == to {
                return Err(Refused::Taken { other: other.0, node: to });
            }
            if !takes_part(other) {
                return Err(Refused::UnderWay { other: other.0 });
            }
        }
        let mut next = Row { epoch: self.epoch + 1, ..self.clone() };
        next.homes[usize::from(member.0)] = (to, next.epoch);
        Ok(next)
    }

    /// The next row, in which a server has joined that is reached at `address`, where there are
    /// `servers` so far, those that joined included.
    ///
    /// # Errors
    /// It is not the next one.
    pub fn with_server(&self, node: NodeId, address: &str, servers: usize) -> Result<Row, Refused> {
        let next = NodeId(servers as u32);
        if node != next {
            return Err(Refused::NotNext { node, next });
        }
        let mut row = Row { epoch: self.epoch + 1, ..self.clone() };
        row.joined.push((node, address.to_owned()));
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muesli_core::Wire;
    use proptest::prelude::*;

    const SIZE: u16 = 3;

    fn first() -> Row {
        let homes = layout::homes(4, SIZE, 5).unwrap();
        Row::of(&Catalog::new(&homes, 1, &[]).unwrap())
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_no_node_holds_two_of_a_group_and_epochs_follow_each_other(
            asked in prop::collection::vec((0u16..14, 0u32..5, 0u16..14), 0..60),
        ) {
            let mut row = first();
            for (member, to, absent) in asked {
                let before = row.clone();
                let takes_part = |it: RepositoryId| it.0 != absent;
                let next = row.moved(RepositoryId(member), NodeId(to), SIZE, takes_part);
                if let Ok(next) = next {
                    prop_assert!(absent / SIZE != member / SIZE || absent == member);
                    prop_assert_eq!(next.epoch, before.epoch + 1);
                    prop_assert_eq!(next.homes[usize::from(member)], (NodeId(to), next.epoch));
                    row = next;
                }
                for group in row.homes.chunks(usize::from(SIZE)) {
                    let mut nodes: Vec<_> = group.iter().map(|(node, _)| *node).collect();
                    nodes.sort_unstable();
                    nodes.dedup();
                    prop_assert_eq!(nodes.len(), usize::from(SIZE));
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
            row.moved(RepositoryId(member), NodeId(to), SIZE, takes_part).unwrap_err().to_string()
        };
        assert!(refused(12, 0, 99).contains("members 0 to 11"));
        assert!(refused(0, 0, 99).contains("on node 0 already"));
        assert!(refused(0, 1, 99).contains("member 1 of the same group lives on node 1"));
        assert!(refused(0, 4, 2).contains("member 2 of the same group does not take part"));
        assert!(row.moved(RepositoryId(0), NodeId(4), SIZE, |it| it.0 != 0).is_ok());
    }

    #[test]
    fn servers_join_one_after_the_other() {
        let row = first().with_server(NodeId(5), "a:1", 5).unwrap();
        assert_eq!((row.epoch, row.joined.len()), (2, 1));
        let error = row.with_server(NodeId(9), "a:2", 6).unwrap_err().to_string();
        assert!(error.contains("next server to join is node 6, not node 9"), "{error}");
    }
}
