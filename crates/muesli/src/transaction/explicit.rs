//! Transactions that their client ends by hand.

use std::ops::Deref;
use std::sync::Arc;

use muesli_core::client::{self, Answered};
use muesli_core::deadlines::{DeadlineId, Due};
use muesli_core::{Answer, Gave, Operation};

use crate::database::handle::{Db, Job};
use crate::error::Error;
use crate::time::nanos;
use crate::transaction::commit::{Caller, Fate};
use crate::transaction::open::RollbackOnDrop;
use crate::transaction::results::Results;
use crate::transaction::tx::Tx;

/// A transaction that is committed or rolled back by hand.
///
/// When its [timeout](Db::timeout) is over it is aborted, and its operations answer
/// [`Error::TransactionTimeout`].
#[derive(Debug)]
pub struct Transaction {
    tx: Tx,
    db: Db,
    deadline: Option<DeadlineId>,
    ended: bool,
}

impl Db {
    /// Begins a transaction that is committed or rolled back by hand. Conflicts are reported, not
    /// retried. Dropped, it is rolled back; it also is when its [timeout](Self::timeout) is over.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn begin(&self) -> Result<Transaction, Error> {
        if self.is_here() {
            return self.begin_here(None);
        }
        let (home, session) = (self.next_loop(), self.clone());
        self.run_on(home, async move || session.begin_here(Some(home))).await?
    }

    /// Begins on this loop, which has a number if the transaction is to be used from elsewhere.
    fn begin_here(&self, home: Option<usize>) -> Result<Transaction, Error> {
        let (database, options) = (self.inner.database, self.txn_options());
        self.arrive();
        let begin = Operation::Begin(options);
        let begun = client::with(database, |engine| engine.operate(begin)).ok_or(Error::Closed)?;
        let txn = begun.map(Answer::begun).at_once()?;
        let after_ms = self.timeout.as_millis() as u64;
        let deadline = client::with(database, |engine| {
            engine.deadline(engine.now() + nanos(self.timeout), Due::Abort(txn, after_ms))
        });
        let tx = Tx::remote(self, txn, home);
        Ok(Transaction { tx, db: self.clone(), deadline, ended: false })
    }
}

impl Transaction {
    /// Commits: all writes take effect, or none. If the future is dropped when it was polled once,
    /// [`Db::settle`] waits for the outcome.
    ///
    /// # Errors
    /// [`Error::Conflict`]: run it again. [`Error::Unknown`]: it may have taken effect.
    pub async fn commit(self) -> Result<(), Error> {
        self.end().await.map(drop)
    }

    /// Commits, and tells what delayed actions gave that were asked.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn commit_answering(self) -> Result<Results, Error> {
        self.end().await.map(Results)
    }

    async fn end(mut self) -> Result<Vec<Gave>, Error> {
        let (db, open) = (self.db.clone(), self.take_open());
        let ended = match self.tx.other_loop() {
            None => open.commit(&db, None).await,
            Some((_, home)) => {
                let (_caller, fate) = Caller::new(&self.db);
                let there = async move || open.commit(&db, Some(&fate)).await;
                self.db.run_on(home, there).await?
            }
        };
        ended.map(|(_, given)| given)
    }

    /// What is to be ended on the transaction's loop.
    fn take_open(&mut self) -> OpenByHand {
        self.ended = true;
        OpenByHand { open: RollbackOnDrop::new(self.tx.at_home()), deadline: self.deadline.take() }
    }

    /// Rolls back; the same as dropping it, but waits until it is done.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn rollback(mut self) -> Result<(), Error> {
        let open = self.take_open();
        match self.tx.other_loop() {
            None => drop(open),
            Some((db, home)) => db.run_on(home, async move || drop(open)).await?,
        }
        Ok(())
    }
}

/// A transaction that is rolled back if it is dropped on its loop before it has ended.
struct OpenByHand {
    open: RollbackOnDrop,
    deadline: Option<DeadlineId>,
}

impl OpenByHand {
    async fn commit(self, db: &Db, fate: Option<&Arc<Fate>>) -> Result<Answered, Error> {
        self.open.tx.commit_here(db, fate).await
    }
}

impl Drop for OpenByHand {
    fn drop(&mut self) {
        if let Some(deadline) = self.deadline {
            client::with(self.open.tx.database, |engine| engine.take_back(deadline));
        }
    }
}

impl Deref for Transaction {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let open = self.take_open();
        if let Some((db, home)) = self.tx.other_loop()
            && let Some(driver) = &db.inner.driver
        {
            let job: Job = Box::new(move || Box::pin(async move { drop(open) }));
            let _ = driver.submit(home, job); // A stopped loop has forgotten it anyway.
        }
    }
}
