//! Names of things: nodes, repositories, spaces, transactions, and the timestamps that order them.

use std::fmt;

/// A process or an embedded loop: the unit that sends and receives messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// No node: the home of a repository that there is not.
    pub const NOWHERE: NodeId = NodeId(u32::MAX);
}

/// The unit of placement and of serial execution; holds a part of the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepositoryId(pub u16);

/// A named set of keys, by its number in the [`Catalog`](crate::catalog::Catalog).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u16);

/// A transaction attempt: the node that coordinates it, that node's incarnation, and a sequence
/// number that grows by one with every transaction begun there.
///
/// A node that restarts comes back with a larger incarnation, so no id is ever used twice.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId {
    /// Where the coordinator lives.
    pub node: NodeId,
    /// Which life of that node.
    pub incarnation: u32,
    /// Position among the transactions begun in that life, from 1.
    pub sequence: u64,
}

impl TxnId {
    /// No coordinator comes to a larger sequence number in one incarnation.
    pub const SEQUENCE_MAX: u64 = 1 << 62;
}

impl fmt::Debug for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}.{}-{}", self.node.0, self.incarnation, self.sequence)
    }
}

/// A pending operation of a transaction at its coordinator; unique in a life of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A running transaction as its client names it: a slot of the coordinator's table and the
/// generation of that slot, so that a handle kept too long is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Txn {
    /// Slot in the coordinator's table.
    pub slot: u32,
    /// How often the slot had been reused when this transaction took it.
    pub generation: u32,
}

/// A scalar timestamp: a counter, made unique by the repository that proposed it.
///
/// The counter fills the upper 52 bits and the repository the lower 12, so integer order is the
/// lexicographic order of (counter, repository). Two transactions never share one: a repository
/// proposes each counter once, and a final timestamp is somebody's proposal.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// How many repositories timestamps can tell apart.
pub const REPOSITORIES_MAX: usize = 1 << Timestamp::REPOSITORY_BITS;

impl Timestamp {
    const REPOSITORY_BITS: u32 = 12;
    /// Before every transaction: the version of keys that were never written.
    pub const ZERO: Timestamp = Timestamp(0);
    /// After every transaction.
    pub const MAX: Timestamp = Timestamp(u64::MAX);
    /// The largest that is taken from another node. A repository has room for 2^48 counters above
    /// it: at a million a second, nine years. Counters that follow a clock of microseconds come
    /// here in the year 2103.
    pub const FARTHEST: Timestamp = Timestamp(u64::MAX - (1 << 60));
    /// The largest that a repository can have come to by itself.
    pub const LOGGED_MOST: Timestamp = Timestamp(u64::MAX - (1 << 59));

    /// The timestamp (counter, repository).
    pub fn new(counter: u64, repository: RepositoryId) -> Timestamp {
        Timestamp(counter << Self::REPOSITORY_BITS | u64::from(repository.0))
    }

    /// The counter.
    pub fn counter(self) -> u64 {
        self.0 >> Self::REPOSITORY_BITS
    }

    /// The repository whose proposal this is.
    pub fn repository(self) -> RepositoryId {
        RepositoryId((self.0 & ((1 << Self::REPOSITORY_BITS) - 1)) as u16)
    }

    /// The timestamp of `repository` whose counter is `steps` above this one's.
    pub fn after(self, steps: u64, repository: RepositoryId) -> Timestamp {
        Timestamp::new(self.counter() + steps, repository)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Timestamp::ZERO => f.write_str("0"),
            Timestamp::MAX => f.write_str("max"),
            ts => write!(f, "{}@r{}", ts.counter(), ts.repository().0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_order_by_counter_then_repository() {
        let of = |counter, repository| Timestamp::new(counter, RepositoryId(repository));
        assert!(of(1, 4095) < of(2, 0));
        assert!(of(2, 0) < of(2, 1));
        assert_eq!(of(7, 3).after(2, RepositoryId(5)), of(9, 5));
        assert_eq!((of(7, 3).counter(), of(7, 3).repository()), (7, RepositoryId(3)));
    }
}
