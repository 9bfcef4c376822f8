//! The tasks of a loop: clients, and transaction bodies handed over by other threads.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::stream::{FuturesUnordered, StreamExt};
use muesli_core::client::Task;

use crate::signal::Signal;

/// So many tasks may end in one turn before the loop looks at its connections again.
const ENDED_PER_TURN: usize = 256;

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

    /// Polls those that were woken; true if more are to be polled soon.
    pub fn poll(&mut self) -> bool {
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..ENDED_PER_TURN {
            match self.running.poll_next_unpin(&mut context) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) | Poll::Pending => return false,
            }
        }
        true
    }
}
