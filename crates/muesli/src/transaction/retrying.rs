//! Transactions that wait until something that they have read has changed (`retry`), and that try
//! one thing or else another (`or_else`).
//!
//! Source: T. Harris and others, "Composable memory transactions" (2005); A. Turcu's dissertation
//! (2015), section 6.2.3.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use muesli_core::client::AnswerFuture;
use muesli_core::{Answer, Nanos, Operation, Step};

use crate::error::Error;
use crate::time::nanos;
use crate::transaction::tx::Tx;

/// Waits until something has changed that a transaction has read which has ended since.
#[derive(Debug)]
pub(crate) struct ReadChange {
    answer: AnswerFuture,
    /// When the wait is over where nothing has changed.
    pub until: Option<Nanos>,
}

impl ReadChange {
    /// # Errors
    /// It is not watched any more.
    pub async fn wait(&mut self) -> Result<(), Error> {
        let answer = (&mut self.answer).await?;
        assert_eq!(answer, Answer::Changed, "what a wait for a change is answered with");
        Ok(())
    }
}

/// For how long an alternative of a transaction may keep it waiting, with all attempts of its
/// body: see [`Tx::or_else_within`]. It is made outside of the body, once for each transaction; its
/// time begins when the alternative is tried for the first time. Clones share it.
#[derive(Clone, Debug)]
pub struct WaitLimit {
    after: Duration,
    /// In nanoseconds; zero: it has not begun.
    until: Arc<AtomicU64>,
}

impl WaitLimit {
    /// So long.
    pub fn new(after: Duration) -> WaitLimit {
        WaitLimit { after, until: Arc::default() }
    }

    /// When it is over; counted from the first call.
    fn until(&self, now: Nanos) -> Nanos {
        let fresh = (now + nanos(self.after)).0.max(1);
        let known = self.until.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
        Nanos(known.map_or_else(|known| known, |_| fresh))
    }

    /// When it is over, if it is not; it begins, if it has not.
    pub(crate) async fn left(&self, tx: &Tx) -> Result<Option<Nanos>, Error> {
        let now = tx.now().await?;
        Ok(Some(self.until(now)).filter(|until| now < *until))
    }
}

impl Tx {
    /// Gives up, for the transaction cannot go on with what it has read: its body is run again once
    /// something of that has changed. What it wrote is undone; it sleeps meanwhile, and is woken by
    /// the repositories where the keys are that it has read. A body returns what this returns.
    ///
    /// How long it may wait the transaction's [timeout](crate::Db::timeout) says. A read-only
    /// transaction, which keeps no note of what it reads, is run once more before it sleeps, as a
    /// [strict](crate::Db::strict) one, which does. Under `repeatable-read` it is run again after a
    /// pause where all that it has read is more than a transaction may have.
    ///
    /// A transaction with [open children](crate::Db::transact_nested) has what these did undone
    /// first, as nobody sleeps with what others wait for; and it waits for a change of what these
    /// have read as well. What their compensations put back as it was is no change. An open child
    /// that gives up has its transaction give up, or the alternative that it is within.
    ///
    /// ```
    /// use muesli::{Db, Error, Options, SpaceOptions};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::open(Options::default().space("stock", SpaceOptions::default()))?;
    /// let stock = db.space("stock")?.typed::<u64, u64>();
    /// let buyer = {
    ///     let db = db.clone();
    ///     std::thread::spawn(move || {
    ///         db.blocking().transact(async move |tx| {
    ///             match stock.get(tx, &1).await?.unwrap_or(0) {
    ///                 0 => tx.retry(),
    ///                 left => stock.put(tx, &1, &(left - 1)).await,
    ///             }
    ///         })
    ///     })
    /// };
    /// db.blocking().transact(async move |tx| stock.put(tx, &1, &5).await)?;
    /// buyer.join().expect("it does not panic")?;
    /// let left = db.blocking().transact(async move |tx| stock.get(tx, &1).await)?;
    /// assert_eq!(left, Some(4));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Always [`Error::Retry`].
    pub fn retry<T>(&self) -> Result<T, Error> {
        Err(self.failed(Error::Retry))
    }

    /// Runs `first` as a [child](Tx::nested); where it [gives up](Tx::retry), its writes are undone
    /// and `second` is run in its place. Where that gives up as well the transaction waits for a
    /// change of what either of them has read. ([`or_else_within`](Self::or_else_within) lets the
    /// first one wait for a while.)
    ///
    /// Under protocols without levels (`granola`) the writes of `first` cannot be undone alone:
    /// where it gives up after it has written, the transaction cannot commit.
    ///
    /// # Errors
    /// What the alternative returns that was not given up; as of [`nested`](Tx::nested).
    pub async fn or_else<T, E, F, G>(&self, first: F, second: G) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        G: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        match self.run_child(&|tx| tx, &first, true).await? {
            Some(value) => Ok(value),
            None => self.nested(second).await,
        }
    }

    /// As [`or_else`](Self::or_else), but `first` may keep the transaction waiting until `limit` is
    /// over: where it [gives up](Tx::retry) before that, the transaction sleeps, and is run again
    /// once something has changed that has been read, or when the limit is over. Then `first` is
    /// tried a last time, and `second` is run where it gives up. So an alternative may have a limit
    /// of its own, however often the body is run, and the last one waits as long as the
    /// transaction's [timeout](crate::Db::timeout) lets it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use muesli::structures::BlockingQueue;
    /// use muesli::{Db, Error, Options, SpaceOptions, Tx, WaitLimit};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::open(Options::default().space("work", SpaceOptions::default()))?;
    /// let space = db.space("work")?;
    /// let urgent = BlockingQueue::<String>::new(space, "urgent", 100);
    /// let limit = WaitLimit::new(Duration::from_millis(20));
    /// let next = db.blocking().transact(async move |tx| {
    ///     let first = async |tx: &Tx| urgent.take(tx).await.map(Some);
    ///     tx.or_else_within(&limit, first, async |_: &Tx| Ok::<_, Error>(None)).await
    /// })?;
    /// assert_eq!(next, None, "nothing has come for 20 ms");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`or_else`](Self::or_else); [`Error::Retry`], which a body passes on.
    pub async fn or_else_within<T, E, F, G>(
        &self,
        limit: &WaitLimit,
        first: F,
        second: G,
    ) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        G: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let left = limit.left(self).await?;
        match (self.run_child(&|tx| tx, &first, true).await?, left) {
            (Some(value), _) => Ok(value),
            (None, Some(until)) => Ok(self.retry_by(until)?),
            (None, None) => self.nested(second).await,
        }
    }

    /// Gives up, until something has changed or the time has come.
    pub(crate) fn retry_by<T>(&self, until: Nanos) -> Result<T, Error> {
        self.wake_at(Some(until));
        self.retry()
    }

    /// The time at its loop.
    async fn now(&self) -> Result<Nanos, Error> {
        let Some((db, home)) = self.other_loop() else { return self.here(|engine| engine.now()) };
        let tx = self.at_home();
        db.run_on(home, async move || tx.here(|engine| engine.now())).await?
    }

    /// Ends the transaction, and watches what it has read; `None`: whether that changes cannot be
    /// known.
    pub(crate) fn watch_reads(&self) -> Result<Option<ReadChange>, Error> {
        match self.here(|engine| engine.operate(Operation::Watch(self.txn)))? {
            Step::Done(answer) => answer.map(|_| None).map_err(Error::from),
            Step::Wait(op) => {
                let answer = AnswerFuture::new(self.database, op);
                Ok(Some(ReadChange { answer, until: self.alarm() }))
            }
        }
    }
}
