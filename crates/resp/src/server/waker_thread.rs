//! A thread that waits for the network in the place of a loop that has nothing to do.
//!
//! The loop looks at its connections whenever it is polled, and there is always more to look at
//! while clients are busy. Once there is nothing, this thread waits until the loop's poller has
//! something, which it does not take, and wakes the loop's task.

use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::Waker;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

enum Wait {
    /// The loop looks itself.
    Idle,
    /// It is to be woken when there is something, or at this time.
    Armed(Waker, Instant),
    Over,
}

struct Between {
    wait: Mutex<Wait>,
    changed: Condvar,
}

impl Between {
    fn wait(&self) -> MutexGuard<'_, Wait> {
        self.wait.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

/// The thread; dropped, it ends.
pub(super) struct WakerThread {
    between: Arc<Between>,
    thread: Option<JoinHandle<()>>,
    /// Wakes the thread from its wait.
    poke: mio::Waker,
}

impl WakerThread {
    /// Begins to wait for the poller of this descriptor, once it is told to. The poller lives
    /// longer than the thread.
    pub fn start(poller: RawFd, poke: mio::Waker) -> io::Result<WakerThread> {
        let between = Arc::new(Between { wait: Mutex::new(Wait::Idle), changed: Condvar::new() });
        let (shared, outer) = (between.clone(), Poll::new()?);
        outer.registry().register(&mut SourceFd(&poller), Token(0), Interest::READABLE)?;
        let named = thread::Builder::new().name("muesli-resp-waker".to_owned());
        let thread = Some(named.spawn(move || run(&shared, outer, poller))?);
        Ok(WakerThread { between, thread, poke })
    }

    /// Has the loop woken when there is something to do, or at this time at the latest.
    pub fn arm(&self, waker: &Waker, at: Instant) {
        let mut wait = self.between.wait();
        let is_armed = matches!(*wait, Wait::Armed(..));
        if !matches!(*wait, Wait::Over) {
            *wait = Wait::Armed(waker.clone(), at);
        }
        drop(wait);
        if !is_armed {
            self.between.changed.notify_one();
        }
    }
}

impl Drop for WakerThread {
    fn drop(&mut self) {
        *self.between.wait() = Wait::Over;
        self.between.changed.notify_one();
        let _ = self.poke.wake(); // Where that fails, it ends at the next time that it is to wake.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(between: &Between, mut outer: Poll, poller: RawFd) {
    let mut events = Events::with_capacity(1);
    let mut wait = between.wait();
    loop {
        let until = match &*wait {
            Wait::Over => return,
            Wait::Armed(_, until) => *until,
            Wait::Idle => {
                let woken = between.changed.wait(wait);
                wait = woken.unwrap_or_else(|broken| broken.into_inner());
                continue;
            }
        };
        drop(wait);
        let left = until.saturating_duration_since(Instant::now());
        let left = left.min(Duration::from_secs(1));
        // What was there before is told again.
        let again =
            outer.registry().reregister(&mut SourceFd(&poller), Token(0), Interest::READABLE);
        let found = again.and_then(|()| outer.poll(&mut events, Some(left)));
        wait = between.wait();
        let is_over = Instant::now() >= until;
        // Where nothing can be waited for, the loop looks for itself.
        let is_found = found.is_err() || !events.is_empty();
        if (is_over || is_found)
            && matches!(*wait, Wait::Armed(..))
            && let Wait::Armed(waker, _) = std::mem::replace(&mut *wait, Wait::Idle)
        {
            waker.wake();
        }
    }
}
