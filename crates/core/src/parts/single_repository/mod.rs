//! What a protocol needs in which a transaction asks one repository for all that it reads and
//! commits: the coordinator, what it and the repository say, and which outcomes a repository
//! remembers.
//!
//! # The idea
//! The [coordinator](SingleRepositoryCoordinator) reads key by key, buffers writes, and sends its
//! read versions and its writes in one commit. It repeats what was not answered, so that messages
//! may be lost. The repository may therefore be asked twice to commit; it remembers how
//! transactions ended ([`KnownOutcomes`]) until their coordinator says, with a later commit, that
//! it knows, and [answers](SingleRepository::answer) by that.
//!
//! # What is left to a protocol
//! Which repository a node's transactions ask, and what a commit is there: validation, order,
//! records. Where keys live elsewhere than at that repository, it fetches them, or asks others.
//! Ranges are not scanned, and there are no procedures.

mod coordinator;
mod outcomes;
mod repository;

use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::contract::Protocol;
use crate::ids::{NodeId, RepositoryId, SpaceId, Timestamp, TxnId};
use crate::judgement::{Rejection, View, ensure, in_range};
use crate::outcome::Decision;
use crate::roles::Role;
use crate::wire_enum;

pub use coordinator::{SingleRepositoryCoordinator, SingleRepositoryTimer};
pub use outcomes::{KnownOutcome, KnownOutcomes};
pub use repository::SingleRepository;

/// What a transaction read: each key with its version.
pub type ReadVersions = Vec<(SpaceId, SmallBytes, Timestamp)>;
/// What a transaction writes; a value of `None` deletes.
pub type NewValues = Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>;

/// So many outcomes a repository remembers for a coordinator, at most. A commit further ahead of
/// the oldest that is not settled is left out; its coordinator repeats it.
pub const UNSETTLED_MAX: u64 = 1 << 16;

/// What a coordinator asks of its repository.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum RepositoryRequest {
    /// What is there?
    Read { op: u64, space: SpaceId, key: SmallBytes },
    /// Commit this, and forget transactions of mine that are below.
    Commit { txn: TxnId, settled_below: u64, reads: ReadVersions, writes: NewValues },
}

/// What a coordinator is told.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum RepositoryReply {
    /// This is there, in this version.
    Value { op: u64, version: Timestamp, value: Option<SmallBytes> },
    /// So the transaction ended.
    Ended { txn: TxnId, decision: Decision },
}

wire_enum!(RepositoryRequest, "request of a coordinator" {
    0 => Read { op: u64, space: SpaceId, key: SmallBytes },
    1 => Commit { txn: TxnId, settled_below: u64, reads: ReadVersions, writes: NewValues },
});

wire_enum!(RepositoryReply, "reply to a coordinator" {
    0 => Value { op: u64, version: Timestamp, value: Option<SmallBytes> },
    1 => Ended { txn: TxnId, decision: Decision },
});

impl RepositoryRequest {
    /// Whether it can be asked by whoever sent it.
    ///
    /// # Errors
    /// It is not about a transaction of the sender, its numbers cannot be, or it is more than
    /// [`UNSETTLED_MAX`] ahead of what is settled.
    pub fn judge(&self, view: View<'_>) -> Result<(), Rejection> {
        ensure(view.repository().is_some(), Rejection::Role)?;
        match self {
            RepositoryRequest::Read { .. } => view.coordinator(),
            RepositoryRequest::Commit { txn, settled_below, reads, .. } => {
                ensure(*settled_below <= txn.sequence, Rejection::Range)?;
                ensure(txn.sequence - settled_below < UNSETTLED_MAX, Rejection::Range)?;
                reads.iter().try_for_each(|(_, _, version)| in_range(*version))?;
                view.owner(*txn)
            }
        }
    }
}

impl RepositoryReply {
    /// Whether a repository of a member tells it to a coordinator.
    ///
    /// # Errors
    /// Somebody else does.
    pub fn judge(&self, view: View<'_>) -> Result<(), Rejection> {
        ensure(view.me.role == Role::Coordinator, Rejection::Role)?;
        view.member()?;
        ensure(matches!(view.from.role, Role::Repository(_)), Rejection::Sender)
    }
}

/// What is said where no more is needed than that.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum RepositoryMessage {
    /// Coordinator to repository.
    Request { request: RepositoryRequest },
    /// Repository to coordinator.
    Reply { reply: RepositoryReply },
}

wire_enum!(RepositoryMessage, "message between a coordinator and its repository" {
    0 => Request { request: RepositoryRequest },
    1 => Reply { reply: RepositoryReply },
});

impl RepositoryMessage {
    /// Whether whoever sent it can say that to whoever judges.
    ///
    /// # Errors
    /// As of the [request](RepositoryRequest::judge) and the [reply](RepositoryReply::judge).
    pub fn judge(&self, view: View<'_>) -> Result<(), Rejection> {
        match self {
            RepositoryMessage::Request { request } => request.judge(view),
            RepositoryMessage::Reply { reply } => reply.judge(view),
        }
    }
}

impl From<RepositoryRequest> for RepositoryMessage {
    fn from(request: RepositoryRequest) -> RepositoryMessage {
        RepositoryMessage::Request { request }
    }
}

impl From<RepositoryMessage> for Option<RepositoryReply> {
    fn from(message: RepositoryMessage) -> Option<RepositoryReply> {
        match message {
            RepositoryMessage::Reply { reply } => Some(reply),
            RepositoryMessage::Request { .. } => None,
        }
    }
}

/// A protocol whose transactions ask one repository each. A message of it can be a request, or
/// have a reply in it.
pub trait SingleRepositoryProtocol:
    Protocol<
        Coordinator = SingleRepositoryCoordinator<Self>,
        Message: From<RepositoryRequest> + Into<Option<RepositoryReply>>,
    >
{
    /// The repository that transactions begun at `node` ask.
    fn base(node: NodeId, catalog: &Catalog) -> RepositoryId;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::judgement::Sender;
    use crate::roles::Address;

    /// What is said of a commit of this number while all below `settled_below` are settled.
    fn judged(sequence: u64, settled_below: u64) -> Result<(), Rejection> {
        let coordinator = Address { node: NodeId(1), role: Role::Coordinator };
        let catalog = Catalog::new(&[NodeId(0), NodeId(1)], 1, &[NodeId(0)]).expect("a catalog");
        let view = View {
            me: Address { node: NodeId(0), role: Role::Repository(RepositoryId(0)) },
            from: coordinator,
            sender: Sender::Member,
            catalog: &catalog,
            settings: &Settings::default(),
        };
        let txn = TxnId { node: NodeId(1), incarnation: 1, sequence };
        let (reads, writes) = (Vec::new(), Vec::new());
        RepositoryRequest::Commit { txn, settled_below, reads, writes }.judge(view)
    }

    #[test]
    fn a_commit_far_ahead_of_what_is_settled_is_left_out() {
        assert_eq!(judged(7 + UNSETTLED_MAX - 1, 7), Ok(()));
        assert_eq!(judged(7 + UNSETTLED_MAX, 7), Err(Rejection::Range));
        assert_eq!(judged(6, 7), Err(Rejection::Range), "it says itself that it is settled");
        assert_eq!(judged(u64::MAX, 0), Err(Rejection::Range));
    }
}
