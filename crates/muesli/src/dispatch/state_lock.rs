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
//! - Who had the state last has it again if it comes back at once, [`STREAK_MOST`] times in a row
//!   though others wait: then the state's memory stays near one processor for so long. What is left
//!   free for one that does not come is taken by the first that notices, and counts the same. After
//!   so many, or where who leaves says so, the next one has its turn: its job is run, of which
//!   [`JOBS_MOST`] are run one after the other, and the owner of the last comes before who ran
//!   them; or the state is granted to it.
//! - The next one is the first of those that are awake. One that was called and found the state
//!   taken sleeps again: then it is the next where nobody is awake, and is granted the state.
//! - Who fell asleep is called in the order of falling asleep, one at a time: when the state is
//!   left, the next one becomes the last of the queue, and is woken; the one after it is called
//!   when that one has come, or after [`LEAVES_BETWEEN_CALLS`], though somebody awake be next each
//!   time. So a wake-up, which costs more than many jobs, is not paid for each job where others
//!   keep the state busy; and nobody waits for ever.
//! - Whoever is in the queue and awake takes a state that stays free, before it sleeps at the
//!   latest.
//!
//! A thread that is inside must not enter again: it would wait for itself.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread, ThreadId};

use super::lock_state::{LEAVES_BETWEEN_CALLS, LockState, QueuePlace, ThreadMark, mark_of};
use super::queued_thread::{
    CALLED, GRANTED, LookEnd, PARKED, QUEUED, QueuedJob, QueuedThread, REFUSED, SERVED, WAITER,
    look_around, wake,
};

/// Who leaves runs so many jobs of others at most.
pub(crate) const JOBS_MOST: usize = 32;

/// One thread has the state so often in a row while others wait.
pub(crate) const STREAK_MOST: u32 = 16;

/// How somebody leaves the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaveMode {
    /// It may be back at once.
    ForNow,
    /// Others that wait come first.
    ForOthers,
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
    shut: AtomicBool,
    /// So many have left a job to others, and have not gone on with what came of it.
    handing: AtomicUsize,
    seen: SeenWhileWaiting,
}

/// What others look at again and again while somebody has the state: apart, as they take it from
/// who writes it.
#[repr(align(128))]
struct SeenWhileWaiting {
    /// Whether somebody waits, for who has the state and does not want to take the lock.
    contended: AtomicBool,
    /// Since which leaving the state is free; zero: it is not.
    free_since: AtomicU32,
}

impl<T, J> StateLock<T, J> {
    /// A lock whose state somebody has, who will [leave](Self::leave) it.
    pub fn new() -> StateLock<T, J> {
        StateLock {
            inner: Mutex::new(LockState::new()),
            shut: AtomicBool::new(false),
            handing: AtomicUsize::new(0),
            seen: SeenWhileWaiting {
                contended: AtomicBool::new(false),
                free_since: AtomicU32::new(0),
            },
        }
    }

    fn inner(&self) -> MutexGuard<'_, LockState<T, J>> {
        self.inner.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// The state, if nobody has it and it is kept for nobody else.
    #[inline]
    pub fn try_enter(&self) -> Option<T> {
        let me = WAITER.with(mark_of);
        self.take_if_open(&mut self.inner(), me)
    }

    #[inline]
    fn take_if_open(&self, inner: &mut LockState<T, J>, me: ThreadMark) -> Option<T> {
        let is_mine = inner.favoured == me || !inner.reserved && inner.queue.is_empty();
        if inner.shut || !is_mine { None } else { self.take_free(inner, me) }
    }

    /// The state, if it is free.
    #[inline]
    fn take_free(&self, inner: &mut LockState<T, J>, me: ThreadMark) -> Option<T> {
        let state = inner.free.take()?;
        self.seen.free_since.store(0, Ordering::Relaxed);
        inner.favour(me);
        Some(state)
    }

    fn put_free(&self, inner: &mut LockState<T, J>, state: T) {
        inner.free = Some(state);
        inner.times_left_free = inner.times_left_free.wrapping_add(1).max(1);
        self.seen.free_since.store(inner.times_left_free, Ordering::Relaxed);
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
    pub fn leave(&self, state: T, leaving: LeaveMode, runs_jobs: bool) -> Result<(), T> {
        let mut inner = self.inner();
        inner.begun = true;
        let waits = inner.queue.front().map(|first| first.job.is_some());
        if waits.is_none() && inner.gone {
            drop(inner);
            drop(state);
            return Ok(());
        }
        let mut next = None;
        match waits {
            _ if leaving == LeaveMode::ForNow && inner.streak < STREAK_MOST => {
                let waits = waits.is_some() || !inner.asleep.is_empty();
                inner.streak = if waits { inner.streak + 1 } else { 0 };
                self.put_free(&mut inner, state);
            }
            Some(true) if runs_jobs => return Err(state),
            _ => match inner.queue.pop_front().or_else(|| inner.take_missed()) {
                Some(first) => {
                    inner.favour_next(&first.waiter);
                    inner.granted = Some(state);
                    next = first.waiter.end(GRANTED);
                }
                None => {
                    if inner.asleep.is_empty() {
                        inner.streak = 0;
                    }
                    self.put_free(&mut inner, state);
                }
            },
        }
        inner.leaves = inner.leaves.saturating_add(1);
        let is_due = waits.is_none() || inner.leaves >= LEAVES_BETWEEN_CALLS;
        let called = if is_due { inner.call_next() } else { None };
        self.note(&inner);
        drop(inner);
        wake(next);
        wake(called);
        Ok(())
    }

    /// The job that has waited for longest, for who has the state, unless somebody is before it
    /// who is to have the state itself. Its owner is the next to have the state, if it comes soon.
    pub fn next_job(&self) -> Option<QueuedJob<J>> {
        let mut inner = self.inner();
        inner.queue.front()?.job.as_ref()?;
        let QueuePlace { waiter, job } = inner.queue.pop_front()?;
        inner.favour_next(&waiter);
        inner.reserved = true;
        self.note(&inner);
        job.map(|job| QueuedJob::new(job, waiter))
    }

    /// Whether somebody waits.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.seen.contended.load(Ordering::Relaxed)
    }

    /// Whether nobody seems to have the state, or the lock was shut.
    #[inline]
    pub fn may_be_free(&self) -> bool {
        self.seen.free_since.load(Ordering::Relaxed) != 0 || self.is_shut()
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
                self.seen.free_since.store(0, Ordering::Relaxed);
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

    /// What [`is_pending`](Self::is_pending) noted on a thread is over.
    pub fn no_longer_pending(&self, noted_by: ThreadId) {
        let mut inner = self.inner();
        if let Some(at) = inner.pending.iter().position(|thread| thread.id() == noted_by) {
            inner.pending.swap_remove(at);
        }
    }

    fn note(&self, inner: &LockState<T, J>) {
        let waits = !inner.queue.is_empty() || !inner.asleep.is_empty();
        if self.is_contended() != waits {
            self.seen.contended.store(waits, Ordering::Relaxed);
        }
        if cfg!(debug_assertions) {
            inner.assert_invariants();
        }
    }

    fn wait(&self, job: Option<J>) -> HandOver<T> {
        let waiter = WAITER.with(Arc::clone);
        let mut inner = self.inner();
        if inner.shut {
            return HandOver::Shut;
        }
        if let Some(state) = self.take_if_open(&mut inner, mark_of(&waiter)) {
            return HandOver::Entered(state);
        }
        let job = job.filter(|_| inner.begun);
        waiter.status.store(QUEUED, Ordering::Relaxed);
        inner.queue.push_back(QueuePlace { waiter: Arc::clone(&waiter), job });
        self.note(&inner);
        drop(inner);
        let mut sleep = QueueSleep::None;
        loop {
            match look_around(&waiter, &self.seen.free_since) {
                LookEnd::Over => {}
                LookEnd::Free(since) => match self.claim(&waiter, since) {
                    Some(state) => return HandOver::Entered(state),
                    None => continue,
                },
                LookEnd::Nothing => match self.fall_asleep(&waiter, &mut sleep) {
                    Some(state) => return HandOver::Entered(state),
                    None => {
                        while waiter.status() == PARKED {
                            thread::park();
                        }
                    }
                },
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
                QUEUED => {}
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

    /// The state, for one in the queue that has seen it free since a leaving, if it still is.
    fn claim(&self, waiter: &Arc<QueuedThread>, since: u32) -> Option<T> {
        let mut inner = self.inner();
        let stays = self.seen.free_since.load(Ordering::Relaxed) == since && !inner.shut;
        if stays { self.take_from_queue(&mut inner, waiter) } else { None }
    }

    /// The state, if it is free, for one that is awake in the queue.
    fn take_from_queue(
        &self,
        inner: &mut LockState<T, J>,
        waiter: &Arc<QueuedThread>,
    ) -> Option<T> {
        inner.free.as_ref()?;
        inner.remove(waiter)?;
        let state = self.take_free(inner, mark_of(waiter));
        self.note(inner);
        state
    }

    /// Has a thread that found nothing sleep, as the next to be called if it has slept before. The
    /// state, if it is free.
    fn fall_asleep(&self, waiter: &Arc<QueuedThread>, sleep: &mut QueueSleep) -> Option<T> {
        let mut inner = self.inner();
        if waiter.status() == QUEUED
            && !inner.shut
            && let Some(state) = self.take_from_queue(&mut inner, waiter)
        {
            return Some(state);
        }
        if !waiter.becomes(QUEUED, PARKED) {
            return None; // Its wait is over, or it was called.
        }
        if let Some(place) = inner.remove(waiter) {
            match *sleep {
                QueueSleep::None => inner.asleep.push_back(place),
                QueueSleep::Uncalled | QueueSleep::Over => {
                    inner.asleep.push_front(place);
                    inner.missed = true;
                }
            }
            *sleep = QueueSleep::Uncalled;
        }
        self.note(&inner);
        None
    }

    /// A thread that was called has come: the state, if it is free; else it waits in the queue.
    fn come(&self, waiter: &Arc<QueuedThread>) -> Option<T> {
        let mut inner = self.inner();
        inner.calling = inner.calling.saturating_sub(1);
        let mut thread = None;
        let state = self.take_from_queue(&mut inner, waiter);
        if state.is_none() && inner.free.is_some() {
            thread = inner.call_next(); // Its job was run, by one that has left.
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

#[cfg(test)]
#[path = "state_lock_tests.rs"]
mod tests;
