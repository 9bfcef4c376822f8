//! The attempts of a transaction: begin, run the body, commit; after a conflict, again.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use muesli_core::client;
use muesli_core::{Abort, Gave, TxnOptions};

use crate::commit::Fate;
use crate::db::Db;
use crate::error::Error;
use crate::timeout::{Bounded, Timeout};
use crate::transaction::Tx;

impl Db {
    /// Runs a body until it commits or is not to be tried again; with the answer, what delayed
    /// actions gave if it `asks` that.
    pub(crate) async fn repeat<T, F, Fut>(
        &self,
        body: &F,
        asks: bool,
        fate: Option<&Arc<Fate>>,
    ) -> Result<(T, Vec<Gave>), Error>
    where
        F: Fn(Tx) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let timeout = Timeout::new(self.inner.database, self.timeout);
        let (mut attempts, mut eager) = (0, false);
        loop {
            attempts += 1;
            let how = Attempt { timeout: &timeout, fate, eager, asks };
            let reason = match self.attempt(body, how).await {
                Err(Error::Conflict { reason, .. }) => reason,
                Err(Error::Strayed(why)) => {
                    let last = self.inner.strayed.lock();
                    *last.unwrap_or_else(|broken| broken.into_inner()) = Some(why);
                    Abort::Strayed
                }
                done => return done,
            };
            eager |= reason.ends_delays();
            self.after_conflict(reason, attempts).await?;
            timeout.check()?;
        }
    }

    /// Counts a conflict and pauses, or gives up.
    #[cold]
    pub(crate) async fn after_conflict(&self, reason: Abort, attempts: u32) -> Result<(), Error> {
        self.inner.count_conflict(reason);
        if attempts >= self.inner.retry.attempts || !reason.is_retryable() {
            return Err(Error::Conflict { reason, attempts });
        }
        self.pause(attempts).await
    }

    async fn attempt<T, F, Fut>(&self, body: &F, how: Attempt<'_>) -> Result<(T, Vec<Gave>), Error>
    where
        F: Fn(Tx) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let Attempt { timeout, fate, eager, asks } = how;
        let database = self.inner.database;
        let options = || TxnOptions { eager, ..self.txn_options() };
        self.arrive();
        let mut begun = client::with(database, |engine| {
            (!engine.should_yield()).then(|| engine.begin(options()))
        });
        if let Some(None) = begun {
            yield_now().await;
            begun = client::with(database, |engine| Some(engine.begin(options())));
        }
        let txn = begun.flatten().ok_or(Error::Closed)?.at_once()?;
        let open = Open { tx: Tx { database, txn, away: None } };
        let answer = {
            let body = pin!(body(open.tx.clone()));
            Bounded::new(body, timeout).await?
        };
        let committed = open.tx.commit_here(self, fate).await;
        std::mem::forget(open);
        let (_, given) = committed?;
        assert!(asks || given.is_empty(), "nobody asked what delayed actions gave");
        Ok((answer, given))
    }

    async fn pause(&self, attempts: u32) -> Result<(), Error> {
        let retry = &self.inner.retry;
        let most = retry.pause.saturating_mul(1 << attempts.min(20)).min(retry.pause_max);
        let random = client::with(self.inner.database, |engine| engine.random());
        let nanos = random.ok_or(Error::Closed)? % (most.as_nanos() as u64).max(1);
        self.sleep(Duration::from_nanos(nanos)).await
    }
}

/// How an attempt is made.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    timeout: &'a Timeout,
    fate: Option<&'a Arc<Fate>>,
    /// Delayed actions are done at once.
    eager: bool,
    /// What delayed actions gave may be asked.
    asks: bool,
}

/// Rolls back the transaction of a body that did not get to its commit.
pub(crate) struct Open {
    pub tx: Tx,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tx.rollback_here();
    }
}

/// Lets other tasks run.
pub(crate) fn yield_now() -> impl Future<Output = ()> {
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
