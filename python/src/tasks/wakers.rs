//! Wakers of asyncio's tasks.
//!
//! A task is woken by a call to its event loop, for which the interpreter's lock is needed. The
//! loop of a database does not wait for that lock: it leaves the call to a thread that does nothing
//! else.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Wake;
use std::thread::{self, JoinHandle};

use pyo3::intern;
use pyo3::prelude::*;

use crate::forks::ForkedProcess;

/// A future of asyncio, and the event loop that it is of.
pub struct WakeTarget {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
}

impl WakeTarget {
    /// Ends the future, by its event loop's own thread.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        let end = py.import("muesli._asyncio")?.getattr(intern!(py, "_wake"))?;
        let call = intern!(py, "call_soon_threadsafe");
        self.event_loop.bind(py).call_method1(call, (end, &self.future)).map(drop)
    }
}

/// The thread that wakes.
struct WakingThread {
    process: ForkedProcess,
    /// To it; `None` is the end.
    sender: Sender<Option<WakeTarget>>,
    thread: JoinHandle<()>,
}

static WAKING: Mutex<Option<WakingThread>> = Mutex::new(None);

/// Ends the thread that wakes: an interpreter that ends would end it in the middle of a wait for
/// the interpreter's lock, and the process with it.
#[pyfunction]
pub fn end_waking(py: Python<'_>) {
    let waking = WAKING.lock().unwrap_or_else(|broken| broken.into_inner()).take();
    if let Some(waking) = waking.filter(|it| it.process.is_current()) {
        let _ = waking.sender.send(None);
        let _ = py.detach(|| waking.thread.join());
    }
}

/// Where futures are sent that are to be ended. Called with the interpreter's lock held, so that
/// nobody is in here while the process forks.
fn waking_thread() -> Sender<Option<WakeTarget>> {
    let mut waking = WAKING.lock().unwrap_or_else(|broken| broken.into_inner());
    if let Some(waking) = waking.as_ref().filter(|it| it.process.is_current()) {
        return waking.sender.clone();
    }
    let (sender, targets) = channel::<Option<WakeTarget>>();
    let wake_all = move || {
        while let Ok(Some(target)) = targets.recv() {
            // An event loop that is closed, and an interpreter that ends, have no tasks any more.
            let _ = Python::try_attach(|py| target.wake(py));
        }
    };
    let spawned = thread::Builder::new().name("muesli-asyncio".to_owned()).spawn(wake_all);
    let thread = spawned.expect("a thread can be started");
    let process = ForkedProcess::current();
    *waking = Some(WakingThread { process, sender: sender.clone(), thread });
    sender
}

/// Whether an operation was woken, or what is to be ended then.
#[derive(Default)]
struct OperationWakerState {
    woken: bool,
    target: Option<WakeTarget>,
}

/// Wakes the task that awaits an operation, also where it is dropped: a loop that ends drops the
/// wakers of what waits for it.
pub struct OperationWaker {
    state: Mutex<OperationWakerState>,
    waking: Sender<Option<WakeTarget>>,
}

impl OperationWaker {
    /// A waker of which nobody is to be woken yet.
    pub fn new() -> Arc<OperationWaker> {
        Arc::new(OperationWaker { state: Mutex::default(), waking: waking_thread() })
    }

    /// It wakes this from now on; whether it was woken already.
    pub fn attach(&self, event_loop: Py<PyAny>, future: Py<PyAny>) -> bool {
        let mut state = self.state();
        let woken = std::mem::take(&mut state.woken);
        if !woken {
            state.target = Some(WakeTarget { event_loop, future });
        }
        woken
    }

    fn state(&self) -> MutexGuard<'_, OperationWakerState> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

impl Wake for OperationWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state();
        match state.target.take() {
            // The thread is there for as long as event loops are.
            Some(target) => drop(self.waking.send(Some(target))),
            None => state.woken = true,
        }
    }
}

impl Drop for OperationWaker {
    fn drop(&mut self) {
        if let Some(target) = self.state().target.take() {
            let _ = self.waking.send(Some(target));
        }
    }
}
