//! How long a transaction may be open.
//!
//! The time is looked at when a body waits, and not before: most bodies are done in one go.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use muesli_core::Nanos;
use muesli_core::client;
use muesli_core::deadlines::{DeadlineId, Due};

use crate::error::Error;
use crate::time::nanos;

/// The time that a transaction has, with all its attempts.
pub(crate) struct Timeout {
    database: u64,
    after: Duration,
    /// Known since it first waited; before, zero.
    until: AtomicU64,
}

impl Timeout {
    pub fn new(database: u64, after: Duration) -> Timeout {
        Timeout { database, after, until: AtomicU64::new(0) }
    }

    /// The time until a moment that is known.
    pub fn ending(database: u64, until: Nanos) -> Timeout {
        Timeout { database, after: Duration::ZERO, until: AtomicU64::new(until.0.max(1)) }
    }

    /// Whether it is over later than at this time.
    pub fn is_after(&self, time: Nanos, now: Nanos) -> bool {
        time < self.until(now)
    }

    /// When it is over; counted from the first call.
    fn until(&self, now: Nanos) -> Nanos {
        let known = Nanos(self.until.load(Ordering::Relaxed));
        let until = if known == Nanos(0) { now + nanos(self.after) } else { known };
        self.until.store(until.0.max(1), Ordering::Relaxed);
        until
    }

    /// The error, if the time is over.
    ///
    /// # Errors
    /// [`Error::TransactionTimeout`]; [`Error::Closed`] where no loop of the database is here.
    pub fn check(&self) -> Result<(), Error> {
        let now = client::with(self.database, |engine| engine.now()).ok_or(Error::Closed)?;
        if now < self.until(now) { Ok(()) } else { Err(self.error()) }
    }

    fn error(&self) -> Error {
        Error::TransactionTimeout { after_ms: self.after.as_millis() as u64 }
    }
}

/// A body that is given up when its time is over.
pub(crate) struct WithTimeout<'a, F> {
    body: Pin<&'a mut F>,
    timeout: &'a Timeout,
    deadline: Option<DeadlineId>,
}

impl<'a, F> WithTimeout<'a, F> {
    pub fn new(body: Pin<&'a mut F>, timeout: &'a Timeout) -> WithTimeout<'a, F> {
        WithTimeout { body, timeout, deadline: None }
    }
}

impl<T, E: From<Error>, F: Future<Output = Result<T, E>>> Future for WithTimeout<'_, F> {
    type Output = Result<T, E>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        match self.body.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(answer),
            Poll::Pending => self.wait(cx).map(|over: Error| Err(over.into())),
        }
    }
}

impl<F> WithTimeout<'_, F> {
    #[cold]
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        let timeout = self.timeout;
        if let Some(deadline) = self.deadline {
            let over = timeout.check();
            if over.is_err() {
                self.deadline = None;
                client::with(timeout.database, |engine| engine.take_back(deadline));
            }
            return over.err().map_or(Poll::Pending, Poll::Ready);
        }
        self.deadline = client::with(timeout.database, |engine| {
            let until = timeout.until(engine.now());
            engine.deadline(until, Due::Wake(cx.waker().clone()))
        });
        Poll::Pending
    }
}

impl<F> Drop for WithTimeout<'_, F> {
    fn drop(&mut self) {
        if let Some(deadline) = self.deadline {
            client::with(self.timeout.database, |engine| engine.take_back(deadline));
        }
    }
}
