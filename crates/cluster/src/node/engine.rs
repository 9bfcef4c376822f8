//! A loop as the client code polled on it sees it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::{Poll, Waker};

use muesli_core::client::{Direct, Engine, MakeTask, Task, ValuesOut};
use muesli_core::deadlines::{DeadlineId, Due};
use muesli_core::{
    Answer, Catalog, Failure, Nanos, NodeId, OpId, Operation, Outcome, SmallBytes, SpaceId, Step,
    Txn, TxnId,
};

use crate::node::clock::ProcessClock;
use crate::node::loop_state::LoopState;

/// After so many transactions in one turn, tasks are asked to let others run.
const BEGINS_PER_TICK: u32 = 64;

/// A loop's machine behind the client port.
pub(crate) struct LoopEngine {
    pub database: u64,
    pub inner: RefCell<LoopState>,
    /// Tasks spawned by tasks, taken in after the round.
    pub spawned: RefCell<Vec<Task>>,
    pub begins: Cell<u32>,
    /// Whether no transaction may begin any more.
    pub closing: Cell<bool>,
    /// The node panicked in the middle of a step: nothing of it can be relied on.
    pub broken: Cell<bool>,
    pub clock: ProcessClock,
}

/// Dropped where a panic leaves a step of the node; a step that ends forgets it.
struct StepGuard<'a>(&'a Cell<bool>);

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

impl LoopEngine {
    pub fn new(database: u64, inner: LoopState, clock: ProcessClock) -> LoopEngine {
        LoopEngine {
            database,
            inner: RefCell::new(inner),
            spawned: RefCell::new(Vec::new()),
            begins: Cell::new(0),
            closing: Cell::new(false),
            broken: Cell::new(false),
            clock,
        }
    }

    fn step<T>(&self, step: impl FnOnce(&mut LoopState) -> T) -> T {
        let inner = &mut *self.inner.borrow_mut();
        let in_step = StepGuard(&self.broken);
        let answer = step(inner);
        inner.machine.perform(&mut inner.outside);
        std::mem::forget(in_step);
        answer
    }
}

impl Engine for LoopEngine {
    fn database(&self) -> u64 {
        self.database
    }

    fn operate(&self, operation: Operation) -> Step {
        if operation.begins() {
            if self.closing.get() {
                return Step::Done(Err(Failure::Closed));
            }
            self.begins.set(self.begins.get() + 1);
        }
        // A history wants the time of every begin and end; else the turn's is near enough.
        if operation.is_timed() {
            let environment = &mut *self.inner.borrow_mut();
            let environment = environment.machine.environment_mut();
            if environment.recorder.is_some() {
                environment.now = self.clock.now();
            }
        }
        self.step(|inner| inner.machine.operate(operation))
    }

    fn peek(&self, txn: Txn, space: SpaceId, keys: &[SmallBytes], out: ValuesOut<'_>) -> bool {
        self.step(|inner| inner.machine.peek(txn, space, keys, out))
    }

    fn session_token(&self) -> Result<Option<(NodeId, SmallBytes)>, Failure> {
        Ok(self.inner.borrow().machine.session_token())
    }

    fn adopt(&self, session_token: &SmallBytes) -> Result<(), Failure> {
        self.inner.borrow_mut().machine.adopt(session_token);
        Ok(())
    }

    fn catalog(&self) -> Result<Arc<Catalog>, Failure> {
        Ok(self.inner.borrow().machine.catalog().clone())
    }

    /// Bodies that are plain closures run where data are.
    fn direct(&self, _: &mut dyn FnMut(&mut dyn Direct)) {}

    fn deadline(&self, at: Nanos, due: Due) -> DeadlineId {
        self.inner.borrow_mut().outside.alarms.deadlines.set(at, due)
    }

    fn take_back(&self, deadline: DeadlineId) {
        self.inner.borrow_mut().outside.alarms.deadlines.take_back(deadline);
    }

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.inner.borrow().machine.outcome(txn)
    }

    fn sleep(&self, duration: Nanos) -> OpId {
        let inner = &mut *self.inner.borrow_mut();
        let until = inner.now() + duration;
        inner.outside.alarms.sleep(until)
    }

    fn poll(&self, op: OpId, waker: &Waker) -> Poll<Result<Answer, Failure>> {
        self.inner.borrow_mut().outside.operations.poll(op, waker)
    }

    fn forget(&self, op: OpId) {
        self.inner.borrow_mut().outside.operations.forget(op);
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn random(&self) -> u64 {
        self.inner.borrow_mut().random.u64(..)
    }

    fn should_yield(&self) -> bool {
        self.begins.get() >= BEGINS_PER_TICK
    }

    fn spawn(&self, make: MakeTask) {
        self.spawned.borrow_mut().push(make());
    }
}
