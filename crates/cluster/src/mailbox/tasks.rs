//! The tasks of a loop: clients, and transaction bodies handed over by other threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::stream::{FuturesUnordered, StreamExt};
use muesli_core::client::Task;

use crate::mailbox::signal::Signal;

/// So many tasks may end in one turn before the loop looks at its connections again.
const ENDED_PER_TICK: usize = 256;

/// The tasks of a loop; each is polled when it was woken.
pub(crate) struct Tasks {
    running: FuturesUnordered<Task>,
    waker: Waker,
}

impl Tasks {
    /// No tasks yet; woken ones raise `signal`.
    pub fn new(signal: Arc<Signal>) -> Tasks {
        Tasks { running: FuturesUnordered::new(), waker: Waker::from(signal) }
    }

    /// Takes in a task.
    pub fn spawn(&mut self, task: Task) {
        self.running.push(task);
    }

    /// How many have not ended.
    pub fn count(&self) -> usize {
        self.running.len()
    }

    /// Drops all of them; what they hold may panic as it is dropped.
    pub fn clear(&mut self) {
        for task in std::mem::take(&mut self.running) {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
        }
    }

    /// Polls those that were woken; true if more are to be polled soon.
    pub fn poll(&mut self) -> bool {
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..ENDED_PER_TICK {
            let polled = || self.running.poll_next_unpin(&mut context);
            match catch_unwind(AssertUnwindSafe(polled)) {
                Ok(Poll::Ready(Some(()))) => {}
                Ok(Poll::Ready(None) | Poll::Pending) => return false,
                // A task that panics is over. Whoever waits for it is told by the task itself.
                Err(_) => {}
            }
        }
        true
    }
}
