//! A turn of a node: take in what has arrived, poll the clients that can go on, let the effects
//! leave when the processor has done it all.

use std::rc::Rc;

use muesli_core::Nanos;
use muesli_core::client::{self, Engine};

use super::host::Host;
use super::host::engine::HostEngine;
use super::host::input::HostInput;
use super::host::message::SentMessage;
use super::tasks::{Polled, TaskId};
use super::{Event, World};
use crate::hardware::processor::Tick;
use crate::time::VirtualTime;

/// The most polls of one turn; what is still ready then waits for the next.
const POLLS_PER_TICK: usize = 1_024;
/// One timer of so many is early, where any are.
const EARLY_ONCE_IN: u64 = 64;

impl World {
    /// Gives a host an input, unless its node is down.
    pub(super) fn offer(&mut self, place: usize, input: HostInput) {
        let mut host = self.engines[place].host.borrow_mut();
        if !host.is_up() {
            return;
        }
        let start = host.outside.processor.offer(self.now, input);
        drop(host);
        self.schedule_tick(place, start);
    }

    /// Asks for a turn of a host that has work of its own.
    pub(super) fn wake(&mut self, place: usize) {
        let start = self.engines[place].host.borrow_mut().outside.processor.wake(self.now);
        self.schedule_tick(place, start);
    }

    fn schedule_tick(&mut self, place: usize, start: Option<VirtualTime>) {
        match start {
            Some(start) if start <= self.now => self.due_ticks.push_back(place),
            Some(start) => self.queue.push(start, Event::Tick(place)),
            None => {}
        }
    }

    /// Begins a turn that was asked for, if it still can begin.
    pub(super) fn tick(&mut self, place: usize) {
        let host_engine = Rc::clone(&self.engines[place]);
        let mut host = host_engine.host.borrow_mut();
        match host.outside.processor.begin(self.now) {
            Tick::Void => return,
            Tick::At(start) => return self.queue.push(start, Event::Tick(place)),
            Tick::Begins => host.take_inputs(self.now),
        }
        drop(host);
        self.poll_tasks(place, &host_engine);
        let mut host = host_engine.host.borrow_mut();
        let pieces_left = host.go_on_with_checkpoint();
        let leave = host.end_tick();
        self.flush(place, &mut host, leave);
        if host.environment().restart {
            drop(host);
            return self.restart(place);
        }
        let waiting = self.tasks[place].has_ready() || host.outside.processor.waiting() > 0;
        let more = waiting || pieces_left || host.has_left_over();
        drop(host);
        if more {
            self.wake(place);
        }
    }

    fn poll_tasks(&mut self, place: usize, host_engine: &Rc<HostEngine>) {
        self.distribute_woken(place);
        self.spawn_asked(place, host_engine);
        self.tasks[place].begin_tick();
        if !self.tasks[place].has_ready() {
            return;
        }
        let _here = client::enter(Rc::clone(host_engine) as Rc<dyn Engine>);
        for _ in 0..POLLS_PER_TICK {
            host_engine.host.borrow_mut().polled_operations = 0;
            match self.tasks[place].poll_next() {
                Polled::Nothing => break,
                Polled::Goes(_) => {}
                Polled::Ended(task) => self.client_ended(task),
            }
            host_engine.host.borrow_mut().perform();
            self.spawn_asked(place, host_engine);
            self.distribute_woken(place);
        }
    }

    /// Begins the tasks that were asked for: by those that were polled, and by one that was dropped
    /// since the last turn.
    fn spawn_asked(&mut self, place: usize, host_engine: &HostEngine) {
        for task in host_engine.host.borrow_mut().outside.outgoing.spawned.drain(..) {
            self.tasks[place].spawn(task);
        }
    }

    /// Tells every host which of its tasks were woken, and asks for turns of hosts other than the
    /// one whose turn it is.
    pub(super) fn distribute_woken(&mut self, tick_of: usize) {
        let mut names: Vec<TaskId> = std::mem::take(&mut self.woken_names);
        self.woken.drain_into(&mut names);
        for task in names.drain(..) {
            let place = task.place as usize;
            self.tasks[place].make_ready(task);
            if place != tick_of {
                self.wake(place);
            }
        }
        self.woken_names = names;
    }

    /// Everything that the turn has said leaves at `leave`.
    fn flush(&mut self, place: usize, host: &mut Host, leave: VirtualTime) {
        let incarnation = host.incarnation;
        for record in host.outside.outgoing.records.drain(..) {
            let bytes = record.bytes;
            host.disk.append(leave, record, bytes);
        }
        if let Some(end) = host.disk.start_sync(leave) {
            self.queue.push(end, Event::Synced { place, incarnation });
        }
        for sent in host.outside.outgoing.messages.drain(..) {
            self.send(sent, leave);
        }
        for (timer, after) in host.outside.outgoing.timers.drain(..) {
            let after = self.perhaps_early(after);
            let due = host.clock.after(self.now, after);
            self.queue.push(due, Event::Timer { place, incarnation, timer });
        }
        for (op, duration) in host.outside.outgoing.sleeps.drain(..) {
            let due = host.clock.after(self.now, duration);
            self.queue.push(due, Event::Awake { place, incarnation, op });
        }
    }

    /// Of some timers half of their time, or nothing. No protocol counts on time.
    fn perhaps_early(&mut self, after: Nanos) -> Nanos {
        let Some(random) = &mut self.early_timers else { return after };
        match random.below(EARLY_ONCE_IN) {
            0 => Nanos(after.0 / 2 * random.below(2)),
            _ => after,
        }
    }

    fn send(&mut self, sent: SentMessage, leave: VirtualTime) {
        let (from, to) = (sent.envelope.from.node, sent.envelope.to.node);
        let bytes = sent.envelope.message.bytes;
        let joined = self.unregistered.is_empty() || self.are_joined(from, to);
        let departure = joined.then(|| self.network.send(leave, from, to, bytes));
        match departure.flatten() {
            Some(departure) => {
                self.queue.push(departure.due, Event::Arrive { departure, sent });
            }
            None => self.trace_message("unsent", &sent.envelope),
        }
    }
}
