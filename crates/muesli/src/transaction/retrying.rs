//! Transactions that wait until something that they have read has changed (`retry`), and that try
//! one thing or else another (`or_else`).
//!
//! Source: T. Harris and others, "Composable memory transactions" (2005); A. Turcu's dissertation
//! (2015), section 6.2.3.

use muesli_core::client::AnswerFuture;
use muesli_core::{Answer, Operation, Step};

use crate::error::Error;
use crate::transaction::tx::Tx;

/// Waits until something has changed that a transaction has read which has ended since.
#[derive(Debug)]
pub(crate) struct ReadChange(AnswerFuture);

impl ReadChange {
    /// # Errors
    /// It is not watched any more.
    pub async fn wait(&mut self) -> Result<(), Error> {
        let answer = (&mut self.0).await?;
        assert_eq!(answer, Answer::Changed, "what a wait for a change is answered with");
        Ok(())
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
    /// pause where it has read a range.
    ///
    /// A transaction with [open children](crate::Db::transact_nested), and an open child, has what
    /// its open children did undone first, as nobody sleeps with what others wait for; and it waits
    /// for a change of what these have read as well. What their compensations put back as it was is
    /// no change.
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
    /// change of what either of them has read.
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

    /// Ends the transaction, and watches what it has read; `None`: whether that changes cannot be
    /// known.
    pub(crate) fn watch_reads(&self) -> Result<Option<ReadChange>, Error> {
        match self.here(|engine| engine.operate(Operation::Watch(self.txn)))? {
            Step::Done(answer) => answer.map(|_| None).map_err(Error::from),
            Step::Wait(op) => Ok(Some(ReadChange(AnswerFuture::new(self.database, op)))),
        }
    }
}
