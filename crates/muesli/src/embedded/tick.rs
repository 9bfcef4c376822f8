//! The tick of a loop: take in, step, poll, publish, and sleep when there is nothing to do.
//!
//! The loop's thread is in the loop's state during a tick, and leaves it when others want in and
//! when it has nothing to do. Its tasks stay with it: they are polled by no other thread.

use std::sync::Arc;
use std::time::Duration;

use muesli_core::client;
use muesli_core::{
    Catalog, Effects, Environment, Machine, Nanos, Node, NodeId, Protocol, Recorder, Settings,
};

use super::access::{StateAccess, take_back};
use super::closing::{ClosingState, Undone};
use super::executor::{Executor, drop_task};
use super::links::neighbours::{LoopClock, LoopNeighbours};
use super::links::ring::RingLinks;
use super::log::LoopStorage;
use super::state::{EmbeddedEngine, LoopState};
use crate::dispatch::access::LoopAccess;
use crate::dispatch::report::Report;
use crate::error::Error;

/// So many jobs from other threads are taken in one tick.
const JOBS_PER_TICK: usize = 256;

/// While it closes, a loop looks for its end at least so often.
const CLOSING_PAUSE: Duration = Duration::from_millis(1);

/// A loop that expects an answer from another looks around for so many times as long.
const PATIENCE: u64 = 10;

/// What a loop is made from.
pub(super) struct LoopPlan<P: Protocol> {
    pub database: u64,
    pub loops: LoopNeighbours,
    /// Where its state is to be.
    pub access: Arc<StateAccess<P>>,
    pub catalog: Arc<Catalog>,
    pub settings: Arc<Settings>,
    pub switches: P::Switches,
    pub links: RingLinks<P>,
    /// How far each loop is away.
    pub delays: Vec<Nanos>,
    pub close_within: Duration,
    pub clock: LoopClock,
    /// Where its data last, if they do.
    pub storage: Option<LoopStorage>,
    /// What records its transactions, if they are.
    pub recorder: Option<Recorder>,
    pub spin: Duration,
}

/// A loop, on its own thread.
pub(super) struct Loop<P: Protocol> {
    access: Arc<StateAccess<P>>,
    executor: Executor,
    loops: LoopNeighbours,
    clock: LoopClock,
    closing_state: ClosingState,
    close_within: Nanos,
    history: bool,
    spin: Nanos,
}

/// What a loop looks for while it has left its state.
#[derive(Clone, Copy)]
struct Idle {
    /// It looks around until then, before it sleeps.
    until: Nanos,
    /// Something is to be done by then.
    next: Option<Nanos>,
    /// It has messages for a ring that is full, or more of others than it takes in a tick.
    backlog: bool,
}

impl<P: Protocol> Loop<P> {
    /// A loop whose node holds what its files do, if it has some; and its state.
    ///
    /// # Errors
    /// These cannot be used.
    pub fn new(plan: LoopPlan<P>) -> Result<(Loop<P>, Box<EmbeddedEngine<P>>), Error> {
        let inbox = plan.loops.inbox();
        inbox.signal.adopt();
        let executor = Executor::new(inbox.signal.clone());
        let id = NodeId(plan.loops.at as u32);
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
        let inner = LoopState::new(machine, log, plan.links, &plan.delays);
        let is_near = plan.delays.iter().all(|delay| *delay == Nanos(0));
        let LoopPlan { database, clock, loops, access, .. } = plan;
        let around = (loops.clone(), is_near && loops.inboxes.len() > 1);
        let engine = EmbeddedEngine::new(database, inner, clock.clone(), around, history);
        let (close_within, spin) = (plan.close_within.as_nanos(), plan.spin.as_nanos());
        let this = Loop {
            access,
            executor,
            loops,
            clock,
            closing_state: ClosingState::Serving,
            close_within: Nanos(close_within as u64),
            history,
            spin: Nanos(spin as u64),
        };
        Ok((this, Box::new(engine)))
    }

    /// Runs until the database is closed.
    pub fn run(mut self, mut engine: Box<EmbeddedEngine<P>>) -> Report {
        {
            let inner = &mut *engine.inner.borrow_mut();
            if inner.has_log() {
                inner.machine.effects.now = self.clock.read();
            }
            inner.machine.node.start(&mut inner.machine.effects);
            inner.perform();
        }
        let mut idle_until = None;
        loop {
            let busy;
            (engine, busy) = self.tick(engine);
            if self.loops.closing.is_asked() {
                engine = self.go_on_closing(engine, busy);
                if self.closing_state == ClosingState::Closed {
                    break;
                }
            } else if busy {
                idle_until = None;
                if self.access.is_contended() {
                    self.access.leave_to_others(engine);
                    engine = self.enter();
                }
                continue;
            }
            let now = self.clock.read();
            let until = *idle_until.get_or_insert_with(|| now + self.patience(&engine));
            engine = self.pause(engine, now, until);
        }
        engine = self.drop_tasks(engine);
        let report = self.report(&engine);
        self.close_log(&engine);
        report
    }

    /// Enters the loop's state: what others wanted of this thread is done now.
    fn enter(&self) -> Box<EmbeddedEngine<P>> {
        let engine = self.access.enter_as_loop();
        self.loops.inbox().signal.take_call();
        engine.in_visit.set(false);
        engine.inner.borrow_mut().wakes_at = Nanos(0);
        engine
    }

    /// Waits until there is something to do, out of the state, which others may enter.
    fn pause(
        &mut self,
        engine: Box<EmbeddedEngine<P>>,
        now: Nanos,
        until: Nanos,
    ) -> Box<EmbeddedEngine<P>> {
        let (next, backlog) = {
            let inner = &mut *engine.inner.borrow_mut();
            if cfg!(debug_assertions) {
                inner.delayed.assert_invariants();
            }
            let next = inner.next(now);
            inner.wakes_at = next.unwrap_or(Nanos(u64::MAX));
            (next, inner.backlog() > 0 || inner.has_messages())
        };
        let idle = Idle { until, next, backlog };
        // Once it is shut nobody else enters.
        if self.access.is_shut() {
            self.idle(idle);
            return engine;
        }
        self.access.leave_to_others(engine);
        self.idle(idle);
        self.enter()
    }

    fn idle(&self, idle: Idle) {
        let signal = &self.loops.inbox().signal;
        let mut now = self.clock.read();
        loop {
            if signal.has_news() || self.has_work(idle.backlog) {
                return;
            }
            if idle.next.is_some_and(|next| next <= now) {
                return;
            }
            if now >= idle.until {
                break;
            }
            std::hint::spin_loop();
            now = self.clock.read();
        }
        let at_most = idle.next.map(|at| Duration::from_nanos(at.0.saturating_sub(now.0)));
        // What closing waits for of other loops wakes nobody.
        let at_most = match self.loops.closing.is_asked() {
            true => Some(at_most.map_or(CLOSING_PAUSE, |it| it.min(CLOSING_PAUSE))),
            false => at_most,
        };
        signal.sleep(at_most, || self.has_work(idle.backlog));
    }

    /// Whether there is something to do that is not in the loop's state.
    fn has_work(&self, backlog: bool) -> bool {
        let serving = self.closing_state == ClosingState::Serving;
        backlog
            || (serving && self.loops.closing.is_asked())
            || !self.loops.inbox().jobs.is_empty()
            || self.executor.has_ready()
    }

    /// Makes stable what was logged, also where another loop's log has failed.
    fn close_log(&self, engine: &EmbeddedEngine<P>) {
        let closed = engine.inner.borrow_mut().close_log();
        closed.unwrap_or_else(|failure| self.loops.fail(failure.to_string()));
    }

    /// Goes on to the next stage of closing, if it is time; `busy`: the tick found something to do.
    fn go_on_closing(
        &mut self,
        mut engine: Box<EmbeddedEngine<P>>,
        busy: bool,
    ) -> Box<EmbeddedEngine<P>> {
        // Nobody is to wait for more where all come to their end.
        engine.inner.borrow_mut().send_held();
        let undone = self.undone(&engine, busy);
        let (now, before) = (self.clock.read(), self.closing_state);
        let LoopNeighbours { at, closing, .. } = &self.loops;
        self.closing_state = before.after(closing, *at, now, self.close_within, undone);
        match (before, self.closing_state) {
            (ClosingState::Serving, _) => engine.closing.set(true),
            (ClosingState::Ending { .. }, ClosingState::Deciding { .. }) => {
                engine = self.drop_tasks(engine);
                self.loops.inbox().shut();
                engine.inner.borrow_mut().abort_open();
            }
            _ => {}
        }
        engine
    }

    /// Drops what runs on the loop, while the engine is here to roll back what it had open.
    fn drop_tasks(&mut self, engine: Box<EmbeddedEngine<P>>) -> Box<EmbeddedEngine<P>> {
        client::lend(engine);
        self.executor.drop_tasks();
        let engine = take_back::<P>();
        let spawned = engine.spawned.take();
        client::lend(engine);
        spawned.into_iter().for_each(|make| drop_task(make()));
        take_back()
    }

    fn undone(&self, engine: &EmbeddedEngine<P>, busy: bool) -> Undone {
        let inner = &*engine.inner.borrow();
        let LoopState { machine, outside, delayed, .. } = inner;
        let (unfinished, in_doubt) = machine.node.unfinished();
        let waits = machine.has_left_over()
            || machine.waits_for().is_some()
            || outside.out.iter().any(|out| !out.is_empty());
        let busy = busy || waits || self.executor.has_ready() || inner.has_messages();
        // Who is on the way to the state may have committed, and is to know it.
        let ends =
            matches!(self.closing_state, ClosingState::Serving | ClosingState::Ending { .. });
        let busy = busy || ends && self.access.is_awaited();
        Undone { unfinished, in_doubt, busy: busy || !delayed.is_empty() }
    }

    /// How long to look around for work before sleeping: longer where another loop is about to
    /// answer, because being woken costs more than most answers take. A disk takes longer.
    fn patience(&self, engine: &EmbeddedEngine<P>) -> Nanos {
        let inner = engine.inner.borrow();
        let expects = inner.outside.operations.expects_answers();
        let expects = expects && inner.machine.waits_for().is_none();
        if expects { Nanos(self.spin.0 * PATIENCE) } else { self.spin }
    }

    /// One tick; whether anything was done.
    fn tick(&mut self, mut engine: Box<EmbeddedEngine<P>>) -> (Box<EmbeddedEngine<P>>, bool) {
        self.insist_on_whole(&engine);
        engine.begins.set(0);
        let now = self.clock.read();
        let mut busy = engine.take_messages(now, true);
        busy |= engine.inner.borrow_mut().ring_alarms();
        if engine.takes_work() {
            busy |= self.take_jobs(&engine);
            if self.executor.has_ready() {
                client::lend(engine);
                busy |= self.executor.poll_ready();
                engine = take_back();
            }
            for make in engine.spawned.take() {
                self.executor.spawn(make());
            }
        }
        self.insist_on_whole(&engine);
        busy |= engine.end_tick(now);
        (engine, busy)
    }

    /// What the node said before it broke may be half of what it had to say.
    fn insist_on_whole(&self, engine: &EmbeddedEngine<P>) {
        assert!(!engine.is_broken(), "the node of loop {} panicked", self.loops.at);
    }

    fn take_jobs(&mut self, engine: &EmbeddedEngine<P>) -> bool {
        let mut busy = false;
        for _ in 0..JOBS_PER_TICK {
            let Some(job) = self.loops.inbox().jobs.pop() else { break };
            // Whoever sent it may have made a space before, since the tick began.
            engine.take_attention(&mut engine.inner.borrow_mut());
            busy = true;
            self.executor.spawn(job());
        }
        busy
    }

    fn report(&self, engine: &EmbeddedEngine<P>) -> Report {
        let LoopState { machine, outside, .. } = &mut *engine.inner.borrow_mut();
        let mut recorder = machine.effects.recorder.take().map_or_else(Recorder::new, |r| *r);
        let mut chains = Vec::new();
        if self.history {
            machine.node.record_running(&mut recorder);
            chains = machine.node.chains();
        }
        Report { node: self.loops.at as u32, recorder, chains, messages: outside.messages }
    }
}
