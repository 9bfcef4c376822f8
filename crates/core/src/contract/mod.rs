//! The contract between protocols and drivers.
//!
//! A [`Protocol`] is a set of state machines: a [`Coordinator`] that runs transactions for clients,
//! a [`Participant`] per repository, and the [services](Service) that it adds. What all have is the
//! [`StateMachine`], and what those have that log is the [`LoggedRole`]. All are functions of their
//! inputs: [operations](Operation), messages, timers. What they want done they append to the
//! [`Context`](Context)'s effects.
//!
//! What a client asks is a value, an [`Operation`], and so is what it is told, an [`Answer`]: on
//! its way from the library through a driver, a node and whatever decorates a coordinator, it
//! passes one function of each, [`operate`](Coordinator::operate).
//!
//! A coordinator reaches the participants of its own node directly, through [`Here`]: where a
//! transaction's whole footprint is there, its phases collapse into calls, and no message is made.
//! The book's page on the contract shows how each family of protocols is expressed in it.

mod context;
mod coordinator;
mod delaying;
pub mod effects;
mod here;
mod operation;
mod participant;
mod service;
mod staleness;
mod state_machine;
mod without;

pub use context::Context;
pub use coordinator::Coordinator;
pub use delaying::{Deferral, at_once, known_action, known_procedure};
pub use effects::{Effect, Effects, Envelope, Environment, Maintenance, Modes, Work};
pub use here::Here;
pub use operation::{Answer, Nesting, Operation, Put, Step};
pub use participant::Participant;
pub use service::{NoService, Service};
pub use staleness::StalenessSupport;
pub use state_machine::{LoggedRole, StateMachine};

use std::fmt::Debug;

use crate::catalog::Catalog;
use crate::ids::NodeId;
use crate::judgement::{Rejection, View};
use crate::roles::ServiceId;
use crate::time::Nanos;
use crate::wire::Wire;

/// What a protocol promises of the histories that it lets happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All committed transactions have a serial order that keeps the order within sessions.
    Serializable,
    /// The same, and the order keeps real time.
    StrictSerializable,
    /// Updates are serializable, and every reader sees a consistent snapshot of them.
    ExtendedUpdateSerializable,
    /// The same, but two updates of one session that do not conflict may be seen in another order
    /// by others.
    ExtendedUpdateSerializableWithoutSessions,
    /// No dirty and no unrepeatable reads.
    RepeatableRead,
}

/// A transaction protocol: its messages, its records, and its roles.
pub trait Protocol: Sized + Clone + Debug + Send + 'static {
    /// As `--protocol` names it.
    const NAME: &'static str;
    /// What its roles say to each other.
    type Message: Wire + Clone + Debug + Send + 'static;
    /// What must survive a crash.
    type Record: Wire + Clone + Debug + Send + 'static;
    /// Switches of the protocol; the default is the protocol as it should be.
    type Switches: Clone + Debug + Default + Send + Sync + 'static;
    /// Runs transactions for clients.
    type Coordinator: Coordinator<Self>;
    /// Holds a part of the keys.
    type Participant: Participant<Self>;
    /// What else it has; [`NoService`](super::NoService): nothing.
    type Service: Service<Self>;
    /// How long a step of the counters of timestamps is, where these follow the clocks of the
    /// repositories; `None`: they count something else. Where there is one, a client can know that
    /// the repositories will have come to a later timestamp soon, and keep it as a lease.
    const TIMESTAMP_STEP: Option<Nanos>;
    /// Whether it keeps its data at several nodes by itself, so that its repositories are not to be
    /// kept by groups.
    const REPLICATES_ITSELF: bool;
    /// Whether nodes can keep copies of repositories that live elsewhere
    /// ([`Settings::caches`](crate::options::Settings::caches)).
    const KEEPS_COPIES: bool;
    /// Whether it keeps spaces that are [everywhere](crate::catalog::Partitioning::Everywhere).
    const KEEPS_EVERYWHERE: bool = false;
    /// Whether replaced versions are kept for open transactions, which have leases on them.
    const KEEPS_OLD_VERSIONS: bool;
    /// What it promises, with its switches so.
    fn isolation(switches: &Self::Switches) -> Isolation;
    /// The services that live on `node`. Those that are there stay for as long as the node lives.
    fn services(switches: &Self::Switches, node: NodeId, catalog: &Catalog) -> Vec<ServiceId>;
    /// The size of a message on the wire, in bytes, for bandwidth and cost models.
    fn wire_bytes(message: &Self::Message) -> usize;
    /// The size of a record on disk, in bytes.
    fn record_bytes(record: &Self::Record) -> usize;
    /// The short name of a message's kind, for traces.
    fn message_name(message: &Self::Message) -> &'static str;
    /// Whether everything that a message names is there: repositories, spaces, partitions. Drivers
    /// ask it of messages that came from another process, as they come in; inside, names are
    /// trusted.
    fn is_about(message: &Self::Message, catalog: &Catalog) -> bool;
    /// Whether its sender may say this at all: who it is, and whether the numbers are ones that
    /// can be. Drivers do not ask it themselves: [`Node::receive`](crate::node::Node::receive)
    /// does, of every message from another process, before the role's own judgement.
    ///
    /// # Errors
    /// The message is to be left out, for this reason.
    fn judge(message: &Self::Message, view: View<'_>) -> Result<(), Rejection>;
    /// What a client on `node` would say instead, of a transaction of its own that writes nothing;
    /// `None`: clients say nothing of the kind. Simulators and fuzz targets have strangers say it.
    fn as_client(message: &Self::Message, node: NodeId) -> Option<Self::Message>;
    /// Whether the order keeps real time for transactions that ask for it
    /// ([`strict`](crate::TxnOptions::strict)). Where it does not, they are what
    /// [`isolation`](Self::isolation) says.
    fn offers_strict(switches: &Self::Switches) -> bool;
    /// What becomes of a transaction whose client says how stale what it sees may be.
    fn staleness(switches: &Self::Switches) -> StalenessSupport {
        match Self::isolation(switches) {
            Isolation::StrictSerializable => StalenessSupport::AlwaysFresh,
            Isolation::Serializable
            | Isolation::ExtendedUpdateSerializable
            | Isolation::ExtendedUpdateSerializableWithoutSessions
            | Isolation::RepeatableRead => match Self::offers_strict(switches) {
                true => StalenessSupport::AsStrict,
                false => StalenessSupport::Refused,
            },
        }
    }
    /// Whether it has masters, which the [catalog](Catalog::masters) may put on nodes of their own.
    fn has_masters(switches: &Self::Switches) -> bool;
    /// Whether repositories with numbers in a row, as many as a key has replicas, keep the same
    /// keys, so that it can be said [where](crate::catalog::ShardSites) those of each shard are.
    fn has_shards(_: &Self::Switches) -> bool {
        false
    }
    /// Whether a node whose disk is lost ([`lost_disk`](crate::options::Settings::lost_disk)) gets
    /// its data back from others, though no group keeps it.
    fn exchanges_members(_: &Self::Switches) -> bool {
        false
    }
    /// Whether a node whose disk is lost ([`lost_disk`](crate::options::Settings::lost_disk)) may
    /// come back with nothing, where no group and no other copy keeps its data: what it held is
    /// gone, and where the others have what it only knew the place of, it finds out.
    fn may_start_empty(_: &Self::Switches) -> bool {
        false
    }
    /// Whether a message to a repository is for every node that keeps a copy of it, and not only
    /// for the one that answers. It must be one that nothing has to be said or logged about.
    fn is_for_all(message: &Self::Message) -> bool;
    /// Whether a message to a repository may be answered by any node that keeps a copy of it,
    /// though that be a little behind (see [`Participant::answer_behind`]).
    fn is_for_any(message: &Self::Message) -> bool;
}
