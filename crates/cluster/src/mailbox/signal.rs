//! Waking a loop that sleeps in its poller, at no cost while it is awake.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::task::Wake;

/// Whether a loop sleeps and whether there is something for it.
pub(crate) struct Signal {
    sleeping: AtomicBool,
    raised: AtomicBool,
    waker: mio::Waker,
}

impl Signal {
    pub fn new(waker: mio::Waker) -> Signal {
        Signal { sleeping: AtomicBool::new(false), raised: AtomicBool::new(false), waker }
    }

    /// There is something for the loop. Call after publishing it.
    pub fn raise(&self) {
        self.raised.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::AcqRel) {
            // The only error is that the poller is gone, and then nobody sleeps.
            let _ = self.waker.wake();
        }
    }

    /// Whether there is something for the loop.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// The loop is about to sleep; true if it may not, because there is something for it.
    pub fn begin_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.raised.load(Ordering::Relaxed)
    }

    /// The loop is awake, and will look at everything.
    pub fn end_sleep(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
        // It takes over what was published before it was raised.
        self.raised.swap(false, Ordering::SeqCst);
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}
