//! A future run to its end on a thread that is no executor.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use muesli_core::client;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread, sleeping while it waits.
///
/// # Panics
/// In a transaction's body, and in another task on a loop, where the future has to wait: the loop
/// would not go on meanwhile, and perhaps it is just that which is waited for. Await it there.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending if client::is_inside() => {
                panic!("`block_on` would wait in a body, or in a task on a loop: await there")
            }
            Poll::Pending => thread::park(),
        }
    }
}
