//! The state of a loop behind its lock, for the loop's own thread and for all others.

use std::any::Any;
use std::sync::Arc;
use std::thread::ThreadId;

use muesli_core::Protocol;
use muesli_core::client;

use super::links::signal::Signal;
use super::state::EmbeddedEngine;
use crate::dispatch::access::{Admission, HandedJob, LoopAccess};
use crate::dispatch::queued_thread::WokenThreads;
use crate::dispatch::state_lock::{HandOver, JOBS_MOST, LeaveMode, StateLock};

/// Who leaves takes so often what other loops have sent meanwhile; then it calls the loop's thread.
const MAILS_MOST: u32 = 8;

/// A loop's state, behind its lock.
pub(super) struct StateAccess<P: Protocol> {
    lock: StateLock<Box<EmbeddedEngine<P>>, Arc<dyn HandedJob>>,
    signal: Arc<Signal>,
    others: OtherLoops,
}

/// What a loop's state has around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherLoops {
    /// It is the only loop.
    None,
    /// There are others, and what waits for them waits for their disks or their distance as well.
    Slow,
    /// There are others, which answer as soon as they have the processor.
    Near,
}

impl OtherLoops {
    /// Of one of so many loops.
    pub fn of(loops: usize, are_slow: bool) -> OtherLoops {
        match loops {
            1 => OtherLoops::None,
            _ if are_slow => OtherLoops::Slow,
            _ => OtherLoops::Near,
        }
    }
}

/// Dropped where a panic leaves work with the state half done, with which the state is gone: then
/// the loop ends. Work that ends forgets it.
struct WithState<'a, P: Protocol>(&'a StateAccess<P>);

impl<P: Protocol> Drop for WithState<'_, P> {
    fn drop(&mut self) {
        self.0.lock.end();
        self.0.signal.call();
    }
}

impl<P: Protocol> StateAccess<P> {
    /// Of a loop whose thread makes the state, and then leaves it.
    pub fn new(signal: Arc<Signal>, others: OtherLoops) -> StateAccess<P> {
        StateAccess { lock: StateLock::new(), signal, others }
    }

    /// The state, for the loop's own thread, once nobody else is in it; also of a loop that was
    /// shut.
    pub fn enter_as_loop(&self) -> Box<EmbeddedEngine<P>> {
        let state = self.lock.enter().or_else(|| self.lock.take_out());
        state.expect("a panic in the state of a loop ends the loop")
    }

    /// Whether somebody waits for the state.
    pub fn is_contended(&self) -> bool {
        self.lock.is_contended()
    }

    /// Whether somebody is on the way to the state.
    pub fn is_awaited(&self) -> bool {
        self.lock.is_awaited()
    }

    /// Leaves the state to others, if some wait; what they have handed over is done before.
    pub fn leave_to_others(&self, engine: Box<EmbeddedEngine<P>>) {
        self.leave_after_jobs(engine, LeaveMode::ForOthers);
    }

    /// Leaves the state; what others have handed over is done before, if it is their turn.
    fn leave_after_jobs(&self, mut engine: Box<EmbeddedEngine<P>>, leaving: LeaveMode) {
        let with_state = WithState(self);
        let (mut threads, mut jobs, mut mails) = (WokenThreads::default(), 0, 0);
        loop {
            // What the node said before it broke may be half of what it had to say.
            if engine.is_broken() {
                self.lock.shut_with(Some(engine));
                self.signal.call(); // The loop's thread ends with it.
                break;
            }
            engine.end_visit();
            // Who is granted the state instead finds that no work is taken.
            let takes_jobs = || !self.lock.is_contended() || engine.takes_work();
            let runs_jobs = jobs < JOBS_MOST && takes_jobs();
            match self.lock.leave(engine, leaving, runs_jobs) {
                Ok(()) => match self.enter_for_mail(&mut mails) {
                    Some(back) => {
                        engine = back;
                        engine.begin_visit();
                    }
                    None => break,
                },
                Err(back) => engine = self.run_jobs(back, &mut jobs, &mut threads),
            }
        }
        std::mem::forget(with_state);
    }

    /// The state once more, if others have sent something to it while it was left.
    #[inline]
    fn enter_for_mail(&self, mails: &mut u32) -> Option<Box<EmbeddedEngine<P>>> {
        if self.others == OtherLoops::None || !self.signal.has_mail_after_leaving() {
            return None;
        }
        *mails += 1;
        if *mails > MAILS_MOST {
            self.signal.wake();
            return None;
        }
        let back = self.lock.try_enter();
        if back.is_none() && self.lock.may_be_free() {
            self.signal.wake(); // It is kept for one that may not come.
        }
        back
    }

    /// This thread begins to work with the state.
    fn begin(&self, engine: &EmbeddedEngine<P>) {
        let with_state = WithState(self);
        engine.begin_visit();
        std::mem::forget(with_state);
    }

    /// Runs what others have handed over; who is to be woken for that is told afterwards.
    #[cold]
    fn run_jobs(
        &self,
        mut engine: Box<EmbeddedEngine<P>>,
        jobs: &mut usize,
        threads: &mut WokenThreads,
    ) -> Box<EmbeddedEngine<P>> {
        let queued = std::iter::from_fn(|| self.lock.next_job()).take(JOBS_MOST - *jobs);
        let queued: Vec<_> = queued.collect();
        *jobs += queued.len();
        // Who has handed something over may have made a space before.
        engine.begin_visit();
        for queued in queued {
            // The wait of the others ends as they are dropped.
            if engine.is_broken() {
                break;
            }
            client::lend(engine);
            queued.job().run();
            engine = take_back();
            threads.add(queued.end());
        }
        engine
    }

    /// This thread is inside, unless no new work is taken.
    fn visit(&self, engine: Box<EmbeddedEngine<P>>) -> Admission {
        self.begin(&engine);
        if !engine.takes_work() {
            self.leave_to_others(engine);
            return Admission::Congested;
        }
        client::lend(engine);
        Admission::Entered
    }
}

/// The engine that was lent to this thread.
pub(super) fn take_back<P: Protocol>() -> Box<EmbeddedEngine<P>> {
    let engine: Box<dyn Any> = client::take_back();
    engine.downcast().expect("the engine that was lent")
}

impl<P: Protocol> LoopAccess for StateAccess<P> {
    fn try_enter(&self) -> Admission {
        self.lock.try_enter().map_or(Admission::Occupied, |engine| self.visit(engine))
    }

    fn enter(&self) -> bool {
        let Some(engine) = self.lock.enter() else { return false };
        self.begin(&engine);
        client::lend(engine);
        true
    }

    fn enter_or_hand(&self, job: Arc<dyn HandedJob>) -> Admission {
        match self.lock.enter_or_hand(job) {
            HandOver::Entered(engine) => self.visit(engine),
            HandOver::Served => Admission::Served,
            HandOver::Shut => Admission::Shut,
        }
    }

    fn leave(&self, leaving: LeaveMode) {
        let engine = take_back::<P>();
        let comes_last = engine.looks_at_time() && self.lock.is_contended();
        let comes_last = comes_last && engine.has_visited_for_long();
        let leaving = if comes_last { LeaveMode::ForOthers } else { leaving };
        self.leave_after_jobs(engine, leaving);
    }

    fn is_shut(&self) -> bool {
        self.lock.is_shut()
    }

    fn shut(&self) {
        self.lock.shut();
    }

    fn end(&self) {
        self.lock.end();
    }

    fn is_pending(&self) {
        self.lock.is_pending();
    }

    fn no_longer_pending(&self, noted_by: ThreadId) {
        self.lock.no_longer_pending(noted_by);
    }

    fn hands_over(&self) {
        self.lock.hands_over();
    }

    fn goes_on(&self) {
        self.lock.goes_on();
    }

    fn answers_soon(&self) -> bool {
        self.others == OtherLoops::Near
    }

    fn may_be_free(&self) -> bool {
        self.lock.may_be_free()
    }

    fn visit_from(&self, from: usize) -> bool {
        let (mut visited, mut mails) = (false, 0);
        let mut engine = self.lock.try_enter();
        while let Some(entered) = engine {
            let with_state = WithState(self);
            entered.visit_from(from);
            // An engine is here already, so jobs of others are not for this thread.
            let left = self.lock.leave(entered, LeaveMode::ForOthers, false);
            assert!(left.is_ok(), "no jobs are run");
            std::mem::forget(with_state);
            visited = true;
            engine = self.enter_for_mail(&mut mails);
        }
        visited
    }
}
