//! A pause of a task in favour of the other ones of its loop.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Lets the other tasks of a loop run, of a database in this process ([`Db::run_on`](crate::Db)).
pub fn yield_now() -> impl Future<Output = ()> {
    Yield { yielded: false }
}

struct Yield {
    yielded: bool,
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
