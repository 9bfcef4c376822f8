//! What a lock of a state knows: where the state is, and who waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::Thread;

use super::queued_thread::{CALLED, PARKED, QueuedThread};

/// Where who was called has not come yet, or others were next each time, one that sleeps is called
/// after the state was left so often: the wake-ups cost a few hundredths of what is done meanwhile.
pub(super) const LEAVES_BETWEEN_CALLS: u32 = 256;

/// A place in the queue.
pub(super) struct QueuePlace<J> {
    pub waiter: Arc<QueuedThread>,
    /// What is to be done for it; `None`: it is to have the state itself.
    pub job: Option<J>,
}

/// What the lock knows.
///
/// Invariants (`assert_invariants`): the state is in one place at most; who is in the queue is
/// awake or was called; nobody sleeps while the state is free, unless somebody is in the queue.
pub(super) struct LockState<T, J> {
    /// The state, while nobody has it.
    pub free: Option<T>,
    /// Who had the state last, or whose job was run last.
    pub favoured: ThreadMark,
    /// The state is kept free for the one that is favoured, also while nobody is in the queue.
    pub reserved: bool,
    /// How often the state was left free though others waited, since one of them had its turn.
    pub streak: u32,
    /// The state, kept for the one that it is granted to.
    pub granted: Option<T>,
    pub queue: VecDeque<QueuePlace<J>>,
    pub asleep: VecDeque<QueuePlace<J>>,
    /// The state was there once; before, nobody is who runs jobs.
    pub begun: bool,
    /// So many that slept were called, and have not come yet.
    pub calling: usize,
    /// One that was called found the state taken, and sleeps again, as the first.
    pub missed: bool,
    /// How often the state was left since one was called.
    pub leaves: u32,
    /// How often it was left free, by and by from one again.
    pub times_left_free: u32,
    /// Nobody enters any more.
    pub shut: bool,
    /// Nobody is to have the state any more.
    pub gone: bool,
    /// Who waits for something else than the state, and for the lock's end.
    pub pending: Vec<Thread>,
}

/// Which thread: where what it waits with is in memory.
pub(super) type ThreadMark = usize;

pub(super) fn mark_of(waiter: &Arc<QueuedThread>) -> ThreadMark {
    Arc::as_ptr(waiter) as ThreadMark
}

impl<T, J> LockState<T, J> {
    /// Of a state that somebody has.
    pub fn new() -> LockState<T, J> {
        LockState {
            free: None,
            favoured: 0,
            reserved: false,
            streak: 0,
            granted: None,
            queue: VecDeque::new(),
            asleep: VecDeque::new(),
            begun: false,
            calling: 0,
            missed: false,
            leaves: 0,
            times_left_free: 0,
            shut: false,
            gone: false,
            pending: Vec::new(),
        }
    }

    /// A thread has the state, or is to have it next.
    #[inline]
    pub fn favour(&mut self, thread: ThreadMark) {
        self.favoured = thread;
        self.reserved = false;
    }

    /// The one that was next has its turn: its thread is to have the state, or its job is run.
    pub fn favour_next(&mut self, waiter: &Arc<QueuedThread>) {
        self.favour(mark_of(waiter));
        self.streak = 0;
    }

    /// The first of those that sleep is next, though it is not awake, if it was called once and
    /// came in vain.
    pub fn take_missed(&mut self) -> Option<QueuePlace<J>> {
        if !std::mem::take(&mut self.missed) {
            return None;
        }
        let place = self.asleep.pop_front()?;
        self.calling += 1; // It comes.
        Some(place)
    }

    /// The next one that sleeps becomes the last in the queue; the thread to be woken.
    pub fn call_next(&mut self) -> Option<Thread> {
        if self.shut || self.calling > 0 && self.leaves < LEAVES_BETWEEN_CALLS {
            return None;
        }
        let place = self.asleep.pop_front()?;
        self.calling += 1;
        (self.leaves, self.missed) = (0, false);
        let thread = place.waiter.end(CALLED);
        self.queue.push_back(place);
        thread
    }

    pub fn remove(&mut self, waiter: &Arc<QueuedThread>) -> Option<QueuePlace<J>> {
        let at = self.queue.iter().position(|place| Arc::ptr_eq(&place.waiter, waiter))?;
        self.queue.remove(at)
    }

    pub fn assert_invariants(&self) {
        assert!(self.free.is_none() || self.granted.is_none(), "the state is in two places");
        if self.free.is_some() && !self.shut {
            let noticed = !self.queue.is_empty() || self.calling > 0;
            assert!(self.asleep.is_empty() || noticed, "all sleep, and nobody is called");
        }
        let parked = self.queue.iter().any(|place| place.waiter.status() == PARKED);
        assert!(!parked, "one in the queue sleeps, and is not called");
        assert!(!self.shut || self.asleep.is_empty(), "one sleeps before a lock that is shut");
    }
}
