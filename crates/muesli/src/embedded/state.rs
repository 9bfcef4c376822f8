//! A loop's node with what surrounds it, as the engine that its tasks call.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};

use hashbrown::HashMap;
use muesli_core::client::{Direct, Engine, Task};
use muesli_core::{
    Action, Committed, Effect, Effects, Envelope, Failure, Later, Nanos, Node, OpId, OpResult,
    Outcome, Protocol, Role, Row, Scan, SmallBytes, SpaceId, Step, Txn, TxnId, TxnOptions,
};

use super::signal::Signal;

/// Operation numbers of sleeps; those of the node are below.
const SLEEPS: u64 = 1 << 63;
/// After so many transactions in one turn tasks are asked to let others run; and before, when
/// messages wait on either side: another loop's transaction holds locks until they are moved.
const BEGINS_PER_TURN: u32 = 64;

enum Waiting {
    Nobody,
    Somebody(Waker),
    Answered(OpResult),
    Forgotten,
}

enum Alarm {
    Node(Role, u32),
    Sleep(OpId),
}

/// The node of a loop, with what it waits for and what it has to say.
pub(super) struct Machine<P: Protocol> {
    pub node: Node<P>,
    pub effects: Effects<P>,
    waiting: HashMap<u64, Waiting, foldhash::fast::FixedState>,
    alarms: BinaryHeap<Reverse<(Nanos, u64)>>,
    alarm_kinds: HashMap<u64, Alarm, foldhash::fast::FixedState>,
    alarm_count: u64,
    /// Messages to other loops, by loop.
    pub out: Vec<VecDeque<Envelope<P::Message>>>,
    /// Whether `out` got something since the last turn.
    pub has_outgoing: bool,
    pub messages: u64,
    random: fastrand::Rng,
}

impl<P: Protocol> Machine<P> {
    pub fn new(node: Node<P>, effects: Effects<P>, loops: usize) -> Machine<P> {
        Machine {
            node,
            effects,
            waiting: HashMap::default(),
            alarms: BinaryHeap::new(),
            alarm_kinds: HashMap::default(),
            alarm_count: 0,
            out: (0..loops).map(|_| VecDeque::new()).collect(),
            has_outgoing: false,
            messages: 0,
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
                Effect::Complete { op, result, .. } => self.answer(op.0, result),
                Effect::SetTimer { role, timer, after } => {
                    let at = self.effects.now + after;
                    self.set_alarm(at, Alarm::Node(role, timer));
                }
                Effect::Log { .. } => unreachable!("an embedded database logs nothing"),
            }
        }
        self.effects.list = list;
    }

    fn answer(&mut self, op: u64, result: OpResult) {
        match self.waiting.insert(op, Waiting::Answered(result)) {
            Some(Waiting::Somebody(waker)) => waker.wake(),
            Some(Waiting::Forgotten) => {
                self.waiting.remove(&op);
            }
            Some(Waiting::Nobody | Waiting::Answered(_)) | None => {}
        }
    }

    fn set_alarm(&mut self, at: Nanos, alarm: Alarm) {
        self.alarm_count += 1;
        self.alarms.push(Reverse((at, self.alarm_count)));
        self.alarm_kinds.insert(self.alarm_count, alarm);
    }

    /// When the next alarm rings.
    pub fn next_alarm(&self) -> Option<Nanos> {
        self.alarms.peek().map(|Reverse((at, _))| *at)
    }

    /// Whether somebody waits for an answer of the node, rather than for a time.
    pub fn expects_answers(&self) -> bool {
        self.waiting.keys().any(|op| op & SLEEPS == 0)
    }

    /// Rings the alarms that are due; true if there were any.
    pub fn ring_alarms(&mut self) -> bool {
        let mut any = false;
        while let Some(&Reverse((at, number))) = self.alarms.peek() {
            if at > self.effects.now {
                break;
            }
            self.alarms.pop();
            any = true;
            match self.alarm_kinds.remove(&number).expect("every alarm has its kind") {
                Alarm::Sleep(op) => self.answer(op.0, OpResult::Awake),
                Alarm::Node(role, timer) => {
                    self.node.timer(role, timer, &mut self.effects);
                    self.perform();
                }
            }
        }
        any
    }

    fn sleep(&mut self, duration: Nanos) -> OpId {
        let op = OpId(SLEEPS | (self.alarm_count + 1));
        let at = self.effects.now + duration;
        self.set_alarm(at, Alarm::Sleep(op));
        op
    }

    fn poll(&mut self, op: OpId, waker: &Waker) -> Poll<OpResult> {
        let waiting = self.waiting.entry(op.0).or_insert(Waiting::Nobody);
        match waiting {
            Waiting::Answered(_) => match self.waiting.remove(&op.0) {
                Some(Waiting::Answered(result)) => Poll::Ready(result),
                _ => unreachable!("just seen"),
            },
            Waiting::Somebody(known) if known.will_wake(waker) => Poll::Pending,
            Waiting::Nobody | Waiting::Somebody(_) | Waiting::Forgotten => {
                *waiting = Waiting::Somebody(waker.clone());
                Poll::Pending
            }
        }
    }

    fn forget(&mut self, op: OpId) {
        if let Some(Waiting::Answered(_)) = self.waiting.insert(op.0, Waiting::Forgotten) {
            self.waiting.remove(&op.0);
        }
    }
}

impl<P: Protocol> Direct for Machine<P> {
    fn begin(&mut self, options: TxnOptions) -> Result<Txn, Failure> {
        self.node.begin(options, &mut self.effects)
    }

    fn get(&mut self, txn: Txn, space: SpaceId, key: &SmallBytes) -> Step<Option<SmallBytes>> {
        self.node.get(txn, space, key, &mut self.effects)
    }

    fn peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        self.node.peek(txn, space, keys, &mut self.effects, out)
    }

    fn put(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
    ) -> Result<(), Failure> {
        self.node.put(txn, space, key, value, &mut self.effects)
    }

    fn commit(&mut self, txn: Txn) -> Step<Committed> {
        self.node.commit(txn, &mut self.effects)
    }

    fn rollback(&mut self, txn: Txn) {
        self.node.rollback(txn, &mut self.effects);
    }

    fn forget(&mut self, op: OpId) {
        Machine::forget(self, op);
    }
}

/// The engine of a loop.
pub(super) struct State<P: Protocol> {
    pub database: u64,
    pub machine: RefCell<Machine<P>>,
    /// Tasks spawned by tasks, taken in after the round.
    pub spawned: RefCell<Vec<Task>>,
    pub begins: Cell<u32>,
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
            machine: RefCell::new(machine),
            spawned: RefCell::new(Vec::new()),
            begins: Cell::new(0),
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
        let answer = f(&mut machine.node, &mut machine.effects);
        machine.perform();
        answer
    }

    #[inline]
    fn timed_step<T>(&self, f: impl FnOnce(&mut Node<P>, &mut Effects<P>) -> T) -> T {
        if self.precise {
            self.machine.borrow_mut().effects.now = self.read_clock();
        }
        self.step(f)
    }
}

impl<P: Protocol> Engine for State<P> {
    #[inline]
    fn database(&self) -> u64 {
        self.database
    }

    fn begin(&self, options: TxnOptions) -> Result<Txn, Failure> {
        self.begins.set(self.begins.get() + 1);
        self.timed_step(|node, effects| node.begin(options, effects))
    }

    fn get(&self, txn: Txn, space: SpaceId, key: &SmallBytes) -> Step<Option<SmallBytes>> {
        self.step(|node, effects| node.get(txn, space, key, effects))
    }

    fn peek(
        &self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        let machine = &mut *self.machine.borrow_mut();
        machine.node.peek(txn, space, keys, &mut machine.effects, out)
    }

    fn get_many(
        &self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
    ) -> Step<Vec<Option<SmallBytes>>> {
        self.step(|node, effects| node.get_many(txn, space, keys, effects))
    }

    fn put(
        &self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
    ) -> Result<(), Failure> {
        self.step(|node, effects| node.put(txn, space, key, value, effects))
    }

    fn later(
        &self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        action: &Action,
    ) -> Result<Later, Failure> {
        self.step(|node, effects| node.later(txn, space, key, action, effects))
    }

    fn scan(&self, txn: Txn, scan: Scan) -> Step<Vec<Row>> {
        self.step(|node, effects| node.scan(txn, scan, effects))
    }

    fn commit(&self, txn: Txn) -> Step<Committed> {
        self.timed_step(|node, effects| node.commit(txn, effects))
    }

    fn rollback(&self, txn: Txn) {
        self.timed_step(|node, effects| node.rollback(txn, effects));
    }

    fn direct(&self, run: &mut dyn FnMut(&mut dyn Direct)) {
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
        self.machine.borrow_mut().sleep(duration)
    }

    fn poll(&self, op: OpId, waker: &Waker) -> Poll<OpResult> {
        self.machine.borrow_mut().poll(op, waker)
    }

    fn forget(&self, op: OpId) {
        self.machine.borrow_mut().forget(op);
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
