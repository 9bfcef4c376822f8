//! Data kept whole at several sites: commits are broadcast in one order, and certified at each.
//!
//! # The idea
//! Each repository is a *site* with all keys. A transaction reads at the site nearest to its
//! coordinator. Its commit, with the versions that it read and its writes, is an
//! [`OrderedCommit`] that is broadcast: every site gets all commits in the same order
//! ([`Broadcast`]), and each decides by itself whether one takes effect ([`Certify`]), from nothing
//! but the commits before it. So all decide alike, and the site that was asked tells the
//! coordinator.
//!
//! # The layers
//! [`Ordered<B, C>`](Ordered) is a protocol for every broadcast and every certification. The
//! broadcast runs in *orderers*, a service beside each repository, and speaks through the protocol
//! without knowing it; the certification runs in the participants, [`Site`]s. A site tells its
//! orderer how far it has applied commands, stably; what all have applied may be forgotten.
//!
//! Such a protocol replicates its data itself: groups refuse it.

pub mod broadcast;
pub mod certify;
mod names;
mod orderer;
mod site;

use std::fmt::Debug;
use std::marker::PhantomData;

use muesli_core::judgement::ensure;
use muesli_core::parts::single_repository::{
    NewValues, ReadVersions, RepositoryReply, RepositoryRequest, SingleRepositoryCoordinator,
    SingleRepositoryProtocol,
};
use muesli_core::{
    Catalog, Decision, Isolation, NodeId, Protocol, Rejection, RepositoryId, Role, ServiceId,
    TxnId, View, Wire, wire_enum, wire_struct,
};

use broadcast::Broadcast;
use certify::Certify;
use names::orderer;
pub use orderer::Orderer;
pub use site::Site;

/// Broadcast `B` under certification `C`.
#[derive(Clone, Copy, Debug)]
pub struct Ordered<B, C>(PhantomData<(B, C)>);

/// A commit, as it is broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedCommit {
    /// The transaction.
    pub txn: TxnId,
    /// Its coordinator knows how transactions below ended.
    pub settled_below: u64,
    /// The versions that it read.
    pub reads: ReadVersions,
    /// What it writes.
    pub writes: NewValues,
}

wire_struct!(OrderedCommit {
    txn: TxnId,
    settled_below: u64,
    reads: ReadVersions,
    writes: NewValues
});

/// What the roles say to each other; `M` is the broadcast's.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Message<M> {
    /// Coordinator to site.
    Ask { ask: RepositoryRequest },
    /// Site to coordinator.
    Tell { tell: RepositoryReply },
    /// Site to its orderer.
    Submit { command: OrderedCommit },
    /// Orderer to its site: the command at this position.
    Deliver { position: u64, command: OrderedCommit },
    /// Site to its orderer: all up to there is applied, stably.
    Applied { upto: u64 },
    /// Orderer to orderer.
    Broadcast { message: M },
}

wire_enum!(Message<M: Wire>, "message of an ordered protocol" {
    0 => Ask { ask: RepositoryRequest },
    1 => Tell { tell: RepositoryReply },
    2 => Submit { command: OrderedCommit },
    3 => Deliver { position: u64, command: OrderedCommit },
    4 => Applied { upto: u64 },
    5 => Broadcast { message: M },
});

impl<M> From<RepositoryRequest> for Message<M> {
    fn from(ask: RepositoryRequest) -> Message<M> {
        Message::Ask { ask }
    }
}

impl<M> From<Message<M>> for Option<RepositoryReply> {
    fn from(message: Message<M>) -> Option<RepositoryReply> {
        match message {
            Message::Tell { tell } => Some(tell),
            _ => None,
        }
    }
}

/// What must survive; `R` is the broadcast's.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Record<R> {
    /// A site has applied a command.
    Applied { position: u64, txn: TxnId, decision: Option<Decision>, writes: NewValues },
    /// Of an orderer.
    Broadcast { record: R },
}

wire_enum!(Record<R: Wire>, "record of an ordered protocol" {
    0 => Applied { position: u64, txn: TxnId, decision: Option<Decision>, writes: NewValues },
    1 => Broadcast { record: R },
});

impl<B: Broadcast, C: Certify> Protocol for Ordered<B, C> {
    const NAME: &'static str = "ordered";
    const REPLICATES_ITSELF: bool = true;
    type Message = Message<B::Message>;
    type Record = Record<B::Record>;
    type Switches = ();
    type Coordinator = SingleRepositoryCoordinator<Ordered<B, C>>;
    type Participant = Site<B, C>;
    type Service = Orderer<B, C>;

    fn isolation(_: &Self::Switches) -> Isolation {
        Isolation::StrictSerializable
    }

    muesli_core::protocol_without_extras!();
    muesli_core::protocol_measured_by_encoding!();

    fn services((): &(), node: NodeId, catalog: &Catalog) -> Vec<ServiceId> {
        let sites = 0..catalog.repositories() as u16;
        sites.filter(|site| catalog.home(RepositoryId(*site)) == node).map(orderer).collect()
    }

    fn is_about(_: &Self::Message, _: &Catalog) -> bool {
        true
    }

    fn judge(message: &Self::Message, view: View<'_>) -> Result<(), Rejection> {
        match message {
            Message::Ask { ask } => ask.judge(view),
            Message::Tell { tell } => tell.judge(view),
            // Between a site and its orderer, which are of one node.
            Message::Submit { .. } | Message::Deliver { .. } | Message::Applied { .. } => {
                Err(Rejection::Sender)
            }
            Message::Broadcast { .. } => {
                view.member()?;
                let both = (view.from.role, view.me.role);
                let are_orderers = matches!(both, (Role::Service(_), Role::Service(_)));
                ensure(are_orderers, Rejection::Role)
            }
        }
    }

    fn offers_strict((): &()) -> bool {
        true
    }
}

impl<B: Broadcast, C: Certify> SingleRepositoryProtocol for Ordered<B, C> {
    /// One of the node's own, or where it has none, one by its number.
    fn base(node: NodeId, catalog: &Catalog) -> RepositoryId {
        let count = catalog.repositories();
        let here = (0..count as u16).map(RepositoryId).find(|it| catalog.home(*it) == node);
        here.unwrap_or(RepositoryId((node.0 as usize % count) as u16))
    }
}
