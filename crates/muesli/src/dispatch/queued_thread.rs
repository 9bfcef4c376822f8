//! Threads that wait for the state of a lock, and how a wait ends.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

/// Who waits looks so often whether it was served before it sleeps: for about as long as it takes
/// to be woken.
const LOOKS: u32 = 400;

/// It looks at the state itself once in so many times; and so long after it has seen it free once
/// more.
const LOOKS_BETWEEN: u32 = 64;
const LOOKS_IF_FREE: u32 = 8;

/// It waits in the queue, awake.
pub(super) const QUEUED: u8 = 0;
/// It sleeps.
pub(super) const PARKED: u8 = 1;
/// It slept, is in the queue again, and is being woken.
pub(super) const CALLED: u8 = 2;
/// The state is kept for it.
pub(super) const GRANTED: u8 = 3;
/// Its job was run.
pub(super) const SERVED: u8 = 4;
/// The lock was shut.
pub(super) const REFUSED: u8 = 5;

/// A thread that waits.
pub(super) struct QueuedThread {
    pub status: AtomicU8,
    pub thread: Thread,
}

thread_local! {
    /// Of this thread, which waits for one thing at a time.
    pub(super) static WAITER: Arc<QueuedThread> = Arc::new(QueuedThread {
        status: AtomicU8::new(QUEUED),
        thread: thread::current(),
    });
}

impl QueuedThread {
    /// Its wait has ended so; the thread to be woken for that, if it sleeps.
    #[must_use = "who sleeps is to be woken"]
    pub fn end(&self, status: u8) -> Option<Thread> {
        let before = self.status.swap(status, Ordering::AcqRel);
        (before == PARKED).then(|| self.thread.clone())
    }

    pub fn status(&self) -> u8 {
        self.status.load(Ordering::Acquire)
    }

    /// Whether the status was `from`, and is `to` now.
    pub fn becomes(&self, from: u8, to: u8) -> bool {
        self.status.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A job of somebody who waits, to be run by who is inside. Dropped, its wait is over.
pub(crate) struct QueuedJob<J> {
    /// Until its wait is over: what it holds is dropped before its owner goes on.
    job: Option<J>,
    waiter: Arc<QueuedThread>,
}

impl<J> QueuedJob<J> {
    pub(super) fn new(job: J, waiter: Arc<QueuedThread>) -> QueuedJob<J> {
        QueuedJob { job: Some(job), waiter }
    }

    pub fn job(&self) -> &J {
        self.job.as_ref().expect("it has not ended")
    }

    /// It was run; the thread to be woken for that, once the state was left.
    pub fn end(mut self) -> Option<Thread> {
        self.job = None;
        self.waiter.end(SERVED)
    }
}

impl<J> Drop for QueuedJob<J> {
    fn drop(&mut self) {
        if self.job.take().is_some() {
            wake(self.waiter.end(SERVED));
        }
    }
}

/// Threads that are to be woken once the state was left, however that comes about.
#[derive(Default)]
pub(crate) struct WokenThreads(Vec<Thread>);

impl WokenThreads {
    pub fn add(&mut self, thread: Option<Thread>) {
        self.0.extend(thread);
    }
}

impl Drop for WokenThreads {
    fn drop(&mut self) {
        self.0.iter().for_each(Thread::unpark);
    }
}

pub(super) fn wake(thread: Option<Thread>) {
    if let Some(thread) = thread {
        thread.unpark();
    }
}

/// How often a thread looks before it sleeps: not at all, where no other processor can be at work
/// meanwhile.
fn looks() -> u32 {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let processors =
        PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
    if *processors > 1 { LOOKS } else { 0 }
}

/// Looks for a moment whether something is there.
pub(super) fn look_for(is_there: impl Fn() -> bool) {
    for _ in 0..looks() {
        if is_there() {
            return;
        }
        std::hint::spin_loop();
    }
}

/// What somebody has seen who looked around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookEnd {
    /// Its wait is over, or it was called.
    Over,
    /// The state has been free since this leaving, for as long as one takes to come back.
    Free(u32),
    Nothing,
}

/// Looks for a moment whether somebody's wait is over, and whether the state stays free, which
/// `free_since` says; if another processor can be at work meanwhile.
pub(super) fn look_around(waiter: &QueuedThread, free_since: &AtomicU32) -> LookEnd {
    let (mut seen, mut looks_at_state) = (0, LOOKS_BETWEEN);
    for look in 0..looks() {
        if waiter.status() != QUEUED {
            return LookEnd::Over;
        }
        if look == looks_at_state {
            let since = free_since.load(Ordering::Relaxed);
            if since != 0 && since == seen {
                return LookEnd::Free(since);
            }
            // Whoever writes it waits for who looks: seldom, unless it is free.
            looks_at_state += if since != 0 { LOOKS_IF_FREE } else { LOOKS_BETWEEN };
            seen = since;
        }
        std::hint::spin_loop();
    }
    match waiter.status() {
        QUEUED => LookEnd::Nothing,
        _ => LookEnd::Over,
    }
}
