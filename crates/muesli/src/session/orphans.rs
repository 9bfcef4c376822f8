//! The commits of a session that nobody waits for any more.

use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// The commits of a session that were asked for and that nobody waits for.
#[derive(Debug, Default)]
pub(crate) struct Orphans(Mutex<Waiters>);

#[derive(Debug, Default)]
struct Waiters {
    undecided: usize,
    wakers: Vec<Waker>,
}

impl Orphans {
    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// A further one is not decided yet.
    pub fn add(&self) {
        self.waiters().undecided += 1;
    }

    /// One of them is decided, or never will be.
    pub fn remove(&self) {
        let mut waiters = self.waiters();
        assert!(waiters.undecided > 0, "each is added before it is removed");
        waiters.undecided -= 1;
        if waiters.undecided == 0 {
            let wakers = std::mem::take(&mut waiters.wakers);
            drop(waiters);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Ready when all are decided.
    pub fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut waiters = self.waiters();
        if waiters.undecided == 0 {
            return Poll::Ready(());
        }
        if !waiters.wakers.iter().any(|known| known.will_wake(cx.waker())) {
            waiters.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
