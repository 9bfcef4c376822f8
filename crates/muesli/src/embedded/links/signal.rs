//! Waking a sleeping loop, and telling a busy one that it has mail, at no cost to either while
//! nothing new happens.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{self, Thread};
use std::time::Duration;

/// Whether a loop sleeps, and its thread. Apart from what others write.
#[derive(Default)]
#[repr(align(128))]
pub(in super::super) struct Signal {
    mail: AtomicBool,
    sleeping: AtomicBool,
    attention: AtomicBool,
    /// Somebody else than the loop's thread has left that something to do.
    called: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Signal {
    /// This thread is the loop's.
    pub fn adopt(&self) {
        let _ = self.thread.set(thread::current());
    }

    /// Wakes the loop if it sleeps. Call after publishing what it is to find.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        self.wake_after_fence();
    }

    /// As [`wake`](Self::wake), by who has published what the loop is to find before a fence.
    pub fn wake_after_fence(&self) {
        if self.sleeping.load(Ordering::Relaxed)
            && self.sleeping.swap(false, Ordering::AcqRel)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Messages were published for the loop: whoever is in its state ends its turn soon, and nobody
    /// is woken.
    pub fn mark_mail(&self) {
        // The loop takes its mail after it has taken the mark off: one of both sees the other.
        fence(Ordering::SeqCst);
        if !self.mail.load(Ordering::Relaxed) {
            self.mail.store(true, Ordering::Release);
        }
    }

    /// Whether there is mail, asked by who has left the loop's state: who marks some, and sees
    /// somebody in it, wakes nobody.
    pub fn has_mail_after_leaving(&self) -> bool {
        fence(Ordering::SeqCst);
        self.has_mail()
    }

    /// Whether there is mail that the loop has not begun to take.
    #[inline]
    pub fn has_mail(&self) -> bool {
        self.mail.load(Ordering::Relaxed)
    }

    /// The loop is about to take its mail.
    pub fn take_mail(&self) {
        if self.mail.load(Ordering::Relaxed) {
            self.mail.store(false, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    /// Asks the loop to look at what changes seldom.
    pub fn raise_attention(&self) {
        self.attention.store(true, Ordering::Release);
        self.wake();
    }

    /// The loop's own thread is to have a tick, whoever is in the loop's state.
    pub fn call(&self) {
        self.called.store(true, Ordering::Release);
        self.wake();
    }

    /// The loop's own thread is about to have a tick.
    pub fn take_call(&self) {
        if self.called.load(Ordering::Relaxed) {
            self.called.swap(false, Ordering::AcqRel);
        }
    }

    /// Whether there may be something to do for the loop's thread that was published here.
    pub fn has_news(&self) -> bool {
        let any = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        any(&self.mail) || any(&self.attention) || any(&self.called)
    }

    /// Whether somebody asked since the last call.
    pub fn take_attention(&self) -> bool {
        self.attention.load(Ordering::Relaxed) && self.attention.swap(false, Ordering::AcqRel)
    }

    /// Sleeps until woken or `at_most` has passed, unless `has_work` says there is some. Whoever
    /// publishes work and then calls [`wake`](Self::wake) is seen by one or the other.
    pub fn sleep(&self, at_most: Option<Duration>, has_work: impl Fn() -> bool) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_work() && !self.has_news() {
            match at_most {
                Some(duration) => thread::park_timeout(duration),
                None => thread::park(),
            }
        }
        self.sleeping.store(false, Ordering::Relaxed);
    }
}
