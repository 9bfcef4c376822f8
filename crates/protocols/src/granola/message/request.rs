//! A one-round transaction, as its coordinator asks for it.

use std::sync::Arc;

use muesli_core::ranges::KeyRange;
use muesli_core::{NodeId, ProcedureId, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId};

use super::Move;
use super::{Few, Owners, Repositories, Write};

/// How the participants of a transaction agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// There is only one.
    Alone,
    /// All come to the same decision: only the timestamp is voted on.
    Independent,
    /// Each may refuse.
    Coordinated,
}

/// A one-round transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its id; another attempt is another transaction.
    pub txn: TxnId,
    /// All transactions of this coordinator's life with a smaller sequence number are settled
    /// everywhere.
    pub settled_below: u64,
    /// The highest timestamp that the session has seen (thesis: highTS).
    pub lower_bound: Timestamp,
    /// How its participants agree.
    pub agreement: Agreement,
    /// It writes nothing.
    pub read_only: bool,
    /// Any copy of its one repository will do (section 7.2).
    pub follower_read: bool,
    /// Who counts the votes, where somebody does, and it is not the coordinator itself.
    pub master: Option<NodeId>,
    /// Everyone who takes part, in ascending order.
    pub participants: Repositories,
    /// What is to be done; each participant does what is about partitions that it holds.
    pub parts: Few<Part>,
}

impl Request {
    /// A request with these parts, of a coordinator of which nothing is settled and a session that
    /// has seen nothing: an update that its one participant agrees to alone.
    pub fn new(txn: TxnId, participants: Repositories, parts: Few<Part>) -> Request {
        Request {
            txn,
            settled_below: 1,
            lower_bound: Timestamp::ZERO,
            agreement: Agreement::Alone,
            read_only: false,
            follower_read: false,
            master: None,
            participants,
            parts,
        }
    }

    /// Whether it only reads, at one repository.
    pub(in crate::granola) fn reads_alone(&self) -> bool {
        self.read_only && self.agreement == Agreement::Alone
    }

    /// Whether participants wait for what others tell.
    pub(in crate::granola) fn exchanges_data(&self) -> bool {
        self.agreement == Agreement::Independent && self.parts.iter().any(Part::shares)
    }

    /// The parts of which all participants are told something, by their numbers.
    pub(in crate::granola) fn parts_with_data(&self) -> impl Iterator<Item = (u16, &Part)> {
        (0..).zip(&self.parts).filter(|(_, part)| part.shares())
    }

    /// Whether anything must be known of it after a crash.
    pub(in crate::granola) fn is_update(&self) -> bool {
        !self.read_only
    }
}

/// What is to be done with the keys of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The partition.
    pub partition: u16,
    /// Who holds it, as far as its coordinator knows; `None`: it was never moved.
    pub owners: Option<Arc<Owners>>,
    /// What.
    pub task: Task,
}

impl Part {
    /// Whether all participants are told something of it.
    pub(in crate::granola) fn shares(&self) -> bool {
        matches!(self.task, Task::Call { shares: true, .. })
    }

    /// Whoever decides by it has a vote.
    pub(in crate::granola) fn tell_nothing(&mut self) {
        if let Task::Call { shares, .. } = &mut self.task {
            *shares = false;
        }
    }
}

/// What a part does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Runs a procedure.
    Call {
        /// Which one.
        procedure: ProcedureId,
        /// What it is given.
        arguments: SmallBytes,
        /// Whether all participants are told of keys that it declares so.
        shares: bool,
        /// How many spaces the caller knows: the arguments may name any of these, and who knows
        /// fewer would divide their keys otherwise.
        spaces: u16,
    },
    /// Reads keys, for an interactive transaction.
    Read(Vec<(SpaceId, SmallBytes)>),
    /// Reads a range, for an interactive transaction.
    Scan {
        /// The range.
        range: KeyRange,
        /// From the end backwards.
        reverse: bool,
        /// Most rows wanted; deleted keys do not count.
        limit: u64,
    },
    /// The end of an interactive transaction: if what it read has not changed, writes.
    Install(Box<Install>),
    /// Fetches the partition's keys from another repository: an answer for each piece of them.
    Take {
        /// Who holds them.
        from: RepositoryId,
    },
    /// The partition changes its repository, here and now.
    Move(Box<Move>),
    /// Tells where partitions are: for repositories that keep names.
    Names,
}

/// What an interactive transaction read and is going to write in one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Install {
    /// Keys read, with the versions read.
    pub reads: Vec<(SpaceId, SmallBytes, Timestamp)>,
    /// Ranges read.
    pub scans: Vec<SeenRange>,
    /// Keys written.
    pub writes: Vec<Write>,
}

/// What an interactive transaction has read of partitions that a repository holds, for it to tell
/// of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedReads {
    /// Keys read, with the versions read.
    pub reads: Vec<(SpaceId, SmallBytes, Timestamp)>,
    /// Ranges read, by partition.
    pub scans: Vec<(u16, SeenRange)>,
}

impl WatchedReads {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.scans.is_empty()
    }
}

/// A range of a partition as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRange {
    /// The range.
    pub range: KeyRange,
    /// When it was seen: nothing in it is to have a later version.
    pub at: Timestamp,
    /// How many keys of the partition it held.
    pub live: u64,
}
