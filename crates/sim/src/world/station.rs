//! A station: a host as the clients polled on it see it.

use std::cell::RefCell;
use std::task::{Poll, Waker};

use muesli_core::client::{Engine, Task};
use muesli_core::{
    Call, Committed, Effects, Failure, Invoked, Nanos, Node, OpId, OpResult, Protocol, Step, Txn,
    TxnOptions,
};

use super::host::Host;

/// A host behind the client port. The world borrows it between polls, clients within.
pub(super) struct Station<P: Protocol> {
    pub(super) database: u64,
    pub(super) host: RefCell<Host<P>>,
}

/// After so many operations of one poll, a task should let others run.
const OPERATIONS_A_POLL: u32 = 128;

impl<P: Protocol> Station<P> {
    fn operate<T>(
        &self,
        operation: impl FnOnce(&mut Node<P>, &mut Effects<P>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let host = &mut *self.host.borrow_mut();
        host.load.operations += 1;
        host.polled_operations += 1;
        match &mut host.node {
            Some(node) => operation(node, &mut host.effects),
            None => Err(Failure::Closed),
        }
    }

    fn step<T>(&self, step: impl FnOnce(&mut Node<P>, &mut Effects<P>) -> Step<T>) -> Step<T> {
        match self.operate(|node, effects| Ok(step(node, effects))) {
            Ok(Step::Wait(op)) => {
                self.host.borrow_mut().operations.open(op);
                Step::Wait(op)
            }
            Ok(done) => done,
            Err(failure) => Step::Done(Err(failure)),
        }
    }

    /// Lets the node know the moment, if a history wants it.
    fn tell_moment(&self) {
        let mut host = self.host.borrow_mut();
        if host.effects.recorder.is_some() {
            host.tell_moment();
        }
    }
}

impl<P: Protocol> Engine for Station<P> {
    muesli_core::give_operations_to_the_node!(step, operate);

    fn database(&self) -> u64 {
        self.database
    }

    fn begin(&self, options: TxnOptions) -> Result<Txn, Failure> {
        self.tell_moment();
        self.operate(|node, effects| node.begin(options, effects))
    }

    fn invoke(&self, options: TxnOptions, call: Call) -> Step<Invoked> {
        self.tell_moment();
        self.step(|node, effects| node.invoke(options, call, effects))
    }

    fn commit(&self, txn: Txn) -> Step<Committed> {
        self.tell_moment();
        self.step(|node, effects| node.commit(txn, effects))
    }

    fn rollback(&self, txn: Txn) {
        self.tell_moment();
        // Where the node is down the transaction is gone with it.
        let _ = self.operate(|node, effects| {
            node.rollback(txn, effects);
            Ok(())
        });
    }

    fn sleep(&self, duration: Nanos) -> OpId {
        let mut host = self.host.borrow_mut();
        let op = host.operations.open_sleep();
        host.outgoing.sleeps.push((op, duration));
        op
    }

    fn poll(&self, op: OpId, waker: &Waker) -> Poll<OpResult> {
        self.host.borrow_mut().operations.poll(op, waker)
    }

    fn forget(&self, op: OpId) {
        self.host.borrow_mut().forget(op);
    }

    fn now(&self) -> Nanos {
        self.host.borrow().effects.now
    }

    fn random(&self) -> u64 {
        self.host.borrow_mut().random.bits()
    }

    fn should_yield(&self) -> bool {
        self.host.borrow().polled_operations >= OPERATIONS_A_POLL
    }

    fn spawn(&self, task: Task) {
        self.host.borrow_mut().outgoing.spawned.push(task);
    }
}
