//! The loop of a process: its turns.
//!
//! A turn reads once from every connection that has something, steps the node with each message,
//! rings the alarms that are due, polls the tasks that were woken, and writes once to every
//! connection that something is for; where many answers are ready for one, they leave before.
//! Without work the loop looks for more for a while, and then sleeps in the poller. The same loop
//! serves repositories and runs clients; a process may do both.

use std::rc::Rc;
use std::time::Duration;

use mio::{Events, Token};
use muesli_core::client::{self, Engine};
use muesli_core::operations::SLICE;
use muesli_core::{Nanos, Recorder};

use crate::connections::connection::{Connection, ConnectionState};
use crate::connections::stream::Stream;
use crate::dispatch::event_loop::{LISTENER, Loop, Stopping, WAKER};
use crate::dispatch::failure::LoopFailure;
use crate::storage::log::LogFailure;
use crate::wire::hello::ProcessKind as Kind;
use crate::wire::proof;
use crate::wire::refusal::left;

/// How often timeouts are looked after.
const HOUSEKEEPING_EVERY: Nanos = Nanos::from_millis(20);
/// While a checkpoint is under way, an idle loop looks after it so often.
const CHECKPOINT_PAUSE: Duration = Duration::from_micros(200);

fn nanos(duration: Duration) -> Nanos {
    Nanos(duration.as_nanos() as u64)
}

impl Loop {
    /// Runs until it is told to stop, or cannot go on.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn run(mut self) -> Result<Recorder, LoopFailure> {
        let engine: Rc<dyn Engine> = self.loop_engine.clone();
        let entered = client::enter(engine);
        self.begin();
        let mut events = Events::with_capacity(1024);
        let ended = loop {
            if let Err(failed) = self.tick(&mut events) {
                break Err(failed);
            }
            if self.has_stopped() {
                break Ok(());
            }
        };
        self.entry_point.stop();
        // Where it failed, its tasks roll back what they had open while the engine is here.
        self.end_tasks();
        drop(entered);
        ended?;
        self.loop_engine.inner.borrow_mut().close_files()?;
        if self.has_left() {
            return Err(LoopFailure::Refused(left(self.peers.me.node)));
        }
        Ok(self.take_recorder())
    }

    fn begin(&mut self) {
        let inner = &mut *self.loop_engine.inner.borrow_mut();
        inner.machine.environment_mut().now = self.loop_engine.clock.now();
        let is_server = self.peers.me.process_kind == Kind::Server;
        let me = &self.peers.me;
        inner.outside.issuer = is_server.then(|| proof::issuer(me.cluster, me.secret.as_ref()));
        inner.start();
    }

    fn take_recorder(&mut self) -> Recorder {
        let inner = &mut *self.loop_engine.inner.borrow_mut();
        let mut recorder =
            inner.machine.environment_mut().recorder.take().map_or_else(Recorder::new, |it| *it);
        inner.machine.record_running(&mut recorder);
        recorder
    }

    fn tick(&mut self, events: &mut Events) -> Result<(), LoopFailure> {
        self.wait(events)?;
        let now = self.loop_engine.clock.now();
        self.loop_engine.inner.borrow_mut().machine.environment_mut().now = now;
        self.loop_engine.begins.set(0);
        if !events.is_empty() {
            self.watches_until = now + nanos(self.network.watch_for);
        }
        for event in &*events {
            self.on_event(event, now);
        }
        self.look_at_pipes(now);
        self.read_all(now);
        self.loop_engine.inner.borrow_mut().ring_alarms();
        if now >= self.housekeeping_due {
            self.housekeeping_due = now + HOUSEKEEPING_EVERY;
            self.handle_timeouts(now);
            self.loop_engine.inner.borrow_mut().settle_all()?;
            self.tell_losses(now);
        }
        self.run_tasks();
        self.loop_engine.inner.borrow_mut().settle_log()?;
        self.loop_engine.inner.borrow_mut().go_on_with_checkpoint()?;
        self.keep_placement();
        if self.failed.is_none() {
            self.flush(now);
            self.go_on()?;
        }
        if self.peers.folder.is_some()
            && self.loop_engine.inner.borrow().machine.environment().restart
        {
            self.loop_engine.inner.borrow_mut().close_log()?;
            return Err(LoopFailure::Restart);
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Does what is left over, now that what was said has left.
    fn go_on(&mut self) -> Result<(), LogFailure> {
        let inner = &mut *self.loop_engine.inner.borrow_mut();
        if !inner.go_on() {
            return Ok(());
        }
        let until = self.loop_engine.clock.now() + SLICE;
        while self.loop_engine.clock.now() < until && inner.go_on() {}
        inner.settle_log()
    }

    /// Waits for something to do.
    fn wait(&mut self, events: &mut Events) -> Result<(), LoopFailure> {
        let at_most = self.sleep_at_most();
        if self.watch(events, at_most)? {
            return Ok(());
        }
        if at_most.is_zero() || self.entry_point.signal.is_raised() {
            // It does not sleep, so nobody has to wake it.
            let polled = self.look(events, Duration::ZERO);
            self.entry_point.signal.end_sleep();
            return polled;
        }
        let raised = self.entry_point.signal.begin_sleep();
        let at_most = if raised { Duration::ZERO } else { at_most };
        let polled = self.look(events, at_most);
        self.entry_point.signal.end_sleep();
        polled
    }

    /// Looks for something to do without sleeping, for as long as more is likely to come soon;
    /// true if connections have something.
    fn watch(&mut self, events: &mut Events, at_most: Duration) -> Result<bool, LoopFailure> {
        let now = self.loop_engine.clock.now();
        let until = self.watches_until.min(now + nanos(at_most));
        while self.loop_engine.clock.now() < until && !self.entry_point.signal.is_raised() {
            self.look(events, Duration::ZERO)?;
            if !events.is_empty() {
                return Ok(true);
            }
            std::thread::yield_now();
        }
        Ok(false)
    }

    fn look(&mut self, events: &mut Events, at_most: Duration) -> Result<(), LoopFailure> {
        self.loop_engine.inner.borrow_mut().outside.counts.traffic.polls += 1;
        match self.poll.poll(events, Some(at_most)) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                Err(LoopFailure::Poll(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn sleep_at_most(&self) -> Duration {
        let inner = self.loop_engine.inner.borrow();
        let readable = self.peers.any_readable(|connection, place| {
            !self.is_held_back(connection, inner.outside.outbox.waiting_at(place))
        });
        if readable || inner.outside.outbox.is_dirty() {
            return Duration::ZERO;
        }
        if inner.is_checkpointing() {
            return CHECKPOINT_PAUSE;
        }
        let next = inner.next().map_or(self.housekeeping_due, |at| at.min(self.housekeeping_due));
        Duration::from_nanos((next - self.loop_engine.clock.now()).0)
    }

    fn on_event(&mut self, event: &mio::event::Event, now: Nanos) {
        match event.token() {
            WAKER => {}
            LISTENER => self.accept(now),
            Token(place) => {
                if event.is_writable() {
                    self.on_writable(place, now);
                }
                if (event.is_readable() || event.is_read_closed() || event.is_error())
                    && let Some(connection) = self.peers.at_mut(place)
                {
                    connection.readable = true;
                    connection.read_closed |= event.is_read_closed();
                    self.peers.note_readable(place);
                }
            }
        }
    }

    /// What the poller would tell of sockets. Pipes that others have made are opened, whatever
    /// else waits, as connections are accepted.
    fn look_at_pipes(&mut self, now: Nanos) {
        let opens = matches!(self.stopping, Stopping::No | Stopping::Ending(_));
        for end in self.entry_point.take_pipes() {
            if opens {
                let state = ConnectionState::AwaitHello;
                self.open(Connection::new(Stream::Pipe(end), state, None, now));
            }
        }
        let (any, writable) = self.peers.look_at_pipes();
        if any {
            self.watches_until = now + nanos(self.network.watch_for);
        }
        for place in writable {
            self.on_writable(place, now);
        }
    }

    fn on_writable(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        if connection.state == ConnectionState::Dialling {
            self.on_dialled(place, now);
        } else if connection.blocked {
            connection.blocked = false;
            self.loop_engine.inner.borrow_mut().outside.outbox.to(place);
        }
    }
}
