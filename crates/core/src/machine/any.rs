//! The machine of a node, whatever its protocol.

use std::any::Any;
use std::sync::Arc;

use super::driver::Through;
use super::{BatchCounts, Driver, Machine, Note, RecoverableMachine};
use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::client::ValuesOut;
use crate::contract::{Envelope, Environment, Operation, Protocol, Step};
use crate::deadlines::Due;
use crate::ids::{NodeId, RepositoryId, SpaceId, Timestamp, Txn, TxnId};
use crate::judgement::{Rejection, Rejections, Sender};
use crate::lag::Lag;
use crate::memory::Held;
use crate::outcome::Outcome;
use crate::positions::LogPosition;
use crate::recorder::Recorder;
use crate::recorder::partition_sizes::{SizeCursor, SizePage};
use crate::replica_role::ReplicaRole;
use crate::roles::Address;
use crate::time::Nanos;
use crate::timers::MachineTimer;
use crate::wire::{Reader, Wire, WireError};

/// Which version chains a repository has: space, key, versions.
pub type Chains = Vec<(SpaceId, SmallBytes, Vec<Timestamp>)>;

/// A [`Machine`] whose driver does not know its protocol. What follows from a call that is given
/// the driver is performed before that returns; what follows from others waits for
/// [`perform`](Self::perform).
pub trait AnyMachine: RecoverableMachine {
    /// The machine itself, for tests that know its protocol: a `Machine<P, Note>`.
    fn as_any(&self) -> &dyn Any;
    /// What the node is given beside inputs.
    fn environment(&self) -> &Environment;
    /// The same, to be changed.
    fn environment_mut(&mut self) -> &mut Environment;

    /// [`Node::start`](crate::node::Node::start), with links to these.
    fn start(&mut self, linked: &[NodeId]);

    /// [`Machine::perform`].
    fn perform(&mut self, driver: &mut dyn Driver);
    /// [`Node::operate`](crate::node::Node::operate).
    fn operate(&mut self, operation: Operation) -> Step;
    /// [`Node::peek`](crate::node::Node::peek).
    fn peek(&mut self, txn: Txn, space: SpaceId, keys: &[SmallBytes], out: ValuesOut<'_>) -> bool;
    /// [`Node::receive`](crate::node::Node::receive), of an encoded message.
    ///
    /// # Errors
    /// The bytes are no message. Inside: it is left out, for this reason.
    fn receive(
        &mut self,
        sender: Sender,
        addresses: (Address, Address),
        message: &mut Reader<'_>,
        driver: &mut dyn Driver,
    ) -> Result<Result<(), Rejection>, WireError>;
    /// [`Machine::timer`].
    fn timer(&mut self, timer: MachineTimer, driver: &mut dyn Driver);
    /// [`Machine::meet`].
    fn meet(&mut self, due: Due, driver: &mut dyn Driver);
    /// [`Node::place`](crate::node::Node::place).
    fn place(&mut self, catalog: Arc<Catalog>, driver: &mut dyn Driver);
    /// [`Node::linked`](crate::node::Node::linked).
    fn linked(&mut self, node: NodeId, driver: &mut dyn Driver);
    /// [`Machine::unlinked`].
    fn unlinked(&mut self, node: NodeId, driver: &mut dyn Driver);
    /// [`Node::leave`](crate::node::Node::leave).
    fn leave(&mut self, driver: &mut dyn Driver);
    /// [`Node::abort_open`](crate::node::Node::abort_open).
    fn abort_open(&mut self, driver: &mut dyn Driver);
    /// [`Node::adopt`](crate::node::Node::adopt).
    fn adopt(&mut self, session_token: &SmallBytes);

    /// [`Machine::learn_stable`].
    fn learn_stable(&mut self, stable: LogPosition);
    /// [`Machine::let_go`].
    fn let_go(&mut self, driver: &mut dyn Driver) -> bool;
    /// [`Machine::send_held`].
    fn send_held(&mut self, driver: &mut dyn Driver) -> bool;
    /// [`Machine::batch_counts`].
    fn batch_counts(&self) -> BatchCounts;
    /// [`Machine::waits_for`].
    fn waits_for(&self) -> Option<LogPosition>;
    /// [`Machine::stable`].
    fn stable(&self) -> LogPosition;
    /// [`Machine::has_left_over`].
    fn has_left_over(&self) -> bool;
    /// [`Machine::go_on`].
    fn go_on(&mut self, driver: &mut dyn Driver) -> bool;

    /// [`Node::id`](crate::node::Node::id).
    fn id(&self) -> NodeId;
    /// [`Node::catalog`](crate::node::Node::catalog).
    fn catalog(&self) -> &Arc<Catalog>;
    /// [`Node::issued`](crate::node::Node::issued).
    fn issued(&self) -> Timestamp;
    /// [`Node::session_token`](crate::node::Node::session_token).
    fn session_token(&self) -> Option<(NodeId, SmallBytes)>;
    /// [`Node::outcome`](crate::node::Node::outcome).
    fn outcome(&self, txn: TxnId) -> Outcome;
    /// [`Node::unfinished`](crate::node::Node::unfinished).
    fn unfinished(&self) -> (usize, usize);
    /// How many repositories are here.
    fn repositories(&self) -> usize;
    /// [`Node::replica_roles`](crate::node::Node::replica_roles).
    fn replica_roles(&self) -> Vec<(RepositoryId, ReplicaRole)>;
    /// [`Node::lags`](crate::node::Node::lags).
    fn lags(&self) -> Vec<(RepositoryId, Lag)>;
    /// [`Node::figures`](crate::node::Node::figures).
    fn figures(&self) -> Vec<(String, u64)>;
    /// [`Node::partition_sizes`](crate::node::Node::partition_sizes).
    fn partition_sizes(&self, from: SizeCursor) -> SizePage;
    /// [`Node::memory`](crate::node::Node::memory).
    fn memory(&self) -> Held;
    /// [`Node::oldest_snapshot`](crate::node::Node::oldest_snapshot).
    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)>;
    /// [`Node::rejections`](crate::node::Node::rejections).
    fn rejections(&self) -> Rejections;
    /// [`Node::record_running`](crate::node::Node::record_running).
    fn record_running(&self, recorder: &mut Recorder);
    /// [`Node::chains`](crate::node::Node::chains).
    fn chains(&self) -> Vec<(RepositoryId, Chains)>;
    /// [`Node::assert_invariants`](crate::node::Node::assert_invariants).
    ///
    /// # Panics
    /// Something does not hold that a role says of its own state.
    fn assert_invariants(&self);
}

impl<P: Protocol> AnyMachine for Machine<P, Note> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn environment(&self) -> &Environment {
        &self.effects.environment
    }

    fn environment_mut(&mut self) -> &mut Environment {
        &mut self.effects.environment
    }

    fn start(&mut self, linked: &[NodeId]) {
        self.node.start(&mut self.effects);
        linked.iter().for_each(|other| self.node.linked(*other, &mut self.effects));
    }

    fn perform(&mut self, driver: &mut dyn Driver) {
        Machine::perform(self, &mut Through(driver));
    }

    fn operate(&mut self, operation: Operation) -> Step {
        self.node.operate(operation, &mut self.effects)
    }

    fn peek(&mut self, txn: Txn, space: SpaceId, keys: &[SmallBytes], out: ValuesOut<'_>) -> bool {
        self.node.peek(txn, space, keys, &mut self.effects, out)
    }

    fn receive(
        &mut self,
        sender: Sender,
        (from, to): (Address, Address),
        message: &mut Reader<'_>,
        driver: &mut dyn Driver,
    ) -> Result<Result<(), Rejection>, WireError> {
        let message = P::Message::decode(message)?;
        let envelope = Envelope { from, to, message };
        Ok(Machine::receive(self, sender, envelope, &mut Through(driver)))
    }

    fn timer(&mut self, timer: MachineTimer, driver: &mut dyn Driver) {
        Machine::timer(self, timer, &mut Through(driver));
    }

    fn meet(&mut self, due: Due, driver: &mut dyn Driver) {
        Machine::meet(self, due, &mut Through(driver));
    }

    fn place(&mut self, catalog: Arc<Catalog>, driver: &mut dyn Driver) {
        self.node.place(catalog, &mut self.effects);
        AnyMachine::perform(self, driver);
    }

    fn linked(&mut self, node: NodeId, driver: &mut dyn Driver) {
        self.node.linked(node, &mut self.effects);
        AnyMachine::perform(self, driver);
    }

    fn unlinked(&mut self, node: NodeId, driver: &mut dyn Driver) {
        Machine::unlinked(self, node, &mut Through(driver));
    }

    fn leave(&mut self, driver: &mut dyn Driver) {
        self.node.leave(&mut self.effects);
        AnyMachine::perform(self, driver);
    }

    fn abort_open(&mut self, driver: &mut dyn Driver) {
        self.node.abort_open(&mut self.effects);
        AnyMachine::perform(self, driver);
    }

    fn adopt(&mut self, session_token: &SmallBytes) {
        self.node.adopt(session_token);
    }

    fn learn_stable(&mut self, stable: LogPosition) {
        Machine::learn_stable(self, stable);
    }

    fn let_go(&mut self, driver: &mut dyn Driver) -> bool {
        Machine::let_go(self, &mut Through(driver))
    }

    fn send_held(&mut self, driver: &mut dyn Driver) -> bool {
        Machine::send_held(self, &mut Through(driver))
    }

    fn batch_counts(&self) -> BatchCounts {
        Machine::batch_counts(self)
    }

    fn waits_for(&self) -> Option<LogPosition> {
        Machine::waits_for(self)
    }

    fn stable(&self) -> LogPosition {
        Machine::stable(self)
    }

    fn has_left_over(&self) -> bool {
        Machine::has_left_over(self)
    }

    fn go_on(&mut self, driver: &mut dyn Driver) -> bool {
        Machine::go_on(self, &mut Through(driver))
    }

    fn id(&self) -> NodeId {
        self.node.id()
    }

    fn catalog(&self) -> &Arc<Catalog> {
        self.node.catalog()
    }

    fn issued(&self) -> Timestamp {
        self.node.issued()
    }

    fn session_token(&self) -> Option<(NodeId, SmallBytes)> {
        self.node.session_token()
    }

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.node.outcome(txn)
    }

    fn unfinished(&self) -> (usize, usize) {
        self.node.unfinished()
    }

    fn repositories(&self) -> usize {
        self.node.participants().len()
    }

    fn replica_roles(&self) -> Vec<(RepositoryId, ReplicaRole)> {
        self.node.replica_roles()
    }

    fn lags(&self) -> Vec<(RepositoryId, Lag)> {
        self.node.lags()
    }

    fn figures(&self) -> Vec<(String, u64)> {
        self.node.figures()
    }

    fn partition_sizes(&self, from: SizeCursor) -> SizePage {
        self.node.partition_sizes(from)
    }

    fn memory(&self) -> Held {
        self.node.memory()
    }

    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        self.node.oldest_snapshot()
    }

    fn rejections(&self) -> Rejections {
        self.node.rejections()
    }

    fn record_running(&self, recorder: &mut Recorder) {
        self.node.record_running(recorder);
    }

    fn chains(&self) -> Vec<(RepositoryId, Chains)> {
        self.node.chains()
    }

    fn assert_invariants(&self) {
        self.node.assert_invariants();
    }
}
