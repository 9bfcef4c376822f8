//! A loop's node with what surrounds it, as the engine that its tasks call.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use muesli_core::client::{Direct, Engine, Task};
use muesli_core::deadlines::{DeadlineId, Due};
use muesli_core::operations::{Alarm, Alarms, Operations};
use muesli_core::{
    Answer, Catalog, Committed, Effect, Effects, Envelope, Failure, Nanos, Node, NodeId, OpId,
    Operation, Outcome, Protocol, SmallBytes, SpaceId, Step, Txn, TxnId, TxnOptions,
};

use super::signal::Signal;

/// After so many transactions in one turn tasks are asked to let others run; and before, when
/// messages wait on either side: another loop's transaction holds locks until they are moved.
const BEGINS_PER_TURN: u32 = 64;

/// The node of a loop, with what it waits for and what it has to say.
pub(super) struct Machine<P: Protocol> {
    pub node: Node<P>,
    pub effects: Effects<P>,
    pub operations: Operations,
    pub alarms: Alarms,
    /// Messages to other loops, by loop.
    pub out: Vec<VecDeque<Envelope<P::Message>>>,
    /// Whether `out` got something since the last turn.
    pub has_outgoing: bool,
    pub messages: u64,
    /// The node panicked in the middle of a step: nothing of it can be relied on.
    pub broken: Rc<Cell<bool>>,
    random: fastrand::Rng,
}

/// Dropped where a panic leaves a step of the node; a step that ends forgets it.
struct InStep<'a>(&'a Cell<bool>);

impl Drop for InStep<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// Runs a step of the node; if it panics, `$broken` is set.
macro_rules! step {
    ($broken:expr, $step:expr) => {{
        let in_step = InStep(&$broken);
        let answer = $step;
        std::mem::forget(in_step);
        answer
    }};
}

impl<P: Protocol> Machine<P> {
    pub fn new(node: Node<P>, effects: Effects<P>, loops: usize) -> Machine<P> {
        Machine {
            node,
            effects,
            operations: Operations::default(),
            alarms: Alarms::default(),
            out: (0..loops).map(|_| VecDeque::new()).collect(),
            has_outgoing: false,
            messages: 0,
            broken: Rc::default(),
            random: fastrand::Rng::new(),
        }
    }

    /// Performs what the node asked for. Nothing is durable here, so nothing waits.
    #[inline]
    pub fn perform(&mut self) {
        if !self.effects.list.is_empty() {
            self.perform_all();
        }
    }

    fn perform_all(&mut self) {
        let mut list = std::mem::take(&mut self.effects.list);
        for effect in list.drain(..) {
            match effect {
                Effect::Send { envelope, .. } => {
                    self.messages += 1;
                    self.has_outgoing = true;
                    self.out[envelope.to.node.0 as usize].push_back(envelope);
                }
                Effect::Complete { op, result, .. } => self.operations.answer(op, result),
                Effect::SetTimer { role, timer, after } => {
                    self.alarms.set_timer(self.effects.now, role, timer, after);
                }
                Effect::Log { .. } => unreachable!("an embedded database logs nothing"),
            }
        }
        self.effects.list = list;
    }

    /// Rings the alarms that are due; true if there were any.
    pub fn ring_alarms(&mut self) -> bool {
        let mut any = self.meet_deadlines();
        while let Some(alarm) = self.alarms.due(self.effects.now) {
            any = true;
            match alarm {
                Alarm::Sleep(op) => self.operations.answer(op, Ok(Answer::Awake)),
                Alarm::Timer(role, timer) => {
                    self.node.timer(role, timer, &mut self.effects);
                    self.perform();
                }
            }
        }
        any
    }
}

impl<P: Protocol> Machine<P> {
    /// Does what is due at deadlines that have come; true if there were any.
    fn meet_deadlines(&mut self) -> bool {
        let due = self.alarms.deadlines.due(self.effects.now);
        let any = !due.is_empty();
        for due in due {
            match due {
                Due::Wake(waker) => waker.wake(),
                Due::Abort(txn, after_ms) => {
                    let why = Failure::TransactionTimeout { after_ms };
                    self.node.operate(Operation::Abort(txn, why), &mut self.effects);
                    self.perform();
                }
            }
        }
        any
    }

    /// Ends the transactions that take operations.
    pub fn abort_open(&mut self) {
        self.node.abort_open(&mut self.effects);
        self.perform();
    }

    /// Does the next of what is left over; false: nothing is.
    pub fn go_on(&mut self) -> bool {
        let Some((role, timer)) = self.alarms.left_over() else { return false };
        self.node.timer(role, timer, &mut self.effects);
        self.perform();
        true
    }
}

impl<P: Protocol> Direct for Machine<P> {
    fn begin(&mut self, options: TxnOptions) -> Result<Txn, Failure> {
        step!(self.broken, self.node.begin(options, &mut self.effects))
    }

    fn get(&mut self, txn: Txn, space: SpaceId, key: &SmallBytes) -> Step<Option<SmallBytes>> {
        step!(self.broken, self.node.get(txn, space, key, &mut self.effects))
    }

    fn peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        step!(self.broken, self.node.peek(txn, space, keys, &mut self.effects, out))
    }

    fn put(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
    ) -> Result<(), Failure> {
        step!(self.broken, self.node.put(txn, space, key, value, &mut self.effects))
    }

    fn commit(&mut self, txn: Txn) -> Step<Committed> {
        step!(self.broken, self.node.commit(txn, &mut self.effects))
    }

    fn rollback(&mut self, txn: Txn) {
        step!(self.broken, self.node.rollback(txn, &mut self.effects))
    }

    fn forget(&mut self, op: OpId) {
        self.operations.forget(op);
    }
}

/// The engine of a loop.
pub(super) struct State<P: Protocol> {
    pub database: u64,
    pub machine: RefCell<Machine<P>>,
    /// Tasks spawned by tasks, taken in after the round.
    pub spawned: RefCell<Vec<Task>>,
    pub begins: Cell<u32>,
    /// Whether no transaction may begin any more.
    pub closing: Cell<bool>,
    broken: Rc<Cell<bool>>,
    signal: Arc<Signal>,
    clock: quanta::Clock,
    origin: u64,
    /// A history wants the time of every begin and commit; else the turn's is near enough.
    precise: bool,
}

impl<P: Protocol> State<P> {
    pub fn new(
        database: u64,
        machine: Machine<P>,
        signal: Arc<Signal>,
        clock: quanta::Clock,
        origin: u64,
        precise: bool,
    ) -> State<P> {
        State {
            database,
            broken: machine.broken.clone(),
            machine: RefCell::new(machine),
            spawned: RefCell::new(Vec::new()),
            begins: Cell::new(0),
            closing: Cell::new(false),
            signal,
            clock,
            origin,
            precise,
        }
    }

    /// The time since the database was opened.
    #[inline]
    pub fn read_clock(&self) -> Nanos {
        Nanos(self.clock.delta_as_nanos(self.origin, self.clock.raw()))
    }

    #[inline]
    fn step<T>(&self, f: impl FnOnce(&mut Node<P>, &mut Effects<P>) -> T) -> T {
        let machine = &mut *self.machine.borrow_mut();
        step!(self.broken, {
            let answer = f(&mut machine.node, &mut machine.effects);
            machine.perform();
            answer
        })
    }
}

impl<P: Protocol> Engine for State<P> {
    #[inline]
    fn database(&self) -> u64 {
        self.database
    }

    #[inline]
    fn operate(&self, operation: Operation) -> Step {
        if operation.begins() {
            if self.closing.get() {
                return Step::Done(Err(Failure::Closed));
            }
            self.begins.set(self.begins.get() + 1);
        }
        if self.precise && operation.is_timed() {
            self.machine.borrow_mut().effects.now = self.read_clock();
        }
        self.step(|node, effects| node.operate(operation, effects))
    }

    fn peek(
        &self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        let machine = &mut *self.machine.borrow_mut();
        step!(self.broken, machine.node.peek(txn, space, keys, &mut machine.effects, out))
    }

    fn past(&self) -> Result<Option<(NodeId, SmallBytes)>, Failure> {
        Ok(self.machine.borrow().node.past())
    }

    fn adopt(&self, past: &SmallBytes) -> Result<(), Failure> {
        self.machine.borrow_mut().node.adopt(past);
        Ok(())
    }

    fn catalog(&self) -> Result<Arc<Catalog>, Failure> {
        Ok(self.machine.borrow().node.catalog().clone())
    }

    fn deadline(&self, at: Nanos, due: Due) -> Option<DeadlineId> {
        Some(self.machine.borrow_mut().alarms.deadlines.set(at, due))
    }

    fn take_back(&self, deadline: DeadlineId) {
        self.machine.borrow_mut().alarms.deadlines.take_back(deadline);
    }

    fn direct(&self, run: &mut dyn FnMut(&mut dyn Direct)) {
        if self.closing.get() {
            return;
        }
        self.begins.set(self.begins.get() + 1);
        let machine = &mut *self.machine.borrow_mut();
        if self.precise {
            machine.effects.now = self.read_clock();
        }
        run(machine);
        machine.perform();
    }

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.machine.borrow().node.outcome(txn)
    }

    fn sleep(&self, duration: Nanos) -> OpId {
        let machine = &mut *self.machine.borrow_mut();
        machine.alarms.sleep(machine.effects.now + duration)
    }

    fn poll(&self, op: OpId, waker: &Waker) -> Poll<Result<Answer, Failure>> {
        self.machine.borrow_mut().operations.poll(op, waker)
    }

    fn forget(&self, op: OpId) {
        self.machine.borrow_mut().operations.forget(op);
    }

    fn now(&self) -> Nanos {
        self.read_clock()
    }

    fn random(&self) -> u64 {
        self.machine.borrow_mut().random.u64(..)
    }

    fn should_yield(&self) -> bool {
        self.begins.get() >= BEGINS_PER_TURN
            || self.signal.has_mail()
            || self.machine.borrow().has_outgoing
    }

    fn spawn(&self, task: Task) {
        self.spawned.borrow_mut().push(task);
    }
}
