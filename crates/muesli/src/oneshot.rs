//! One value from a loop to whoever waits for it: any executor, or a blocked thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

enum State<T> {
    Waiting(Option<Waker>),
    Sent(T),
    /// Taken, or the sender was dropped.
    Over,
}

pub(crate) struct Sender<T> {
    shared: Arc<Mutex<State<T>>>,
}

pub(crate) struct Receiver<T> {
    shared: Arc<Mutex<State<T>>>,
}

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Mutex::new(State::Waiting(None)));
    (Sender { shared: shared.clone() }, Receiver { shared })
}

impl<T> Sender<T> {
    pub fn send(self, value: T) {
        self.finish(State::Sent(value));
    }

    fn finish(&self, end: State<T>) {
        let mut state = self.shared.lock().unwrap_or_else(|broken| broken.into_inner());
        if let State::Waiting(waker) = &mut *state {
            let waker = waker.take();
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
        let mut state = self.shared.lock().unwrap_or_else(|broken| broken.into_inner());
        match std::mem::replace(&mut *state, State::Over) {
            State::Sent(value) => Poll::Ready(Some(value)),
            State::Over => Poll::Ready(None),
            State::Waiting(_) => {
                *state = State::Waiting(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}
