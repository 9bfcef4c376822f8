//! The time as clients of a simulated world see it, and their pauses.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use muesli_core::client;
use muesli_core::{Nanos, OpId};
use muesli_sim::time::Span;

use crate::chance::Chance;
use crate::workload::{Clock, LocalFuture, Pause};

/// One clock for clients on all nodes, though those of the nodes differ: it never goes back, and
/// two looks at it in virtual order are in its order.
pub(crate) fn one_clock(database: u64) -> Clock {
    let last = Cell::new(0);
    Rc::new(move || {
        let local = client::with(database, |engine| engine.now().0).unwrap_or(0);
        last.set(local.max(last.get() + 1));
        Nanos(last.get())
    })
}

/// A pause before each transaction, at random up to `most`; `None` where that is nothing.
pub(crate) fn pause(database: u64, most: Span) -> Option<Pause> {
    (most > Span::ZERO).then(|| {
        let pause: Pause = Box::new(move |chance: &mut Chance| {
            sleep(database, Nanos(chance.below(most.as_nanos())))
        });
        pause
    })
}

/// Sleeps for so long, by the clock of the node.
fn sleep(database: u64, length: Nanos) -> LocalFuture<'static, ()> {
    Box::pin(async move {
        let Some(op) = client::with(database, |engine| engine.sleep(length)) else { return };
        Sleep { database, op }.await;
    })
}

struct Sleep {
    database: u64,
    op: OpId,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match client::with(self.database, |engine| engine.poll(self.op, cx.waker())) {
            Some(Poll::Pending) => Poll::Pending,
            Some(Poll::Ready(_)) | None => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        client::with(self.database, |engine| engine.forget(self.op));
    }
}
