//! A loop's node with what surrounds it, as the engine that its tasks call.
//!
//! It is all that a loop has but its tasks, and moves between threads: to whoever is in the loop's
//! state.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use muesli_core::client::{Answered, Direct, Engine, MakeTask, ValuesOut};
use muesli_core::deadlines::{DeadlineId, Due};
use muesli_core::operations::{Alarm, Alarms, PendingOperations};
use muesli_core::{
    Answer, Catalog, Committed, Effects, Envelope, Failure, Machine, MachineTimer, Nanos, Node,
    NodeId, OpId, Operation, Outcome, Outside, Protocol, Put, RecoverableMachine, Role, SmallBytes,
    SpaceId, Step, Timestamp, Txn, TxnId, TxnOptions,
};

use super::LoopInbox;
use super::links::delayed_messages::DelayedMessages;
use super::links::neighbours::{LoopClock, LoopNeighbours};
use super::links::ring::RingLinks;
use super::links::signal::Signal;
use super::log::{LogFailure, LoopLog};

/// After so many transactions in one turn tasks are asked to let others run; and before, when
/// messages wait on either side: another loop's transaction holds locks until they are moved.
const BEGINS_PER_TICK: u32 = 64;

/// The node of a loop, with what surrounds it.
pub(super) struct LoopState<P: Protocol> {
    pub machine: Machine<P>,
    pub outside: Mailboxes<P::Message>,
    pub links: RingLinks<P>,
    pub delayed: DelayedMessages<Envelope<P::Message>>,
    /// When the loop's own thread has its next tick if nobody calls it.
    pub wakes_at: Nanos,
    /// The node panicked in the middle of a step: nothing of it can be relied on.
    broken: Cell<bool>,
    random: fastrand::Rng,
}

/// What the clients on a loop wait for, and what its node has to say to other loops.
pub(super) struct Mailboxes<M> {
    pub operations: PendingOperations,
    pub alarms: Alarms,
    /// Messages to other loops, by loop.
    pub out: Vec<VecDeque<Envelope<M>>>,
    /// Whether `out` got something since the last turn.
    pub has_outgoing: bool,
    pub messages: u64,
    /// How often messages were handed over to another loop, all that there were for it together.
    pub packets: u64,
    /// Where records go, if the data last. In memory no records are made, and nothing waits.
    pub log: Option<Box<LoopLog>>,
}

impl<P: Protocol> Outside<P> for Mailboxes<P::Message> {
    type Note = ();

    #[inline]
    fn begin(&mut self, _: &mut Effects<P>) {}

    #[inline]
    fn send(&mut self, _: &Node<P>, envelope: Envelope<P::Message>) {
        self.messages += 1;
        self.has_outgoing = true;
        // Others than loops are clients that a server had before: what is said to them is lost.
        if let Some(out) = self.out.get_mut(envelope.to.node.0 as usize) {
            out.push_back(envelope);
        }
    }

    fn append(&mut self, role: Role, record: P::Record) {
        let log = self.log.as_mut().expect("records are made where there is a log");
        log.append(role, &record);
    }

    fn arm(&mut self, now: Nanos, timer: MachineTimer, after: Nanos) {
        self.alarms.set(now + after, Alarm::Timer(timer));
    }

    #[inline]
    fn note(&mut self, _: &Result<Answer, Failure>, _waits: bool) {}

    #[inline]
    fn answer(&mut self, _: &Effects<P>, op: OpId, result: Result<Answer, Failure>, (): ()) {
        self.operations.answer(op, result);
    }
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

impl<P: Protocol> LoopState<P> {
    /// Of a node that has replayed its log, if it has one.
    pub fn new(
        machine: Machine<P>,
        log: Option<LoopLog>,
        links: RingLinks<P>,
        delays: &[Nanos],
    ) -> LoopState<P> {
        let outside = Mailboxes {
            operations: PendingOperations::default(),
            alarms: Alarms::default(),
            out: delays.iter().map(|_| VecDeque::new()).collect(),
            has_outgoing: false,
            messages: 0,
            packets: 0,
            log: log.map(Box::new),
        };
        LoopState {
            machine,
            outside,
            links,
            delayed: DelayedMessages::new(delays),
            wakes_at: Nanos(0),
            broken: Cell::new(false),
            random: fastrand::Rng::new(),
        }
    }

    /// Performs what the node asked for.
    #[inline]
    pub fn perform(&mut self) {
        self.machine.perform(&mut self.outside);
    }

    /// Rings the alarms that are due; true if there were any.
    pub fn ring_alarms(&mut self) -> bool {
        let LoopState { machine, outside, .. } = self;
        let mut any = false;
        for due in outside.alarms.deadlines.due(machine.effects.now) {
            any = true;
            machine.meet(due, outside);
        }
        while let Some(alarm) = outside.alarms.due(machine.effects.now) {
            any = true;
            match alarm {
                Alarm::Sleep(op) => outside.operations.answer(op, Ok(Answer::Awake)),
                Alarm::Timer(timer) => machine.timer(timer, outside),
            }
        }
        any
    }

    /// Ends the transactions that take operations.
    pub fn abort_open(&mut self) {
        self.machine.node.abort_open(&mut self.machine.effects);
        self.perform();
    }

    /// Sends what is held back for batches. Whether there was anything.
    pub fn send_held(&mut self) -> bool {
        self.machine.send_held(&mut self.outside)
    }

    /// Does the next of what is left over; false: nothing is.
    pub fn go_on(&mut self) -> bool {
        self.machine.go_on(&mut self.outside)
    }

    /// When something is to be done next, at `now`.
    pub fn next(&self, now: Nanos) -> Option<Nanos> {
        if self.machine.has_left_over() {
            return Some(Nanos(0));
        }
        let log = self.outside.log.as_ref().and_then(|log| log.next(now));
        self.outside.alarms.next().into_iter().chain(log).chain(self.delayed.next()).min()
    }

    /// Whether what was done in this tick is to be settled with a log.
    pub fn has_log(&self) -> bool {
        self.outside.log.is_some()
    }

    /// Has made stable what something waits for, lets go what waited for what is stable now, and
    /// goes on with a checkpoint. Whether anything was let go.
    ///
    /// # Errors
    /// The log failed: nothing more may be let go, and the loop must end.
    #[cold]
    pub fn settle(&mut self) -> Result<bool, LogFailure> {
        let LoopState { machine, outside, .. } = self;
        let now = machine.effects.now;
        let mut any = false;
        loop {
            let (waits_for, logged) = (machine.waits_for(), machine.logged());
            let Some(log) = &mut outside.log else { return Ok(any) };
            let Some(stable) = log.settle(waits_for, logged, now)? else { break };
            machine.learn_stable(stable);
            if !machine.let_go(outside) {
                break;
            }
            any = true;
        }
        if let Some(log) = &mut outside.log {
            log.go_on_with_checkpoint(machine, now)?;
        }
        Ok(any)
    }

    /// Has compacted what the loop keeps, where somebody waits for it.
    pub fn compact(&mut self, inbox: &LoopInbox) {
        let waiting = inbox.compactions.lock().unwrap_or_else(|broken| broken.into_inner());
        let waiting = std::mem::take(&mut *{ waiting });
        // Where there is no log nobody waits for one.
        if let Some(log) = &mut self.outside.log {
            waiting.into_iter().for_each(|waiter| log.compact(waiter));
        }
    }

    /// Whether so much waits for the disk that no new work is taken.
    pub fn is_congested(&self) -> bool {
        self.outside.log.as_ref().is_some_and(|log| log.is_congested())
    }

    /// Makes stable what was logged, and ends the log.
    ///
    /// # Errors
    /// The log failed.
    pub fn close_log(&mut self) -> Result<(), LogFailure> {
        self.outside.log.take().map_or(Ok(()), |log| log.close())
    }
}

impl<P: Protocol> Direct for LoopState<P> {
    fn begin(&mut self, options: TxnOptions) -> Result<Txn, Failure> {
        step!(self.broken, self.machine.node.begin(options, &mut self.machine.effects))
    }

    fn get(&mut self, txn: Txn, space: SpaceId, key: &SmallBytes) -> Step<Option<SmallBytes>> {
        step!(self.broken, self.machine.node.get(txn, space, key, &mut self.machine.effects))
    }

    fn peek(&mut self, txn: Txn, space: SpaceId, keys: &[SmallBytes], out: ValuesOut<'_>) -> bool {
        step!(self.broken, self.machine.node.peek(txn, space, keys, &mut self.machine.effects, out))
    }

    fn put(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
    ) -> Result<(), Failure> {
        step!(self.broken, self.machine.node.put(txn, space, key, value, &mut self.machine.effects))
    }

    fn commit(&mut self, txn: Txn) -> Step<Committed> {
        step!(self.broken, self.machine.node.commit(txn, &mut self.machine.effects))
    }

    fn rollback(&mut self, txn: Txn) {
        step!(self.broken, self.machine.node.rollback(txn, &mut self.machine.effects))
    }

    fn forget(&mut self, op: OpId) {
        self.outside.operations.forget(op);
    }
}

/// The engine of a loop.
pub(super) struct EmbeddedEngine<P: Protocol> {
    pub database: u64,
    pub inner: RefCell<LoopState<P>>,
    /// Tasks spawned by tasks, taken in after the round.
    pub spawned: RefCell<Vec<MakeTask>>,
    pub begins: Cell<u32>,
    /// Whether no transaction may begin any more.
    pub closing: Cell<bool>,
    broken: Cell<bool>,
    signal: Arc<Signal>,
    clock: LoopClock,
    pub loops: LoopNeighbours,
    /// Whether what is said to another loop may be done there at once.
    pub exchanges: bool,
    /// A thread is in the state that is not the loop's.
    pub in_visit: Cell<bool>,
    /// Since when.
    pub visit_began: Cell<Nanos>,
    /// How many threads were in the state that are not the loop's.
    pub visits: Cell<u32>,
    /// The loop whose state the thread has as well that is in this one.
    pub entered_from: Cell<Option<usize>>,
    /// A history wants the time of every begin and commit; else the turn's is near enough.
    precise: bool,
}

impl<P: Protocol> EmbeddedEngine<P> {
    pub fn new(
        database: u64,
        inner: LoopState<P>,
        clock: LoopClock,
        (loops, exchanges): (LoopNeighbours, bool),
        precise: bool,
    ) -> EmbeddedEngine<P> {
        EmbeddedEngine {
            database,
            inner: RefCell::new(inner),
            spawned: RefCell::new(Vec::new()),
            begins: Cell::new(0),
            closing: Cell::new(false),
            broken: Cell::new(false),
            signal: loops.inbox().signal.clone(),
            clock,
            loops,
            exchanges,
            in_visit: Cell::new(false),
            visit_began: Cell::new(Nanos(0)),
            visits: Cell::new(0),
            entered_from: Cell::new(None),
            precise,
        }
    }

    /// The largest timestamp that its node is known to have issued in an earlier incarnation.
    pub fn issued(&self) -> Timestamp {
        self.inner.borrow().machine.node.issued()
    }

    /// Whether the node panicked in the middle of a step.
    pub fn is_broken(&self) -> bool {
        self.broken.get() || self.inner.borrow().broken.get()
    }

    #[inline]
    pub fn read_clock(&self) -> Nanos {
        self.clock.read()
    }

    /// Counts a transaction that begins; false where none may any more.
    #[inline]
    fn lets_begin(&self) -> bool {
        self.begins.set(self.begins.get() + 1);
        !self.closing.get()
    }

    /// Has the node know the time of what is done next, where a history wants it.
    #[inline]
    fn tell_time(&self) {
        if self.precise {
            self.inner.borrow_mut().machine.effects.now = self.read_clock();
        }
    }

    #[inline]
    fn step<T>(&self, f: impl FnOnce(&mut Node<P>, &mut Effects<P>) -> T) -> T {
        step!(self.broken, {
            let mut inner = self.inner.borrow_mut();
            let LoopState { machine, .. } = &mut *inner;
            let answer = f(&mut machine.node, &mut machine.effects);
            inner.perform();
            let has_outgoing = inner.outside.has_outgoing;
            drop(inner);
            if has_outgoing && self.exchanges_now() {
                self.exchange();
            }
            answer
        })
    }
}

impl<P: Protocol> Engine for EmbeddedEngine<P> {
    #[inline]
    fn database(&self) -> u64 {
        self.database
    }

    fn operate(&self, operation: Operation) -> Step {
        if operation.begins() && !self.lets_begin() {
            return Step::Done(Err(Failure::Closed));
        }
        if operation.is_timed() {
            self.tell_time();
        }
        self.step(|node, effects| node.operate(operation, effects))
    }

    fn begin(&self, options: TxnOptions) -> Step<Txn> {
        if !self.lets_begin() {
            return Step::Done(Err(Failure::Closed));
        }
        self.tell_time();
        self.step(|node, effects| node.operate(Operation::Begin(options), effects))
            .map(Answer::begun)
    }

    fn put(&self, txn: Txn, put: Put) -> Step<()> {
        self.step(|node, effects| {
            node.operate(Operation::Put(txn, put), effects).map(Answer::written)
        })
    }

    fn commit(&self, txn: Txn) -> Step<Answered> {
        self.tell_time();
        self.step(|node, effects| {
            node.operate(Operation::Commit(txn), effects).map(Answer::answered)
        })
    }

    fn peek(&self, txn: Txn, space: SpaceId, keys: &[SmallBytes], out: ValuesOut<'_>) -> bool {
        let LoopState { machine, .. } = &mut *self.inner.borrow_mut();
        step!(self.broken, machine.node.peek(txn, space, keys, &mut machine.effects, out))
    }

    fn session_token(&self) -> Result<Option<(NodeId, SmallBytes)>, Failure> {
        Ok(self.inner.borrow().machine.node.session_token())
    }

    fn adopt(&self, session_token: &SmallBytes) -> Result<(), Failure> {
        self.inner.borrow_mut().machine.node.adopt(session_token);
        Ok(())
    }

    fn catalog(&self) -> Result<Arc<Catalog>, Failure> {
        Ok(self.inner.borrow().machine.node.catalog().clone())
    }

    fn deadline(&self, at: Nanos, due: Due) -> DeadlineId {
        self.inner.borrow_mut().outside.alarms.deadlines.set(at, due)
    }

    fn take_back(&self, deadline: DeadlineId) {
        self.inner.borrow_mut().outside.alarms.deadlines.take_back(deadline);
    }

    fn direct(&self, run: &mut dyn FnMut(&mut dyn Direct)) {
        if self.closing.get() {
            return;
        }
        self.begins.set(self.begins.get() + 1);
        let inner = &mut *self.inner.borrow_mut();
        if self.precise {
            inner.machine.effects.now = self.read_clock();
        }
        run(inner);
        inner.perform();
    }

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.inner.borrow().machine.node.outcome(txn)
    }

    fn sleep(&self, duration: Nanos) -> OpId {
        let LoopState { machine, outside, .. } = &mut *self.inner.borrow_mut();
        outside.alarms.sleep(machine.effects.now + duration)
    }

    fn poll(&self, op: OpId, waker: &Waker) -> Poll<Result<Answer, Failure>> {
        self.inner.borrow_mut().outside.operations.poll(op, waker)
    }

    fn forget(&self, op: OpId) {
        self.inner.borrow_mut().outside.operations.forget(op);
    }

    fn now(&self) -> Nanos {
        self.read_clock()
    }

    fn random(&self) -> u64 {
        self.inner.borrow_mut().random.u64(..)
    }

    fn should_yield(&self) -> bool {
        self.begins.get() >= BEGINS_PER_TICK
            || self.signal.has_mail()
            || self.inner.borrow().outside.has_outgoing
    }

    fn spawn(&self, make: MakeTask) {
        self.spawned.borrow_mut().push(make);
    }
}
