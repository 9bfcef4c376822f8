//! Waiting for a database without keeping other Python threads waiting.
//!
//! A future is first polled with the interpreter's lock held: most have their answer then, and a
//! call costs no hand-over. Before anything is waited for, a state or an answer, the interpreter's
//! lock is let go of. No thread waits for that lock while it is in the state of a loop, so the two
//! locks cannot wait for each other.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use muesli::Error;
use muesli::blocking::{PolledInState, StateCaller, StateEntry};
use pyo3::prelude::*;

use crate::errors::raised;

/// While a thread waits, signals (as of Ctrl-C) are looked for so often.
const SIGNALS_WITHIN: Duration = Duration::from_millis(50);

/// A loop that takes no new work is asked again after so long.
const CONGESTED_PAUSE: Duration = Duration::from_millis(1);

/// Wakes a thread that waits.
struct ThreadWaker {
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl ThreadWaker {
    /// Waits until it is woken, or it is time to look for signals.
    fn wait(&self) {
        let until = Instant::now() + SIGNALS_WITHIN;
        while !self.woken.swap(false, Ordering::Acquire) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

thread_local! {
    static WAKER: (Arc<ThreadWaker>, Waker) = {
        let woken = AtomicBool::new(false);
        let waker = Arc::new(ThreadWaker { woken, thread: thread::current() });
        (waker.clone(), Waker::from(waker))
    };
}

fn running<F>(future: Pin<&mut Option<F>>) -> Pin<&mut F> {
    future.as_pin_mut().expect("it is polled until it has ended")
}

/// What a future answers. A signal whose handler raises ends the wait.
pub fn wait<T: Send, F>(py: Python<'_>, caller: &mut StateCaller, future: F) -> PyResult<T>
where
    F: Future<Output = Result<T, Error>> + Send,
{
    wait_for_end(py, caller, future)?.map_err(raised)
}

/// As [`wait`], with an error of the database as it is.
pub fn wait_for_end<T: Send, F>(
    py: Python<'_>,
    caller: &mut StateCaller,
    future: F,
) -> PyResult<Result<T, Error>>
where
    F: Future<Output = Result<T, Error>> + Send,
{
    wait_with(py, caller, future, StateEntry::OnceFree, || Ok(()))
}

/// As [`wait_for_end`], for the begin of a transaction, until a check fails.
pub fn wait_for_begin<T: Send, F>(
    py: Python<'_>,
    caller: &mut StateCaller,
    future: F,
    check: impl Fn() -> PyResult<()>,
) -> PyResult<Result<T, Error>>
where
    F: Future<Output = Result<T, Error>> + Send,
{
    wait_with(py, caller, future, StateEntry::ForNewWork, check)
}

fn wait_with<T: Send, F>(
    py: Python<'_>,
    caller: &mut StateCaller,
    future: F,
    entry: StateEntry,
    check: impl Fn() -> PyResult<()>,
) -> PyResult<Result<T, Error>>
where
    F: Future<Output = Result<T, Error>> + Send,
{
    let mut future = pin!(Some(future));
    WAKER.with(|(thread, waker)| {
        let poll = |caller: &mut StateCaller, mut future: Pin<&mut Option<F>>, entry| {
            let polled = catch_unwind(AssertUnwindSafe(|| {
                caller.poll(running(future.as_mut()), &mut Context::from_waker(waker), entry)
            }));
            polled.unwrap_or_else(|panic| {
                caller.end_in_state(|| future.set(None));
                resume_unwind(panic)
            })
        };
        let mut polled = poll(caller, future.as_mut(), StateEntry::IfFree);
        loop {
            let goes_on = match polled.map_err(raised)? {
                PolledInState::Ready(answer) => return Ok(answer),
                PolledInState::Occupied => Ok(()),
                PolledInState::Waiting => {
                    py.detach(|| thread.wait());
                    py.check_signals()
                }
                PolledInState::Congested => check().and_then(|()| sleep(py, CONGESTED_PAUSE)),
            };
            if let Err(interrupted) = goes_on {
                py.detach(|| caller.end_in_state(|| future.as_mut().set(None)));
                return Err(interrupted);
            }
            polled = py.detach(|| poll(caller, future.as_mut(), entry));
        }
    })
}

/// Sleeps; signals are looked for meanwhile.
pub fn sleep(py: Python<'_>, duration: Duration) -> PyResult<()> {
    let until = Instant::now() + duration;
    loop {
        let left = until.saturating_duration_since(Instant::now()).min(SIGNALS_WITHIN);
        if left.is_zero() {
            return Ok(());
        }
        py.detach(|| thread::sleep(left));
        py.check_signals()?;
    }
}
