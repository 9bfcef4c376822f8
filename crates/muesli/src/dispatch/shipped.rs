//! A task that another thread has sent to a loop, with the way back to that thread.
//!
//! A panic of the task goes back as well, and goes on where the answer is waited for. Where nobody
//! waits for the answer any more, the task is dropped, wherever it stands.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use muesli_core::client::Task;

use crate::dispatch::oneshot::OneshotSender;

/// That a task has ended, or what it panicked with.
pub(crate) type Ran = Result<(), Box<dyn Any + Send>>;

/// The task, on its loop.
pub(crate) struct Shipped {
    task: Option<Task>,
    sender: Option<OneshotSender<Ran>>,
    /// Who is woken when nobody waits any more.
    known: Option<Waker>,
}

impl Shipped {
    pub fn new(task: Task, sender: OneshotSender<Ran>) -> Shipped {
        Shipped { task: Some(task), sender: Some(sender), known: None }
    }

    /// Whether nobody waits for the answer.
    fn is_abandoned(&mut self, waker: &Waker) -> bool {
        let Some(sender) = &self.sender else { return true };
        if !self.known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            sender.wake_when_abandoned(waker);
            self.known = Some(waker.clone());
        }
        sender.is_abandoned()
    }

    /// Drops the task; what it holds may panic as it is dropped.
    fn drop_task(&mut self) {
        let task = self.task.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
    }
}

impl Future for Shipped {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.is_abandoned(cx.waker()) {
            this.drop_task();
            return Poll::Ready(());
        }
        let Some(task) = &mut this.task else { return Poll::Ready(()) };
        let ran = match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => Ok(()),
            Err(panic) => Err(panic),
        };
        // What the task had open is over before its caller goes on.
        this.drop_task();
        if let Some(sender) = this.sender.take() {
            sender.send(ran);
        }
        Poll::Ready(())
    }
}
