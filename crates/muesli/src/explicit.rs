//! Transactions that their client ends by hand.

use std::ops::Deref;

use muesli_core::{Committed, Gave};

use crate::db::{Db, Job};
use crate::error::Error;
use crate::later::Results;
use crate::transaction::Tx;

/// A transaction that is committed or rolled back by hand.
#[derive(Debug)]
pub struct Transaction {
    tx: Tx,
    db: Db,
    ended: bool,
}

impl Transaction {
    pub(crate) fn new(tx: Tx, db: Db) -> Transaction {
        Transaction { tx, db, ended: false }
    }

    /// Commits: all writes take effect, or none.
    ///
    /// # Errors
    /// [`Error::Conflict`]: run it again. [`Error::Unknown`]: it may have taken effect.
    pub async fn commit(mut self) -> Result<(), Error> {
        self.ended = true;
        let (committed, _) = self.end().await?;
        self.db.see(committed.at);
        Ok(())
    }

    /// Commits, and tells what delayed actions gave that were asked.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn commit_answering(mut self) -> Result<Results, Error> {
        self.ended = true;
        let (committed, answers) = self.end().await?;
        self.db.see(committed.at);
        Ok(Results(answers))
    }

    async fn end(&self) -> Result<(Committed, Vec<Gave>), Error> {
        match self.tx.away.as_deref() {
            None => {
                let ended = self.tx.commit_answering_here().await;
                self.db.leave();
                ended
            }
            Some((db, home)) => {
                let (tx, session) = (self.tx.at_home(), self.db.clone());
                let there = async move || {
                    let ended = tx.commit_answering_here().await;
                    session.leave();
                    ended
                };
                db.run_on(*home, there).await?
            }
        }
    }

    /// Rolls back; the same as dropping it, but waits until it is done.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn rollback(mut self) -> Result<(), Error> {
        self.ended = true;
        match self.tx.away.as_deref() {
            None => self.tx.rollback_here(),
            Some((db, home)) => {
                let tx = self.tx.at_home();
                db.run_on(*home, async move || tx.rollback_here()).await?;
            }
        }
        Ok(())
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
        match self.tx.away.as_deref() {
            None => self.tx.rollback_here(),
            Some((db, home)) => {
                let (tx, home) = (self.tx.at_home(), *home);
                if let Some(away) = &db.inner.away {
                    let job: Job = Box::new(move || Box::pin(async move { tx.rollback_here() }));
                    let _ = away.submit(home, job); // A stopped loop has forgotten it anyway.
                }
            }
        }
    }
}
