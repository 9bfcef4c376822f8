//! The turn of a loop: take in, step, poll, publish, and sleep when there is nothing to do.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use muesli_core::client::{self, Engine};
use muesli_core::operations::SLICE;
use muesli_core::{
    Catalog, Effects, Envelope, Environment, Machine, Nanos, Node, NodeId, Protocol, Recorder,
    Settings, Timestamp,
};

use super::LoopInbox;
use super::closing::{Closing, ClosingState, Undone};
use super::delayed_messages::DelayedMessages;
use super::executor::{Executor, drop_task};
use super::log::{LogFailure, LoopStorage};
use super::ring::RingLinks;
use super::state::{EmbeddedEngine, LoopState};
use crate::dispatch::report::Report;
use crate::error::Error;

/// So many messages from one loop are taken in one turn.
const MESSAGES_PER_TICK: usize = 256;
/// So many jobs from other threads are taken in one turn.
const JOBS_PER_TICK: usize = 256;
/// With so many messages waiting for a full ring, no new work is taken on.
const BACKLOG_MAX: usize = 4096;

/// While it closes, a loop looks for its end at least so often.
const CLOSING_PAUSE: Duration = Duration::from_millis(1);

/// A loop that expects an answer from another looks around for so many times as long.
const PATIENCE: u64 = 10;

/// What a loop is made from.
pub(super) struct LoopPlan<P: Protocol> {
    pub database: u64,
    pub at: usize,
    pub catalog: Arc<Catalog>,
    pub settings: Arc<Settings>,
    pub switches: P::Switches,
    pub links: RingLinks<P>,
    /// How far each loop is away.
    pub delays: Vec<Nanos>,
    pub inboxes: Arc<[LoopInbox]>,
    pub closing: Arc<Closing>,
    pub close_within: Duration,
    pub clock: quanta::Clock,
    pub origin: u64,
    /// The time at the origin.
    pub began: Nanos,
    /// Where its data last, if they do.
    pub storage: Option<LoopStorage>,
    /// What records its transactions, if they are.
    pub recorder: Option<Recorder>,
    pub spin: Duration,
}

/// A loop, on its own thread.
pub(super) struct Loop<P: Protocol> {
    state: Rc<EmbeddedEngine<P>>,
    executor: Executor,
    links: RingLinks<P>,
    delayed: DelayedMessages<Envelope<P::Message>>,
    inboxes: Arc<[LoopInbox]>,
    at: usize,
    closing: Arc<Closing>,
    closing_state: ClosingState,
    close_within: Nanos,
    history: bool,
    spin: Nanos,
}

impl<P: Protocol> Loop<P> {
    /// A loop whose node holds what its files do, if it has some.
    ///
    /// # Errors
    /// These cannot be used.
    pub fn new(plan: LoopPlan<P>) -> Result<Loop<P>, Error> {
        let inbox = &plan.inboxes[plan.at];
        inbox.signal.adopt();
        let executor = Executor::new(inbox.signal.clone());
        let id = NodeId(plan.at as u32);
        let starts = plan.storage.as_ref().map_or(1, LoopStorage::starts);
        let node = Node::new(id, starts, plan.catalog, plan.settings, &plan.switches);
        let (history, recorder) = (plan.recorder.is_some(), plan.recorder.map(Box::new));
        let effects = Effects::new(Environment { recorder, ..Environment::default() });
        let mut machine = Machine::new(node, effects);
        let mut log = None;
        if let Some(storage) = plan.storage {
            if storage.answers_at_once() {
                machine.answer_at_once();
            }
            log = Some(storage.open(&mut machine, &inbox.signal)?);
        }
        let inner = LoopState::new(machine, log, plan.inboxes.len());
        let LoopPlan { database, clock, origin, began, .. } = plan;
        let (signal, time) = (inbox.signal.clone(), (clock, origin, began));
        Ok(Loop {
            state: Rc::new(EmbeddedEngine::new(database, inner, signal, time, history)),
            executor,
            links: plan.links,
            delayed: DelayedMessages::new(&plan.delays),
            inboxes: plan.inboxes,
            at: plan.at,
            closing: plan.closing,
            closing_state: ClosingState::Serving,
            close_within: Nanos(plan.close_within.as_nanos() as u64),
            history,
            spin: Nanos(plan.spin.as_nanos() as u64),
        })
    }

    /// The largest timestamp that its node is known to have issued in an earlier incarnation.
    pub fn issued(&self) -> Timestamp {
        self.state.inner.borrow().machine.node.issued()
    }

    /// Runs until the database is closed.
    pub fn run(mut self) -> Report {
        let engine: Rc<dyn Engine> = self.state.clone();
        let entered = client::enter(engine);
        {
            let inner = &mut *self.state.inner.borrow_mut();
            if inner.has_log() {
                inner.machine.effects.now = self.state.read_clock();
            }
            inner.machine.node.start(&mut inner.machine.effects);
            inner.perform();
        }
        let mut idle_until = None;
        while self.closing_state != ClosingState::Closed {
            let busy = self.tick();
            if self.closing.is_asked() {
                self.go_on_closing(busy);
            } else if busy {
                idle_until = None;
                continue;
            }
            let now = self.state.read_clock();
            let until = *idle_until.get_or_insert_with(|| now + self.patience());
            if now < until {
                std::hint::spin_loop();
            } else {
                self.sleep(now);
            }
        }
        self.drop_tasks();
        let report = self.report();
        self.close_log();
        drop(entered);
        report
    }

    /// Makes stable what was logged, also where another loop's log has failed.
    fn close_log(&mut self) {
        let closed = self.state.inner.borrow_mut().close_log();
        closed.unwrap_or_else(|failure| self.fail(failure));
    }

    /// The log has failed: what waits for it is told to nobody, and all loops end.
    fn fail(&self, failure: LogFailure) {
        self.closing.fail(failure.to_string());
        self.inboxes.iter().for_each(|inbox| inbox.signal.wake());
    }

    /// Goes on to the next stage of closing, if it is time; `busy`: the turn found something to do.
    fn go_on_closing(&mut self, busy: bool) {
        // Nobody is to wait for more where all come to their end.
        self.state.inner.borrow_mut().send_held();
        let undone = self.undone(busy);
        let (now, before) = (self.state.read_clock(), self.closing_state);
        self.closing_state = before.after(&self.closing, self.at, now, self.close_within, undone);
        match (before, self.closing_state) {
            (ClosingState::Serving, _) => self.state.closing.set(true),
            (ClosingState::Ending { .. }, ClosingState::Deciding { .. }) => {
                self.drop_tasks();
                self.inboxes[self.at].shut();
                self.state.inner.borrow_mut().abort_open();
            }
            _ => {}
        }
    }

    /// Drops what runs on the loop, while the engine is here to roll back what it had open.
    fn drop_tasks(&mut self) {
        self.executor.drop_tasks();
        for task in self.state.spawned.take() {
            drop_task(task);
        }
    }

    fn undone(&self, busy: bool) -> Undone {
        let LoopState { machine, outside, .. } = &*self.state.inner.borrow();
        let (unfinished, in_doubt) = machine.node.unfinished();
        let waits = machine.has_left_over()
            || machine.waits_for().is_some()
            || outside.out.iter().any(|out| !out.is_empty());
        let busy = busy || waits || self.executor.has_ready() || self.has_messages();
        let busy = busy || !self.delayed.is_empty();
        Undone { unfinished, in_doubt, busy }
    }

    fn has_messages(&self) -> bool {
        self.links.from.iter().flatten().any(|link| !link.is_empty())
    }

    /// How long to look around for work before sleeping: longer where another loop is about to
    /// answer, because being woken costs more than most answers take. A disk takes longer.
    fn patience(&self) -> Nanos {
        let inner = self.state.inner.borrow();
        let expects = inner.outside.operations.expects_answers();
        let expects = expects && inner.machine.waits_for().is_none();
        if expects { Nanos(self.spin.0 * PATIENCE) } else { self.spin }
    }

    /// One turn; whether anything was done.
    fn tick(&mut self) -> bool {
        self.state.begins.set(0);
        let now = self.state.read_clock();
        let mut busy = self.take_messages(now);
        busy |= self.state.inner.borrow_mut().ring_alarms();
        if self.backlog() < BACKLOG_MAX && !self.state.inner.borrow().is_congested() {
            busy |= self.take_jobs();
            busy |= self.executor.poll_ready();
            for task in self.state.spawned.take() {
                self.executor.spawn(task);
            }
        }
        let state = self.state.clone();
        // What the node said before it broke may be half of what it had to say.
        assert!(!state.inner.borrow().broken.get(), "the node of loop {} panicked", self.at);
        let inner = &mut *state.inner.borrow_mut();
        if inner.has_log() {
            busy |= self.settle(inner);
        }
        busy |= self.publish(inner);
        busy | self.go_on(inner, now)
    }

    /// Settles with the log what was done in this tick; whether anything was let go that waited.
    fn settle(&self, inner: &mut LoopState<P>) -> bool {
        inner.settle().unwrap_or_else(|failure| {
            self.fail(failure);
            false
        })
    }

    /// Does what is left over, until somebody has said something or it has taken long.
    fn go_on(&mut self, inner: &mut LoopState<P>, began: Nanos) -> bool {
        let mut any = false;
        while inner.go_on() {
            any = true;
            if inner.outside.has_outgoing {
                self.publish(inner);
            }
            if self.has_messages() || self.state.read_clock() - began > SLICE {
                break;
            }
        }
        any
    }

    fn take_messages(&mut self, now: Nanos) -> bool {
        let state = self.state.clone();
        let inner = &mut *state.inner.borrow_mut();
        inner.machine.effects.now = now;
        self.inboxes[self.at].signal.take_mail();
        self.take_attention(inner);
        let mut busy = false;
        for from in 0..self.links.from.len() {
            for _ in 0..MESSAGES_PER_TICK {
                let link = self.links.from[from].as_mut();
                let taken = link.and_then(|link| self.delayed.take(from, link, now));
                let Some(envelope) = taken else { break };
                busy = true;
                inner.machine.node.deliver(envelope, &mut inner.machine.effects);
                inner.perform();
                // At once: else loops that answer each other take turns, and half the time wait.
                if inner.outside.has_outgoing {
                    self.publish(inner);
                }
            }
        }
        busy
    }

    /// Does what is asked of the loop seldom, if something is.
    fn take_attention(&self, inner: &mut LoopState<P>) {
        let inbox = &self.inboxes[self.at];
        if inbox.signal.take_attention() {
            let catalog = inbox.catalog.lock().unwrap_or_else(|broken| broken.into_inner()).take();
            if let Some(catalog) = catalog {
                inner.machine.node.reconfigure(catalog);
            }
            inner.compact(inbox);
        }
    }

    fn take_jobs(&mut self) -> bool {
        let mut busy = false;
        for _ in 0..JOBS_PER_TICK {
            let Some(job) = self.inboxes[self.at].jobs.pop() else { break };
            // Whoever sent it may have made a space before, since the turn began.
            self.take_attention(&mut self.state.inner.borrow_mut());
            busy = true;
            self.executor.spawn(job());
        }
        busy
    }

    fn backlog(&self) -> usize {
        self.state.inner.borrow().outside.out.iter().map(|out| out.len()).max().unwrap_or(0)
    }

    /// Hands over what goes to other loops, and wakes those that sleep; true if something went.
    fn publish(&mut self, inner: &mut LoopState<P>) -> bool {
        let (mut any, outside) = (false, &mut inner.outside);
        outside.has_outgoing = false;
        self.inboxes[self.at].sent.messages.store(outside.messages, Ordering::Relaxed);
        for (to, out) in outside.out.iter_mut().enumerate() {
            let Some(link) = &mut self.links.to[to] else {
                assert!(out.is_empty(), "what a node says to itself does not leave it");
                continue;
            };
            let mut sent = false;
            while let Some(envelope) = out.pop_front() {
                if let Err(rtrb::PushError::Full(envelope)) = link.push(envelope) {
                    out.push_front(envelope);
                    break;
                }
                sent = true;
            }
            if sent {
                any = true;
                outside.packets += 1;
                self.inboxes[to].signal.notify();
            }
        }
        self.inboxes[self.at].sent.packets.store(outside.packets, Ordering::Relaxed);
        any
    }

    fn sleep(&mut self, now: Nanos) {
        if cfg!(debug_assertions) {
            self.delayed.assert_invariants();
        }
        let next = self.state.inner.borrow().next(now).into_iter().chain(self.delayed.next()).min();
        let at_most = next.map(|at| Duration::from_nanos((at - now).0));
        let (inbox, links, executor) = (&self.inboxes[self.at], &self.links, &self.executor);
        let (closing, backlog) = (&self.closing, self.backlog() > 0);
        // What closing waits for of other loops wakes nobody.
        let at_most = match closing.is_asked() {
            true => Some(at_most.map_or(CLOSING_PAUSE, |it| it.min(CLOSING_PAUSE))),
            false => at_most,
        };
        let serving = self.closing_state == ClosingState::Serving;
        inbox.signal.sleep(at_most, || {
            backlog
                || (serving && closing.is_asked())
                || !inbox.jobs.is_empty()
                || executor.has_ready()
                || links.from.iter().flatten().any(|link| !link.is_empty())
        });
    }

    fn report(&mut self) -> Report {
        let LoopState { machine, outside, .. } = &mut *self.state.inner.borrow_mut();
        let mut recorder = machine.effects.recorder.take().map_or_else(Recorder::new, |r| *r);
        let mut chains = Vec::new();
        if self.history {
            machine.node.record_running(&mut recorder);
            chains = machine.node.chains();
        }
        Report { node: self.at as u32, recorder, chains, messages: outside.messages }
    }
}
