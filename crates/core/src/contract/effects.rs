//! What a node asks its driver to do.
//!
//! A node never does anything itself. It appends [`Effect`]s, in order, and the driver performs
//! them: *log before speak* is kept here, by tagging every effect of a participant with the log
//! position that must be stable before the effect may leave.

use std::ops::{AddAssign, Deref, DerefMut};
use std::sync::Arc;

use super::{Answer, Protocol};
use crate::catalog::Catalog;
use crate::ids::OpId;
use crate::links::Links;
use crate::outcome::Failure;
use crate::positions::{LogPosition, Positions};
use crate::recorder::Recorder;
use crate::recorder::accesses::AccessSampler;
use crate::roles::{Address, Role};
use crate::time::Nanos;

/// A message with its sender and its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<M> {
    /// Who sent it.
    pub from: Address,
    /// Whom it is for.
    pub to: Address,
    /// What it says.
    pub message: M,
}

/// Something the driver must do. Effects leave in the order they were appended; a crash may come
/// between any two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<M, R> {
    /// Send a message once the log is stable up to `after`.
    Send {
        /// The message.
        envelope: Envelope<M>,
        /// What must be stable first.
        after: LogPosition,
    },
    /// Answer a client's operation once the log is stable up to `after`.
    Complete {
        /// The operation.
        op: OpId,
        /// Its answer.
        result: Result<Answer, Failure>,
        /// What must be stable first.
        after: LogPosition,
    },
    /// Append a record to the node's log; the first one makes position 1.
    Log {
        /// Whose record.
        role: Role,
        /// What must survive.
        record: R,
    },
    /// Call the role's `timer` after this long.
    SetTimer {
        /// Whose timer.
        role: Role,
        /// Which of its timers, by its [number](crate::timers::Timer::number).
        timer: u32,
        /// How long from now. Nothing: once what was said before has left (see
        /// [`Context::defer`](super::Context::defer)).
        after: Nanos,
    },
}

/// What a node's processor was kept busy with, for cost models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Keys read.
    pub reads: u64,
    /// Keys locked and validated.
    pub validated: u64,
    /// Versions installed.
    pub installed: u64,
}

/// How a protocol that has modes went about its transactions, for comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Transactions done, each counted at every repository.
    pub transactions: u64,
    /// Of these, done under locks.
    pub locked: u64,
    /// Of these, run together with others (see [`Parallel`](crate::parallel::Parallel)).
    pub parallel: u64,
    /// Transactions that asked for locks where none were in use.
    pub transitions: u64,
    /// Of these, such as had to wait for it.
    pub waited: u64,
    /// How long all of them waited, together.
    pub waiting: Nanos,
}

impl AddAssign for Modes {
    fn add_assign(&mut self, more: Modes) {
        self.transactions += more.transactions;
        self.locked += more.locked;
        self.parallel += more.parallel;
        self.transitions += more.transitions;
        self.waited += more.waited;
        self.waiting = self.waiting + more.waiting;
    }
}

/// How often a node did in its life what nobody waits for, and what it ended because that took too
/// long. Searches for faults must see it happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintenance {
    /// Versions that were collected: replaced ones that no snapshot needed any more, and deletions.
    pub collected: u64,
    /// Entries of the logs of replication groups that were removed, as the state stands for them.
    pub trimmed: u64,
    /// Snapshots that hold no versions back any more, as their transaction was open for too long.
    pub snapshots_aged: u64,
    /// Nodes whose snapshots hold no versions back any more, or whose copies are told nothing any
    /// more, as nothing was heard of them for the lease; and copies that nobody used for as long.
    pub leases_ended: u64,
    /// Clients that repositories forgot, as nothing was heard of them for their lease.
    pub clients_forgotten: u64,
    /// Transactions in doubt that participants ended by asking each other.
    pub finished: u64,
    /// Operations that were given up, as no answer came for too long.
    pub given_up: u64,
    /// Parts of transactions that were undone, with the rest going on.
    pub partial_aborts: u64,
    /// Snapshots of running transactions that moved to later ones, with all that was read.
    pub snapshots_moved: u64,
    /// Transactions that lost once more, and hold now what they have read, to be let through.
    pub claimed: u64,
}

impl AddAssign for Maintenance {
    fn add_assign(&mut self, more: Maintenance) {
        self.collected += more.collected;
        self.trimmed += more.trimmed;
        self.snapshots_aged += more.snapshots_aged;
        self.leases_ended += more.leases_ended;
        self.clients_forgotten += more.clients_forgotten;
        self.finished += more.finished;
        self.given_up += more.given_up;
        self.partial_aborts += more.partial_aborts;
        self.snapshots_moved += more.snapshots_moved;
        self.claimed += more.claimed;
    }
}

/// What passes between a driver and a node beside effects: the moment, and what was done so far.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The time of this turn, by the node's own clock. Promises never depend on it.
    pub now: Nanos,
    /// Where histories are recorded, if they are.
    pub recorder: Option<Box<Recorder>>,
    /// Where the partitions of transactions are sampled and counted, if they are.
    pub accesses: Option<Box<AccessSampler>>,
    /// What is under way over the driver's links.
    pub links: Links,
    /// Work done since the driver last took it.
    pub work: Work,
    /// How transactions were done since the node's start.
    pub modes: Modes,
    /// What was collected, ended and given up since the node's start.
    pub maintenance: Maintenance,
    /// What each role of the node has logged, and what its effects wait for.
    pub positions: Positions,
    /// A role of the node asked for its [next life](super::Context::restart).
    pub restart: bool,
    /// A role of the node was told of a catalog that the node is to [go by](super::Context::go_by).
    pub newer_catalog: Option<Arc<Catalog>>,
}

/// The buffer that a driver hands to a node, with the [`Environment`].
#[derive(Clone, Debug)]
pub struct Effects<P: Protocol> {
    /// What the node may know of the moment.
    pub environment: Environment,
    /// The effects so far, in order.
    pub list: Vec<Effect<P::Message, P::Record>>,
}

impl<P: Protocol> Default for Effects<P> {
    fn default() -> Effects<P> {
        Effects::new(Environment::default())
    }
}

impl<P: Protocol> Effects<P> {
    /// No effects so far.
    pub fn new(environment: Environment) -> Effects<P> {
        Effects { environment, list: Vec::new() }
    }
}

impl<P: Protocol> Deref for Effects<P> {
    type Target = Environment;

    #[inline]
    fn deref(&self) -> &Environment {
        &self.environment
    }
}

impl<P: Protocol> DerefMut for Effects<P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Environment {
        &mut self.environment
    }
}
