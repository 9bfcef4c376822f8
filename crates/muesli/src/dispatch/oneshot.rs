//! One value from a loop to whoever waits for it: any executor, or a blocked thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

enum State<T> {
    Waiting {
        receiver: Option<Waker>,
        /// Who makes the value, and wants to know when nobody waits for it any more.
        sender: Option<Waker>,
    },
    Sent(T),
    /// Taken, or one of the ends was dropped.
    Over,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// The receiver was dropped.
    abandoned: AtomicBool,
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

pub(crate) struct Sender<T> {
    shared: Arc<Shared<T>>,
}

pub(crate) struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = Mutex::new(State::Waiting { receiver: None, sender: None });
    let shared = Arc::new(Shared { state, abandoned: AtomicBool::new(false) });
    (Sender { shared: shared.clone() }, Receiver { shared })
}

impl<T> Sender<T> {
    pub fn send(self, value: T) {
        self.finish(State::Sent(value));
    }

    /// Whether the receiver was dropped.
    pub fn is_abandoned(&self) -> bool {
        self.shared.abandoned.load(Ordering::Acquire)
    }

    /// `waker` is woken when the receiver is dropped.
    pub fn wake_when_abandoned(&self, waker: &Waker) {
        if let State::Waiting { sender, .. } = &mut *self.shared.state() {
            *sender = Some(waker.clone());
        }
    }

    fn finish(&self, end: State<T>) {
        let mut state = self.shared.state();
        if let State::Waiting { receiver, .. } = &mut *state {
            let waker = receiver.take();
            *state = end;
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.finish(State::Over);
    }
}

impl<T> Future for Receiver<T> {
    /// `None`: the sender is gone.
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.shared.state();
        match &mut *state {
            State::Waiting { receiver, .. } => {
                *receiver = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Sent(_) | State::Over => match std::mem::replace(&mut *state, State::Over) {
                State::Sent(value) => Poll::Ready(Some(value)),
                State::Waiting { .. } | State::Over => Poll::Ready(None),
            },
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.abandoned.store(true, Ordering::Release);
        let state = std::mem::replace(&mut *self.shared.state(), State::Over);
        if let State::Waiting { sender: Some(waker), .. } = state {
            waker.wake();
        }
    }
}
