//! A lock that owns a state and gives it to one thread after the other.
//!
//! Who enters takes the state out of the lock, and puts it back when it leaves. Where somebody is
//! inside, who comes with a job leaves that in the queue, and whoever is inside runs it before it
//! leaves (flat combining): then the state stays where its memory is near, and nobody is woken.
//! Who waits looks around for a moment, where another processor can be at work meanwhile, and then
//! sleeps.
//!
//! Order and fairness:
//!
//! - Who is awake is served in the order of arrival: its job is run, or the state is granted to it.
//!   One that leaves runs [`JOBS_MOST`] jobs at most; then it grants the state to the next.
//! - Who fell asleep is called in the order of falling asleep, one at a time: when the state is
//!   left, the next one becomes the last of the queue, and is woken; the one after it is called
//!   when that one has come, or after [`LEAVES_BETWEEN_CALLS`], though somebody awake be next each
//!   time. So a wake-up, which costs more than many jobs, is not paid for each job where others
//!   keep the state busy; and as it has its place in the queue before it wakes, nobody waits for
//!   ever.
//! - The state is never left free while somebody is in the queue, but for one that is granted it.
//!
//! A thread that is inside must not enter again: it would wait for itself.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};

use super::queued_thread::{
    CALLED, GRANTED, PARKED, QUEUED, QueuedJob, QueuedThread, REFUSED, SERVED, WAITER, look_around,
    wake,
};

/// Who leaves runs so many jobs of others at most.
pub(crate) const JOBS_MOST: usize = 32;

/// Where who was called has not come yet, or others were next each time, one that sleeps is called
/// after the state was left so often: the wake-ups cost a few hundredths of what is done meanwhile.
const LEAVES_BETWEEN_CALLS: u32 = 256;

/// A place in the queue.
struct QueuePlace<J> {
    waiter: Arc<QueuedThread>,
    /// What is to be done for it; `None`: it is to have the state itself.
    job: Option<J>,
}

/// What the lock knows.
///
/// Invariants (`assert_invariants`): the state is in one place at most; where it is free, only
/// those that were called are in the queue; nobody sleeps while the state is free, unless one was
/// called.
struct LockState<T, J> {
    /// The state, while nobody has it.
    free: Option<T>,
    /// The state, kept for the one that it is granted to.
    granted: Option<T>,
    queue: VecDeque<QueuePlace<J>>,
    asleep: VecDeque<QueuePlace<J>>,
    /// The state was there once; before, nobody is who runs jobs.
    begun: bool,
    /// So many that slept were called, and have not come yet.
    calling: usize,
    /// How often the state was left since one was called.
    leaves: u32,
    /// Nobody enters any more.
    shut: bool,
    /// Nobody is to have the state any more.
    gone: bool,
    /// Who waits for something else than the state, and for the lock's end.
    pending: Vec<Thread>,
}

/// Whether a thread that waits has slept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueueSleep {
    None,
    /// It sleeps, or its wait has ended as it woke, and nobody has called it that it knows of.
    Uncalled,
    /// It was called, and has come.
    Over,
}

/// How somebody with a job has fared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HandOver<T> {
    /// It has the state, and is to do its job itself.
    Entered(T),
    /// Somebody else has done it.
    Served,
    /// The lock was shut.
    Shut,
}

/// A lock that owns a state; see the module's page. Apart from what others write.
#[repr(align(128))]
pub(crate) struct StateLock<T, J> {
    inner: Mutex<LockState<T, J>>,
    /// Whether somebody waits, for who has the state and does not want to take the lock.
    contended: AtomicBool,
    shut: AtomicBool,
    /// So many have left a job to others, and have not gone on with what came of it.
    handing: AtomicUsize,
}

impl<T, J> StateLock<T, J> {
    /// A lock whose state somebody has, who will [leave](Self::leave) it.
    pub fn new() -> StateLock<T, J> {
        let inner = LockState {
            free: None,
            granted: None,
            queue: VecDeque::new(),
            asleep: VecDeque::new(),
            begun: false,
            calling: 0,
            leaves: 0,
            shut: false,
            gone: false,
            pending: Vec::new(),
        };
        let (contended, shut) = (AtomicBool::new(false), AtomicBool::new(false));
        StateLock { inner: Mutex::new(inner), contended, shut, handing: AtomicUsize::new(0) }
    }

    fn inner(&self) -> MutexGuard<'_, LockState<T, J>> {
        self.inner.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// The state, if nobody has it.
    #[inline]
    pub fn try_enter(&self) -> Option<T> {
        let mut inner = self.inner();
        if inner.shut { None } else { inner.free.take() }
    }

    /// The state, once nobody else has it; `None`: the lock was shut.
    pub fn enter(&self) -> Option<T> {
        match self.wait(None) {
            HandOver::Entered(state) => Some(state),
            HandOver::Served => unreachable!("it has no job"),
            HandOver::Shut => None,
        }
    }

    /// The state, if nobody has it; else the job is left to whoever has.
    pub fn enter_or_hand(&self, job: J) -> HandOver<T> {
        self.wait(Some(job))
    }

    /// Leaves the state: to whoever is next, or in the lock.
    ///
    /// # Errors
    /// The state is back: a job [waits](Self::next_job) that is to be run first, which `runs_jobs`
    /// allows.
    pub fn leave(&self, state: T, runs_jobs: bool) -> Result<(), T> {
        let mut inner = self.inner();
        inner.begun = true;
        let waits = inner.queue.front().map(|first| first.job.is_some());
        if runs_jobs && waits == Some(true) {
            return Err(state);
        }
        if waits.is_none() && inner.gone {
            drop(inner);
            drop(state);
            return Ok(());
        }
        inner.leaves = inner.leaves.saturating_add(1);
        let (next, called) = match inner.queue.pop_front() {
            Some(first) => {
                inner.granted = Some(state);
                let is_due = inner.leaves >= LEAVES_BETWEEN_CALLS;
                (first.waiter.end(GRANTED), if is_due { inner.call_next() } else { None })
            }
            None => {
                inner.free = Some(state);
                (None, inner.call_next())
            }
        };
        self.note(&inner);
        drop(inner);
        wake(next);
        wake(called);
        Ok(())
    }

    /// The job that has waited for longest, for who has the state, unless somebody is before it
    /// who is to have the state itself.
    pub fn next_job(&self) -> Option<QueuedJob<J>> {
        let mut inner = self.inner();
        inner.queue.front()?.job.as_ref()?;
        let QueuePlace { waiter, job } = inner.queue.pop_front()?;
        self.note(&inner);
        job.map(|job| QueuedJob::new(job, waiter))
    }

    /// Whether somebody waits.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.contended.load(Ordering::Relaxed)
    }

    /// Nobody enters any more, and whoever waits is refused. Who has the state keeps it; where
    /// nobody has, it can be [taken out](Self::take_out).
    pub fn shut(&self) {
        self.shut_with(None);
    }

    /// As [`shut`](Self::shut), by who has the state and leaves it to be taken out.
    pub fn shut_with(&self, state: Option<T>) {
        let mut inner = self.inner();
        inner.shut = true;
        self.shut.store(true, Ordering::Release);
        let dropped = match inner.gone {
            true => state,
            false => {
                inner.free = state.or_else(|| inner.free.take());
                None
            }
        };
        let waiting: Vec<_> = inner.queue.drain(..).collect();
        let waiting = waiting.into_iter().chain(inner.asleep.drain(..)).collect::<Vec<_>>();
        let pending = std::mem::take(&mut inner.pending);
        self.note(&inner);
        drop(inner);
        drop(dropped);
        for QueuePlace { waiter, job } in waiting {
            drop(job);
            wake(waiter.end(REFUSED));
        }
        pending.iter().for_each(Thread::unpark);
    }

    /// Whether it was shut.
    #[inline]
    pub fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Acquire)
    }

    /// The state of a lock that was shut, unless somebody has it.
    pub fn take_out(&self) -> Option<T> {
        self.inner().free.take()
    }

    /// Shuts it, and has the state dropped, by who has it if somebody does.
    pub fn end(&self) {
        self.shut();
        let mut inner = self.inner();
        inner.gone = true;
        let state = inner.free.take();
        drop(inner);
        drop(state);
    }

    /// This thread is unparked when the lock is shut, until it is [gone](Self::no_longer_pending).
    pub fn is_pending(&self) {
        self.inner().pending.push(thread::current());
    }

    /// A thread leaves a job to others, until it [goes on](Self::goes_on).
    pub fn hands_over(&self) {
        self.handing.fetch_add(1, Ordering::AcqRel);
    }

    /// A thread goes on with what came of a job.
    pub fn goes_on(&self) {
        self.handing.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether somebody is on the way to the state: it waits for it, or for something else outside,
    /// or for what came of a job.
    pub fn is_awaited(&self) -> bool {
        let waits = self.is_contended() || self.handing.load(Ordering::Acquire) > 0;
        waits || !self.inner().pending.is_empty()
    }

    /// What [`is_pending`](Self::is_pending) noted is over.
    pub fn no_longer_pending(&self) {
        let me = thread::current().id();
        let mut inner = self.inner();
        if let Some(at) = inner.pending.iter().position(|thread| thread.id() == me) {
            inner.pending.swap_remove(at);
        }
    }

    fn note(&self, inner: &LockState<T, J>) {
        let waits = !inner.queue.is_empty() || !inner.asleep.is_empty();
        self.contended.store(waits, Ordering::Relaxed);
        if cfg!(debug_assertions) {
            inner.assert_invariants();
        }
    }

    fn wait(&self, job: Option<J>) -> HandOver<T> {
        let mut inner = self.inner();
        if inner.shut {
            return HandOver::Shut;
        }
        if let Some(state) = inner.free.take() {
            return HandOver::Entered(state);
        }
        let (waiter, job) = (WAITER.with(Arc::clone), job.filter(|_| inner.begun));
        waiter.status.store(QUEUED, Ordering::Relaxed);
        inner.queue.push_back(QueuePlace { waiter: Arc::clone(&waiter), job });
        self.note(&inner);
        drop(inner);
        let mut sleep = QueueSleep::None;
        loop {
            if !look_around(&waiter) && !self.fall_asleep(&waiter, &mut sleep) {
                while waiter.status() == PARKED {
                    thread::park();
                }
            }
            let status = waiter.status();
            if status == CALLED {
                sleep = QueueSleep::Over;
                if let Some(state) = self.come(&waiter) {
                    return HandOver::Entered(state);
                }
                continue;
            }
            if sleep == QueueSleep::Uncalled {
                self.arrive();
            }
            match status {
                GRANTED => {
                    let state = self.inner().granted.take();
                    return HandOver::Entered(state.expect("it was kept for this thread"));
                }
                SERVED => return HandOver::Served,
                REFUSED => return HandOver::Shut,
                status => unreachable!("a wait has ended with status {status}"),
            }
        }
    }

    /// Has a thread that found nothing sleep, one that has slept before in its place in the queue.
    /// Whether its wait is over instead.
    fn fall_asleep(&self, waiter: &Arc<QueuedThread>, sleep: &mut QueueSleep) -> bool {
        let mut inner = self.inner();
        if !waiter.becomes(QUEUED, PARKED) {
            return true;
        }
        if *sleep == QueueSleep::None
            && let Some(place) = inner.remove(waiter)
        {
            inner.asleep.push_back(place);
            *sleep = QueueSleep::Uncalled;
        }
        self.note(&inner);
        false
    }

    /// A thread that was called has come: the state, if it is free; else it waits in the queue.
    fn come(&self, waiter: &Arc<QueuedThread>) -> Option<T> {
        let mut inner = self.inner();
        inner.calling = inner.calling.saturating_sub(1);
        let (mut state, mut thread) = (None, None);
        if inner.free.is_some() {
            match inner.remove(waiter) {
                Some(_) => state = inner.free.take(),
                None => thread = inner.call_next(), // Its job was run, by one that has left.
            }
        }
        let _ = waiter.becomes(CALLED, QUEUED); // Else its wait is over.
        self.note(&inner);
        drop(inner);
        wake(thread);
        state
    }

    /// A thread that was called has come, and its wait is over: the next one is called, if nobody
    /// has the state who would.
    fn arrive(&self) {
        let mut inner = self.inner();
        inner.calling = inner.calling.saturating_sub(1);
        let thread = if inner.free.is_some() { inner.call_next() } else { None };
        self.note(&inner);
        drop(inner);
        wake(thread);
    }
}

impl<T, J> LockState<T, J> {
    /// The next one that sleeps becomes the last in the queue; the thread to be woken.
    fn call_next(&mut self) -> Option<Thread> {
        if self.shut || self.calling > 0 && self.leaves < LEAVES_BETWEEN_CALLS {
            return None;
        }
        let place = self.asleep.pop_front()?;
        self.calling += 1;
        self.leaves = 0;
        let thread = place.waiter.end(CALLED);
        self.queue.push_back(place);
        thread
    }

    fn remove(&mut self, waiter: &Arc<QueuedThread>) -> Option<QueuePlace<J>> {
        let at = self.queue.iter().position(|place| Arc::ptr_eq(&place.waiter, waiter))?;
        self.queue.remove(at)
    }

    fn assert_invariants(&self) {
        assert!(self.free.is_none() || self.granted.is_none(), "the state is in two places");
        if self.free.is_some() && !self.shut {
            assert!(self.queue.len() <= self.calling, "the state is left to nobody");
            assert!(self.asleep.is_empty() || self.calling > 0, "all sleep, and nobody is called");
        }
        assert!(!self.shut || self.asleep.is_empty(), "one sleeps before a lock that is shut");
    }
}

#[cfg(test)]
#[path = "state_lock_tests.rs"]
mod tests;
