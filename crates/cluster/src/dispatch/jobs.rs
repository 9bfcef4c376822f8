//! What other threads hand over: jobs, which become tasks of the loop, and commands.

use crate::dispatch::event_loop::{Loop, Stopping};
use crate::mailbox::entry_point::Command;
/// So many jobs from other threads are taken in one turn.
const JOBS_PER_TICK: usize = 256;

impl Loop {
    pub(super) fn run_tasks(&mut self) {
        let (all, most) = self.loop_engine.inner.borrow().outside.outbox.waiting();
        self.peers.all_crowded = all > self.network.outgoing_bytes_total;
        let congested = self.loop_engine.inner.borrow().is_congested();
        self.peers.all_crowded |= congested;
        let runs = matches!(self.stopping, Stopping::No | Stopping::Ending(_));
        // Tasks of a server are its driver's own, and say little.
        let is_full = self.peers.is_client() && most > self.network.outgoing_bytes_high;
        if is_full || congested || !runs {
            return;
        }
        for _ in 0..JOBS_PER_TICK {
            let Some(job) = self.entry_point.jobs.pop() else { break };
            self.tasks.spawn(job());
        }
        if !self.entry_point.jobs.is_empty() {
            self.entry_point.signal.raise();
        }
        let commands = std::mem::take(
            &mut *self.entry_point.commands.lock().unwrap_or_else(|broken| broken.into_inner()),
        );
        for command in commands {
            match command {
                Command::CreateSpace(space, answer) => self.ask_for_space(space, answer),
                Command::Map(map) => {
                    let now = self.loop_engine.inner.borrow().now();
                    let _ = self.learn_map(map, now); // Of another cluster, it is no news.
                }
                Command::Found { number, address, found } => {
                    let now = self.loop_engine.inner.borrow().now();
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
            self.entry_point.signal.raise();
        }
        // What the node said before it broke may be half of what it had to say.
        assert!(!self.loop_engine.broken.get(), "the node of this loop panicked");
        for task in self.loop_engine.spawned.take() {
            self.tasks.spawn(task);
            self.entry_point.signal.raise();
        }
    }
}
