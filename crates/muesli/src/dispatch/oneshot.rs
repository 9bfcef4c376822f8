//! One value from a loop to whoever waits for it: any executor, or a blocked thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

enum OneshotState<T> {
    Waiting {
        receiver: Option<Waker>,
        /// Who makes the value, and wants to know when nobody waits for it any more.
        sender: Option<Waker>,
    },
    Sent(T),
    /// Taken, or one of the ends was dropped.
    Over,
}

struct OneshotShared<T> {
    state: Mutex<OneshotState<T>>,
    /// The receiver was dropped.
    abandoned: AtomicBool,
}

impl<T> OneshotShared<T> {
    fn state(&self) -> MutexGuard<'_, OneshotState<T>> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

pub(crate) struct OneshotSender<T> {
    shared: Arc<OneshotShared<T>>,
}

pub(crate) struct OneshotReceiver<T> {
    shared: Arc<OneshotShared<T>>,
}

pub(crate) fn channel<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let state = Mutex::new(OneshotState::Waiting { receiver: None, sender: None });
    let shared = Arc::new(OneshotShared { state, abandoned: AtomicBool::new(false) });
    (OneshotSender { shared: shared.clone() }, OneshotReceiver { shared })
}

impl<T> OneshotSender<T> {
    pub fn send(self, value: T) {
        self.finish(OneshotState::Sent(value));
    }

    /// Whether the receiver was dropped.
    pub fn is_abandoned(&self) -> bool {
        self.shared.abandoned.load(Ordering::Acquire)
    }

    /// `waker` is woken when the receiver is dropped.
    pub fn wake_when_abandoned(&self, waker: &Waker) {
        if let OneshotState::Waiting { sender, .. } = &mut *self.shared.state() {
            *sender = Some(waker.clone());
        }
    }

    fn finish(&self, end: OneshotState<T>) {
        let mut state = self.shared.state();
        if let OneshotState::Waiting { receiver, .. } = &mut *state {
            let waker = receiver.take();
            *state = end;
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        self.finish(OneshotState::Over);
    }
}

impl<T> Future for OneshotReceiver<T> {
    /// `None`: the sender is gone.
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.shared.state();
        match &mut *state {
            OneshotState::Waiting { receiver, .. } => {
                *receiver = Some(cx.waker().clone());
                Poll::Pending
            }
            OneshotState::Sent(_) | OneshotState::Over => {
                match std::mem::replace(&mut *state, OneshotState::Over) {
                    OneshotState::Sent(value) => Poll::Ready(Some(value)),
                    OneshotState::Waiting { .. } | OneshotState::Over => Poll::Ready(None),
                }
            }
        }
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        self.shared.abandoned.store(true, Ordering::Release);
        let state = std::mem::replace(&mut *self.shared.state(), OneshotState::Over);
        if let OneshotState::Waiting { sender: Some(waker), .. } = state {
            waker.wake();
        }
    }
}
