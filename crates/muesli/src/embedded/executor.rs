//! The tasks of a loop, and their wakers.
//!
//! A task's waker is made once for its slot and reused by later tasks. Woken on the loop's own
//! thread, it marks the task ready in a thread-local queue; from elsewhere, in a shared one, and
//! the loop is woken. A waker kept too long wakes a later task for nothing, which is harmless.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use muesli_core::client::Task;

use super::links::signal::Signal;

thread_local! {
    /// Tasks of the loop on this thread that are ready to be polled.
    static READY: RefCell<Option<Ready>> = const { RefCell::new(None) };
}

struct Ready {
    shared: Arc<ExecutorShared>,
    queue: VecDeque<u32>,
}

/// Tasks made ready by other threads.
struct ExecutorShared {
    woken: Mutex<Vec<u32>>,
    any: AtomicBool,
    signal: Arc<Signal>,
}

struct SlotWaker {
    slot: u32,
    shared: Arc<ExecutorShared>,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let here = READY.with(|ready| match &mut *ready.borrow_mut() {
            Some(ready) if Arc::ptr_eq(&ready.shared, &self.shared) => {
                ready.queue.push_back(self.slot);
                true
            }
            _ => false,
        });
        if !here {
            let mut woken = self.shared.woken.lock().unwrap_or_else(|broken| broken.into_inner());
            woken.push(self.slot);
            drop(woken);
            self.shared.any.store(true, Ordering::Release);
            self.shared.signal.wake();
        }
    }
}

struct TaskSlot {
    task: Option<Task>,
    waker: Waker,
}

/// The tasks of the loop on this thread.
pub(super) struct Executor {
    slots: Vec<TaskSlot>,
    free: Vec<u32>,
    shared: Arc<ExecutorShared>,
}

impl Executor {
    /// An executor for the loop of this thread.
    pub fn new(signal: Arc<Signal>) -> Executor {
        let (woken, any) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let shared = Arc::new(ExecutorShared { woken, any, signal });
        READY.with(|ready| {
            let queue = VecDeque::new();
            *ready.borrow_mut() = Some(Ready { shared: shared.clone(), queue });
        });
        Executor { slots: Vec::new(), free: Vec::new(), shared }
    }

    /// Takes in a task; it is polled in the next round.
    pub fn spawn(&mut self, task: Task) {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = self.slots.len() as u32;
                let waker = Waker::from(Arc::new(SlotWaker { slot, shared: self.shared.clone() }));
                self.slots.push(TaskSlot { task: None, waker });
                slot
            }
        };
        self.slots[slot as usize].task = Some(task);
        self.slots[slot as usize].waker.wake_by_ref();
    }

    /// Whether a task may be ready.
    pub fn has_ready(&self) -> bool {
        let here = READY.with(|ready| ready.borrow().as_ref().is_some_and(|r| !r.queue.is_empty()));
        here || self.shared.any.load(Ordering::Acquire)
    }

    /// Polls each task that is ready now, once; true if there was one.
    pub fn poll_ready(&mut self) -> bool {
        let woken = if self.shared.any.swap(false, Ordering::AcqRel) {
            let mut woken = self.shared.woken.lock().unwrap_or_else(|broken| broken.into_inner());
            std::mem::take(&mut *woken)
        } else {
            Vec::new()
        };
        let mut rounds = woken.len();
        READY.with(|ready| {
            let mut ready = ready.borrow_mut();
            let ready = ready.as_mut().expect("the executor of this thread");
            ready.queue.extend(woken);
            rounds = ready.queue.len();
        });
        for _ in 0..rounds {
            let next = READY.with(|ready| ready.borrow_mut().as_mut()?.queue.pop_front());
            let Some(slot) = next else { break };
            self.poll_slot(slot);
        }
        rounds > 0
    }

    /// A task that panics is over. Whoever waits for it is told by the task itself
    /// ([`Shipped`](crate::dispatch::shipped::Shipped)); the others go on.
    fn poll_slot(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        let Some(task) = &mut place.task else { return };
        let mut cx = Context::from_waker(&place.waker);
        let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut cx).is_ready()));
        if polled.unwrap_or(true) {
            self.drop_in(slot);
        }
    }

    fn drop_in(&mut self, slot: u32) {
        if let Some(task) = self.slots[slot as usize].task.take() {
            drop_task(task);
            self.free.push(slot);
        }
    }

    /// Drops all tasks.
    pub fn drop_tasks(&mut self) {
        for slot in 0..self.slots.len() as u32 {
            self.drop_in(slot);
        }
    }
}

/// Drops a task, whose values may panic as they are dropped: that is over with the task.
pub(super) fn drop_task(task: Task) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
}

impl Drop for Executor {
    fn drop(&mut self) {
        READY.with(|ready| *ready.borrow_mut() = None);
    }
}
