//! A host as the clients polled on it see it.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Poll, Waker};

use muesli_core::client::{Direct, Engine, MakeTask};
use muesli_core::deadlines::{DeadlineId, Due};
use muesli_core::{
    Answer, AnyMachine, Catalog, Doubt, Failure, Nanos, NodeId, OpId, Operation, Outcome,
    SmallBytes, SpaceId, Step, Txn, TxnId,
};

use super::Host;
use super::surroundings::Surroundings;

/// A host behind the client port. The world borrows it between polls, clients within.
pub(in crate::world) struct HostEngine {
    pub(in crate::world) database: u64,
    pub(in crate::world) host: RefCell<Host>,
}

/// After so many operations of one poll, a task should let others run.
const OPERATIONS_A_POLL: u32 = 128;

impl HostEngine {
    /// Asks the node something, if it is up. It counts as work of whoever asks.
    fn ask<T>(
        &self,
        ask: impl FnOnce(&mut dyn AnyMachine, &mut Surroundings) -> T,
    ) -> Result<T, Failure> {
        let host = &mut *self.host.borrow_mut();
        host.outside.load.operations += 1;
        host.polled_operations += 1;
        let Host { machine: Some(machine), outside, .. } = host else {
            return Err(Failure::Closed);
        };
        Ok(ask(&mut **machine, outside))
    }

    /// Lets the node know the moment, if a history wants it.
    fn tell_moment(&self) {
        let mut host = self.host.borrow_mut();
        if host.environment().recorder.is_some() {
            host.tell_moment();
        }
    }
}

impl Engine for HostEngine {
    fn database(&self) -> u64 {
        self.database
    }

    fn operate(&self, operation: Operation) -> Step {
        if operation.is_timed() {
            self.tell_moment();
        }
        let asked = self.ask(|machine, outside| {
            let step = machine.operate(operation);
            if let Step::Wait(op) = step {
                outside.operations.open(op);
            }
            step
        });
        asked.unwrap_or_else(|closed| Step::Done(Err(closed)))
    }

    /// Every operation costs time here, and is asked for by itself.
    fn peek(&self, _: Txn, _: SpaceId, _: &[SmallBytes], _: &mut [Option<SmallBytes>]) -> bool {
        false
    }

    fn session_token(&self) -> Result<Option<(NodeId, SmallBytes)>, Failure> {
        self.ask(|machine, _| machine.session_token())
    }

    fn adopt(&self, session_token: &SmallBytes) -> Result<(), Failure> {
        self.ask(|machine, _| machine.adopt(session_token))
    }

    fn catalog(&self) -> Result<Arc<Catalog>, Failure> {
        self.ask(|machine, _| machine.catalog().clone())
    }

    fn deadline(&self, at: Nanos, due: Due) -> DeadlineId {
        let host = &mut *self.host.borrow_mut();
        let now = host.environment().now;
        let Surroundings { deadlines, operations, outgoing, .. } = &mut host.outside;
        let deadline = deadlines.set(at, due);
        outgoing.sleeps.extend(deadlines.arm(now, operations));
        deadline
    }

    fn take_back(&self, deadline: DeadlineId) {
        self.host.borrow_mut().outside.deadlines.take_back(deadline);
    }

    fn direct(&self, _: &mut dyn FnMut(&mut dyn Direct)) {}

    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::NotKnown(Doubt::Elsewhere)
    }

    fn sleep(&self, duration: Nanos) -> OpId {
        let mut host = self.host.borrow_mut();
        let op = host.outside.operations.open_sleep();
        host.outside.outgoing.sleeps.push((op, duration));
        op
    }

    fn poll(&self, op: OpId, waker: &Waker) -> Poll<Result<Answer, Failure>> {
        self.host.borrow_mut().outside.operations.poll(op, waker)
    }

    fn forget(&self, op: OpId) {
        self.host.borrow_mut().forget(op);
    }

    fn now(&self) -> Nanos {
        self.host.borrow().environment().now
    }

    fn random(&self) -> u64 {
        self.host.borrow_mut().random.bits()
    }

    fn should_yield(&self) -> bool {
        self.host.borrow().polled_operations >= OPERATIONS_A_POLL
    }

    fn spawn(&self, make: MakeTask) {
        let task = make();
        self.host.borrow_mut().outside.outgoing.spawned.push(task);
    }
}
