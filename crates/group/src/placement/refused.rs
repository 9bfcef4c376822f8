//! Why a change of the placement is not made.

use muesli_core::NodeId;
use thiserror::Error;

use crate::layout;

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// There is no such member.
    #[error("there is no member {member}; `muesli admin placement` lists those that there are")]
    NoMember {
        /// Asked for.
        member: u16,
    },
    /// The row says the largest epoch that there is, which no administrator has come to.
    #[error("the placement says that it is the last one that can be: its row is damaged")]
    LastEpoch,
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
    /// There is no such group.
    #[error("there is no group {group}; there are groups 0 to {}", groups - 1)]
    NoGroup {
        /// Asked for.
        group: u16,
        /// There are.
        groups: u16,
    },
    /// A group has as many members as it may.
    #[error("group {group} has {} members, which is the most", layout::PLACES)]
    Full {
        /// The group.
        group: u16,
    },
    /// A group has as few members as it may.
    #[error("group {group} has {} members, which is the least", layout::LEAST)]
    Least {
        /// The group.
        group: u16,
    },
    /// No member of the group lives there.
    #[error("no member of group {group} lives on node {}", node.0)]
    NotThere {
        /// The group.
        group: u16,
        /// Asked for.
        node: NodeId,
    },
    /// The member is not to go.
    #[error("member {member} is not to go: somebody else has taken it out and in again meanwhile")]
    Stays {
        /// The member.
        member: u16,
    },
    /// The member is to go.
    #[error("member {member} is to go: `muesli admin shrink` again completes that")]
    Leaving {
        /// The member.
        member: u16,
    },
    /// Too few members take part for the group to have others.
    #[error(
        "of the members of group {group} that are to be, only {now} take part, which is no \
         majority; a group that has changed last must have come through that first"
    )]
    TooFew {
        /// The group.
        group: u16,
        /// How many.
        now: usize,
    },
}
