//! The loop of a process: its turns.
//!
//! A turn reads once from every connection that has something, steps the node with each message,
//! rings the alarms that are due, polls the tasks that were woken, and writes once to every
//! connection that something is for; where many answers are ready for one, they leave before.
//! Without work the loop looks for more for a while, and then sleeps in the poller. The same loop
//! serves repositories and runs clients; a process may do both.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use muesli_core::client::{self, Engine};
use muesli_core::operations::SLICE;
use muesli_core::{Nanos, Recorder, RepositoryId};

use crate::connections::connection::{Arrived, Connection, Stage};
use crate::connections::peers::Peers;
use crate::mailbox::door::{Command, Door};
use crate::mailbox::tasks::Tasks;
use crate::network::Network;
use crate::node::engine::LoopEngine;
use crate::storage::log::LogFailure;
use crate::wire::hello::Station as Kind;
use crate::wire::refusal::{Reason, left};
use crate::wire::{frame, proof};

/// The token of the listener; connections have the numbers of their places.
pub(crate) const LISTENER: Token = Token(usize::MAX - 1);
/// The token of the waker.
pub(crate) const WAKER: Token = Token(usize::MAX - 2);
/// So many bytes are read from a connection at once.
const READ_BYTES: usize = 256 << 10;
/// So many jobs from other threads are taken in one turn.
const JOBS_PER_TURN: usize = 256;
/// How often a server that writes to a connection says how much it has taken over it.
const TELL_EVERY: Nanos = Nanos::from_millis(5);
/// How often timeouts are looked after.
const HOUSEKEEPING_EVERY: Nanos = Nanos::from_millis(20);
/// While a checkpoint is under way, an idle loop looks after it so often.
const CHECKPOINT_PAUSE: Duration = Duration::from_micros(200);
/// How long a stopping process waits, at each stage, for transactions to be decided and for its
/// last words to leave.
const STOPPING_AT_MOST: Nanos = Nanos::from_millis(1_000);

/// Why a loop ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogFailure),
    /// The server's own files cannot be written.
    #[error("{0}")]
    Folder(String),
    /// A client's timestamp lease cannot be written.
    #[error("{0}")]
    Lease(String),
    /// The poller failed.
    #[error("the system refused to wait for connections: {0}")]
    Poll(String),
    /// A loop of the process ended by a mistake of its own.
    #[error("a loop of this process panicked")]
    Panicked,
    /// The cluster wants nothing of this process.
    #[error("{0}")]
    Refused(String),
    /// It is to be started again, so that a member of a group goes by what its disk holds.
    #[error("a member of a group has to go by what its disk holds: start this server again")]
    Restart,
}

/// How far a loop is on its way to its end, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    No,
    /// No transaction begins any more, and open ones may end.
    Ending(Nanos),
    /// Commits under way here are decided, and its participants learn of decisions.
    Settling(Nanos),
    /// Nothing more is taken in; what was is answered when the log is stable.
    Answering(Nanos),
    /// Everybody was told; the last words leave.
    Leaving(Nanos),
}

/// A loop, on its own thread.
pub(crate) struct Loop {
    pub station: Rc<LoopEngine>,
    pub peers: Peers,
    tasks: Tasks,
    poll: Poll,
    pub door: Arc<Door>,
    pub network: Network,
    scratch: Vec<u8>,
    /// Until then it looks for more instead of sleeping.
    watches_until: Nanos,
    housekeeping_due: Nanos,
    /// More may wait to be accepted.
    pub accept_again: bool,
    stopping: Stopping,
    /// How long open transactions may take to end when it is told to stop.
    pub close_within: Nanos,
    pub failed: Option<Failed>,
    /// Where what those who look after this process should know is told.
    pub notice: fn(&str),
    /// The members of which was told that they are lost.
    pub told_lost: Vec<RepositoryId>,
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(duration.as_nanos() as u64)
}

impl Loop {
    pub fn new(
        station: LoopEngine,
        peers: Peers,
        poll: Poll,
        door: Arc<Door>,
        network: Network,
    ) -> Loop {
        Loop {
            station: Rc::new(station),
            peers,
            tasks: Tasks::new(door.signal.clone()),
            poll,
            door,
            network,
            scratch: vec![0; READ_BYTES],
            watches_until: Nanos(0),
            housekeeping_due: Nanos(0),
            accept_again: false,
            stopping: Stopping::No,
            close_within: STOPPING_AT_MOST,
            failed: None,
            notice: |_| {},
            told_lost: Vec::new(),
        }
    }

    /// Runs until it is told to stop, or cannot go on.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn run(mut self) -> Result<Recorder, Failed> {
        let engine: Rc<dyn Engine> = self.station.clone();
        let entered = client::enter(engine);
        self.begin();
        let mut events = Events::with_capacity(1024);
        let ended = loop {
            if let Err(failed) = self.turn(&mut events) {
                break Err(failed);
            }
            if self.has_stopped() {
                break Ok(());
            }
        };
        self.door.stop();
        // Where it failed, its tasks roll back what they had open while the engine is here.
        self.end_tasks();
        drop(entered);
        ended?;
        self.station.inner.borrow_mut().close_files()?;
        if self.has_left() {
            return Err(Failed::Refused(left(self.peers.me.node)));
        }
        Ok(self.take_recorder())
    }

    fn begin(&mut self) {
        let inner = &mut *self.station.inner.borrow_mut();
        inner.machine.environment_mut().now = self.station.clock.now();
        let is_server = self.peers.me.station == Kind::Server;
        let me = &self.peers.me;
        inner.outside.issuer = is_server.then(|| proof::issuer(me.cluster, me.secret.as_ref()));
        inner.start();
    }

    fn take_recorder(&mut self) -> Recorder {
        let inner = &mut *self.station.inner.borrow_mut();
        let mut recorder =
            inner.machine.environment_mut().recorder.take().map_or_else(Recorder::new, |it| *it);
        inner.machine.record_running(&mut recorder);
        recorder
    }

    fn turn(&mut self, events: &mut Events) -> Result<(), Failed> {
        self.wait(events)?;
        let now = self.station.clock.now();
        self.station.inner.borrow_mut().machine.environment_mut().now = now;
        self.station.begins.set(0);
        if !events.is_empty() {
            self.watches_until = now + nanos(self.network.watch_for);
        }
        for event in &*events {
            self.on_event(event, now);
        }
        self.read_all(now);
        self.station.inner.borrow_mut().ring_alarms();
        if now >= self.housekeeping_due {
            self.housekeeping_due = now + HOUSEKEEPING_EVERY;
            self.keep_house(now);
            self.station.inner.borrow_mut().settle_all()?;
            self.tell_losses();
        }
        self.run_tasks();
        self.station.inner.borrow_mut().settle_log()?;
        self.station.inner.borrow_mut().go_on_with_checkpoint()?;
        self.keep_placement();
        if self.failed.is_none() {
            self.flush(now);
            self.go_on()?;
        }
        if self.peers.folder.is_some() && self.station.inner.borrow().machine.environment().restart
        {
            self.station.inner.borrow_mut().close_log()?;
            return Err(Failed::Restart);
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Does what is left over, now that what was said has left.
    fn go_on(&mut self) -> Result<(), LogFailure> {
        let inner = &mut *self.station.inner.borrow_mut();
        if !inner.go_on() {
            return Ok(());
        }
        let until = self.station.clock.now() + SLICE;
        while self.station.clock.now() < until && inner.go_on() {}
        inner.settle_log()
    }

    /// Waits for something to do.
    fn wait(&mut self, events: &mut Events) -> Result<(), Failed> {
        let at_most = self.sleep_at_most();
        if self.watch(events, at_most)? {
            return Ok(());
        }
        let raised = self.door.signal.lie_down();
        let at_most = if raised { Duration::ZERO } else { at_most };
        let polled = self.look(events, at_most);
        self.door.signal.get_up();
        polled
    }

    /// Looks for something to do without sleeping, for as long as more is likely to come soon;
    /// true if connections have something.
    fn watch(&mut self, events: &mut Events, at_most: Duration) -> Result<bool, Failed> {
        let now = self.station.clock.now();
        let until = self.watches_until.min(now + nanos(at_most));
        while self.station.clock.now() < until && !self.door.signal.is_raised() {
            self.look(events, Duration::ZERO)?;
            if !events.is_empty() {
                return Ok(true);
            }
            std::thread::yield_now();
        }
        Ok(false)
    }

    fn look(&mut self, events: &mut Events, at_most: Duration) -> Result<(), Failed> {
        self.station.inner.borrow_mut().outside.counts.traffic.polls += 1;
        match self.poll.poll(events, Some(at_most)) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                Err(Failed::Poll(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn sleep_at_most(&self) -> Duration {
        let inner = self.station.inner.borrow();
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
        Duration::from_nanos((next - self.station.clock.now()).0)
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
                    self.peers.note_readable(place);
                }
            }
        }
    }

    fn on_writable(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        if connection.stage == Stage::Dialling {
            self.on_dialled(place, now);
        } else if connection.blocked {
            connection.blocked = false;
            self.station.inner.borrow_mut().outside.outbox.to(place);
        }
    }

    fn read_all(&mut self, now: Nanos) {
        if matches!(self.stopping, Stopping::Answering(_) | Stopping::Leaving(_)) {
            return;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut joined = Vec::new();
        for place in self.peers.take_readable() {
            let waiting = self.station.inner.borrow().outside.outbox.waiting_at(place);
            let Some(connection) = self.peers.at(place) else { continue };
            if connection.stage == Stage::Dialling {
                continue;
            }
            if self.is_held_back(connection, waiting) {
                self.peers.note_readable(place);
                continue;
            }
            if connection.stalled {
                self.go_on_with_frames(place, &mut joined, now);
                continue;
            }
            self.station.inner.borrow_mut().outside.counts.traffic.reads += 1;
            let connection = self.peers.at_mut(place).expect("just seen");
            match connection.read(&mut scratch) {
                Arrived::Nothing => {}
                Arrived::Closed => {
                    self.close(place, now, "the other end closed the connection");
                    continue;
                }
                Arrived::Bytes(count) if connection.is_held(&scratch[..count], now) => {}
                Arrived::Bytes(count) => {
                    let bytes = connection.join(&scratch[..count], &mut joined);
                    self.take_frames(place, bytes, now);
                    joined.clear();
                }
            }
            if self.peers.at(place).is_some_and(|connection| connection.readable) {
                self.peers.note_readable(place);
            }
        }
        self.scratch = scratch;
    }

    /// Frames that have come before are looked at now.
    fn go_on_with_frames(&mut self, place: usize, joined: &mut Vec<u8>, now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        connection.stalled = false;
        let bytes = connection.join(&[], joined);
        self.take_frames(place, bytes, now);
        joined.clear();
        self.peers.note_readable(place);
    }

    /// Whether frames that have come are not to be looked at for now: what they cause could not
    /// leave.
    pub(crate) fn stalls(&self, place: usize) -> bool {
        let waiting = self.station.inner.borrow().outside.outbox.waiting_at(place);
        self.peers.at(place).is_some_and(|connection| self.is_held_back(connection, waiting))
    }

    /// Takes the whole frames out of `bytes`, and keeps what follows them.
    fn take_frames(&mut self, place: usize, bytes: &[u8], now: Nanos) {
        let mut at = 0;
        loop {
            let Some(connection) = self.peers.at_mut(place) else { return };
            if connection.stage == Stage::Closing {
                return;
            }
            let most = connection.frame_bytes_max(self.network.frame_bytes_max);
            match frame::next(&bytes[at..], most) {
                Ok(Some(found)) => {
                    connection.hear(now);
                    at += found.bytes();
                    self.return_room(place);
                    self.on_frame(place, found, now);
                    if at < bytes.len() && self.stalls(place) {
                        return self.keep_frames(place, &bytes[at..], now);
                    }
                }
                Ok(None) => {
                    connection.keep(&bytes[at..], now);
                    self.ask_for_room(place);
                    return;
                }
                Err(error) => {
                    self.refuse(place, Reason::Misunderstood, error.to_string(), now);
                    return;
                }
            }
        }
    }

    fn keep_frames(&mut self, place: usize, rest: &[u8], now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        connection.keep(rest, now);
        connection.stalled = true;
        self.peers.note_readable(place);
    }

    fn run_tasks(&mut self) {
        let (all, most) = self.station.inner.borrow().outside.outbox.waiting();
        self.peers.all_crowded = all > self.network.outgoing_bytes_total;
        let congested = self.station.inner.borrow().congested;
        self.peers.all_crowded |= congested;
        let runs = matches!(self.stopping, Stopping::No | Stopping::Ending(_));
        // Tasks of a server are its driver's own, and say little.
        let is_full = self.peers.is_client() && most > self.network.outgoing_bytes_high;
        if is_full || congested || !runs {
            return;
        }
        for _ in 0..JOBS_PER_TURN {
            let Some(job) = self.door.jobs.pop() else { break };
            self.tasks.spawn(job());
        }
        if !self.door.jobs.is_empty() {
            self.door.signal.raise();
        }
        let commands = std::mem::take(
            &mut *self.door.commands.lock().unwrap_or_else(|broken| broken.into_inner()),
        );
        for command in commands {
            match command {
                Command::CreateSpace(space, answer) => self.ask_for_space(space, answer),
                Command::Map(map) => {
                    let now = self.station.inner.borrow().now();
                    let _ = self.learn_map(map, now); // Of another cluster, it is no news.
                }
                Command::Found { number, address, found } => {
                    let now = self.station.inner.borrow().now();
                    self.on_found(number, &address, found, now);
                }
                Command::SpacesRead(read) => self.spaces_read(read),
                Command::DoubtSpaces => self.doubt_spaces(),
                Command::Register(register, answer) => {
                    let _ = answer.send(self.take_spaces(&register).err());
                }
            }
        }
        if self.tasks.poll() {
            self.door.signal.raise();
        }
        // What the node said before it broke may be half of what it had to say.
        assert!(!self.station.broken.get(), "the node of this loop panicked");
        for task in self.station.spawned.take() {
            self.tasks.spawn(task);
            self.door.signal.raise();
        }
    }

    /// Writes once to every connection that something is for.
    fn flush(&mut self, now: Nanos) {
        let dirty = self.station.inner.borrow_mut().outside.outbox.take_dirty();
        if dirty.is_empty() {
            return;
        }
        for place in dirty {
            self.tell_taken(place, now);
            self.write(place, now);
            let node = self.peers.at(place).and_then(Connection::server);
            if let Some(node) = node {
                self.station.inner.borrow_mut().note_sent(place, node, now);
            }
        }
        let traffic = self.station.inner.borrow().outside.counts.traffic;
        *self.door.traffic.lock().unwrap_or_else(|broken| broken.into_inner()) = traffic;
    }

    /// Says how much was taken over a connection, behind what is said there anyway.
    fn tell_taken(&mut self, place: usize, now: Nanos) {
        if self.peers.is_client() {
            return; // Servers ask nothing of clients.
        }
        let Some(connection) = self.peers.at_mut(place) else { return };
        if connection.taken > connection.told && connection.told_at + TELL_EVERY <= now {
            self.tell_alive(place, now);
        }
    }

    pub(crate) fn write(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        if connection.blocked || connection.stage == Stage::Dialling {
            return;
        }
        let mut inner = self.station.inner.borrow_mut();
        let outgoing = inner.outside.outbox.at(place);
        let ready = outgoing.ready();
        if ready.is_empty() {
            return;
        }
        let written = connection.write(ready, now);
        match written {
            Some(count) => {
                outgoing.advance(count);
                let traffic = &mut inner.outside.counts.traffic;
                traffic.writes += 1;
                traffic.bytes += count as u64;
            }
            None => {
                drop(inner);
                self.close(place, now, "the connection broke");
            }
        }
    }

    /// Whether the loop was told to stop and is done. Open transactions may end first, then the
    /// commits under way here and those that participants here wait for are decided, then what was
    /// taken in is answered, and in the end everybody is told.
    fn has_stopped(&mut self) -> bool {
        if !self.door.is_stopping() {
            return false;
        }
        let now = self.station.inner.borrow().now();
        let late = |since: Nanos| now - since > STOPPING_AT_MOST;
        let (unfinished, in_doubt) = self.station.inner.borrow().machine.unfinished();
        match self.stopping {
            Stopping::No => {
                self.station.closing.set(true);
                self.stopping = Stopping::Ending(now);
            }
            Stopping::Ending(since) => {
                // Whoever was answered in this turn has not been polled yet.
                let is_polled = !self.tasks.poll();
                if (unfinished == 0 && is_polled) || now - since > self.close_within {
                    self.end_tasks();
                    self.stopping = Stopping::Settling(now);
                }
            }
            Stopping::Settling(since) => {
                if (unfinished == 0 && in_doubt == 0) || late(since) {
                    self.station.inner.borrow_mut().leave();
                    self.stopping = Stopping::Answering(now);
                }
            }
            Stopping::Answering(since) => {
                if !self.station.inner.borrow().is_gated() || late(since) {
                    self.stopping = Stopping::Leaving(now);
                    self.say_farewell(now);
                }
            }
            Stopping::Leaving(since) => {
                let all_said = self.station.inner.borrow().outside.outbox.waiting().0 == 0;
                return all_said || late(since);
            }
        }
        self.door.signal.raise();
        false
    }

    /// Drops what runs on the loop, and aborts what is open.
    fn end_tasks(&mut self) {
        self.tasks.clear();
        self.door.shut();
        self.station.inner.borrow_mut().abort_open();
    }

    /// Gives a connection a place.
    pub(crate) fn open(&mut self, mut connection: Connection) -> Option<usize> {
        let place = self.peers.free_place();
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut connection.stream, Token(place), interest).ok()?;
        // Messages of a turn leave together already; waiting for more would only delay them.
        let _ = connection.stream.set_nodelay(true);
        self.station.inner.borrow_mut().outside.outbox.open(place);
        self.peers.put(place, connection);
        Some(place)
    }

    /// Takes in a task of the driver's own.
    pub(crate) fn spawn(&mut self, task: muesli_core::client::Task) {
        self.tasks.spawn(task);
        self.door.signal.raise();
    }

    /// How many tasks run.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.count()
    }
}
