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

/// Runs a future to its end, beginning in the state that was entered; `None`: the loop has ended.
///
/// # Panics
/// Where the future does, once the state is left.
pub(crate) fn run_in_place<T>(
    access: &dyn LoopAccess,
    entered: EnteredState<'_>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let (mut future, mut pending) = (pin!(Some(future)), None);
    let polled = CALLER.with(|caller| {
        poll_inside(future.as_mut(), entered, caller, || {
            pending = Some(PendingCaller::new(access));
        })
    });
    match polled {
        Poll::Ready(value) => Some(value),
        Poll::Pending => go_on(access, future, pending),
    }
}

/// The future has waited once, and its thread is `pending`.
#[cold]
fn go_on<T>(
    access: &dyn LoopAccess,
    mut future: Pin<&mut Option<impl Future<Output = T>>>,
    pending: Option<PendingCaller<'_>>,
) -> Option<T> {
    CALLER.with(|caller| {
        loop {
            let mut looks = access.answers_soon();
            while !caller.caller.woken.swap(false, Ordering::Acquire) {
                if access.is_shut() {
                    return None;
                }
                match std::mem::take(&mut looks) {
                    true => look_for(|| caller.caller.woken.load(Ordering::Relaxed)),
                    false => thread::park(),
                }
            }
            if !access.enter() {
                return None;
            }
            let polled = poll_inside(future.as_mut(), EnteredState::new(access), caller, || {});
            if let Poll::Ready(value) = polled {
                drop(pending);
                return Some(value);
            }
        }
    })
}

/// Polls the future, and leaves the state; a future that panics is dropped before that, and for one
/// that waits `waits` is called before.
fn poll_inside<T>(
    mut future: Pin<&mut Option<impl Future<Output = T>>>,
    entered: EnteredState<'_>,
    caller: &CallerThread,
    waits: impl FnOnce(),
) -> Poll<T> {
    let mut cx = Context::from_waker(&caller.waker);
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let running = future.as_mut().as_pin_mut().expect("polled after it was ready");
        running.poll(&mut cx)
    }));
    match polled {
        Ok(Poll::Pending) => {
            waits();
            entered.leave_to_others();
            Poll::Pending
        }
        Ok(Poll::Ready(value)) => {
            future.set(None); // What it had open is over before its caller goes on.
            drop(entered);
            Poll::Ready(value)
        }
        Err(panic) => {
            // What it holds is the user's, and may panic as it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| future.set(None)));
            drop(entered);
            resume_unwind(panic)
        }
    }
}
