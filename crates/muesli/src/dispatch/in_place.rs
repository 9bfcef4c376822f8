//! A future run to its end on a thread that is no loop, in the state of a loop.
//!
//! The future stays on its thread. While it is polled the thread is in the loop's state, so what it
//! asks of the loop is a function call. Where it waits, the thread leaves the state and sleeps, and
//! enters again when it is woken: nobody is kept out of the state by one who waits.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::dispatch::access::{EnteredState, LoopAccess, PendingCaller};
use crate::dispatch::queued_thread::look_for;

/// Wakes a thread that waits for a future.
struct CallerWaker {
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for CallerWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A thread's waker, made once, in both shapes.
struct CallerThread {
    caller: Arc<CallerWaker>,
    waker: Waker,
}

thread_local! {
    static CALLER: CallerThread = {
        let woken = AtomicBool::new(false);
        let caller = Arc::new(CallerWaker { woken, thread: thread::current() });
        CallerThread { waker: Waker::from(Arc::clone(&caller)), caller }
    };
}

/// A future that is polled in a loop's state, without its type.
trait PolledInside {
    /// Keeps the answer, once it is there.
    fn poll_inside(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Drops the future: what it had open is over.
    fn drop_future(&mut self);
}

/// A future on its thread's stack, and its answer.
struct FutureInPlace<'a, F: Future> {
    future: Pin<&'a mut Option<F>>,
    answer: Option<F::Output>,
}

impl<F: Future> PolledInside for FutureInPlace<'_, F> {
    fn poll_inside(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let running = self.future.as_mut().as_pin_mut().expect("polled after it was ready");
        running.poll(cx).map(|answer| self.answer = Some(answer))
    }

    fn drop_future(&mut self) {
        self.future.set(None);
    }
}

/// Runs a future to its end, beginning in the state that was entered; `None`: the loop has ended.
///
/// # Panics
/// Where the future does, once the state is left.
pub(crate) fn run_in_place<F: Future>(
    access: &dyn LoopAccess,
    entered: EnteredState<'_>,
    future: F,
) -> Option<F::Output> {
    let mut running = FutureInPlace { future: pin!(Some(future)), answer: None };
    run_to_its_end(access, entered, &mut running);
    running.answer
}

/// Polls a future until its answer is there, or its loop has ended.
fn run_to_its_end(
    access: &dyn LoopAccess,
    entered: EnteredState<'_>,
    future: &mut dyn PolledInside,
) {
    let mut pending = None;
    let polled = CALLER.with(|caller| {
        poll_inside(future, entered, caller, || {
            pending = Some(PendingCaller::new(access));
        })
    });
    if polled.is_pending() {
        go_on(access, future, pending);
    }
}

/// The future has waited once, and its thread is `pending`.
#[cold]
fn go_on(
    access: &dyn LoopAccess,
    future: &mut dyn PolledInside,
    _pending: Option<PendingCaller<'_>>,
) {
    CALLER.with(|caller| {
        loop {
            let mut looks = access.answers_soon();
            while !caller.caller.woken.swap(false, Ordering::Acquire) {
                if access.is_shut() {
                    return;
                }
                match std::mem::take(&mut looks) {
                    true => look_for(|| caller.caller.woken.load(Ordering::Relaxed)),
                    false => thread::park(),
                }
            }
            if !access.enter() {
                return;
            }
            if poll_inside(future, EnteredState::new(access), caller, || {}).is_ready() {
                return;
            }
        }
    });
}

/// Polls the future, and leaves the state; a future that panics is dropped before that, and for one
/// that waits `waits` is called before.
fn poll_inside(
    future: &mut dyn PolledInside,
    entered: EnteredState<'_>,
    caller: &CallerThread,
    waits: impl FnOnce(),
) -> Poll<()> {
    let mut cx = Context::from_waker(&caller.waker);
    let polled = catch_unwind(AssertUnwindSafe(|| future.poll_inside(&mut cx)));
    match polled {
        Ok(Poll::Pending) => {
            waits();
            entered.leave_to_others();
            Poll::Pending
        }
        Ok(Poll::Ready(())) => {
            future.drop_future(); // What it had open is over before its caller goes on.
            drop(entered);
            Poll::Ready(())
        }
        Err(panic) => {
            // What it holds is the user's, and may panic as it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| future.drop_future()));
            drop(entered);
            resume_unwind(panic)
        }
    }
}
