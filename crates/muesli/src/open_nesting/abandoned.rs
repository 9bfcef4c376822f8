//! Scopes whose clients are gone, or may be: finished by whoever meets their locks, or by an
//! operator.
//!
//! To finish a scope is safe at any moment, as its commit and its open children's look whether it
//! has been ended. When it is done is a question of patience alone.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use muesli_core::SmallBytes;

use super::ending::Finish;
use super::layer::counts::count;
use super::layer::watch::ScopeWatch;
use super::layer::{Layer, OpenNesting};
use super::rows::{END, LOCK, OPEN, SCOPE, ScopeId, scope_key, scope_of};
use crate::data::byte_range::Range;
use crate::database::handle::Db;
use crate::error::Error;
use crate::time::nanos;

/// The rows that the layer has in its space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NestingRows {
    /// Scopes that are running or being finished.
    pub scopes: usize,
    /// Locks that somebody holds.
    pub locks: usize,
    /// Scopes with open children that have open children themselves, and have not ended.
    pub parents: usize,
    /// Ends of scopes: of those that are being finished, and of those that others have aborted,
    /// which stay until [`OpenNesting::forget_ends`].
    pub ends: usize,
}

impl Layer {
    fn watch(&self) -> MutexGuard<'_, ScopeWatch> {
        self.nesting.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A scope holds a lock that is asked for. It is finished if it has made no progress for long.
    ///
    /// # Errors
    /// It could not be, or could not be looked at.
    pub async fn meet(&self, holder: ScopeId) -> Result<(), Error> {
        count(&self.nesting.counters.refused);
        let patience = nanos(self.nesting.patience);
        let now = self.now()?;
        if !self.watch().meet(holder, now, patience) {
            return Ok(());
        }
        let (rows, key) = (self.nesting.rows, scope_key(holder));
        let read = async |tx: &crate::Tx| tx.get(rows.space, key.clone()).await;
        let Some(row) = self.db.transact_here(read).await? else {
            self.watch().forget(holder);
            return Ok(());
        };
        let now = self.now()?;
        if !self.watch().is_stuck(holder, now, &row) {
            return Ok(());
        }
        self.finish(holder, Finish::OTHERS).await?;
        count(&self.nesting.counters.taken_over);
        self.watch().forget(holder);
        Ok(())
    }

    async fn scopes(&self) -> Result<BTreeMap<ScopeId, SmallBytes>, Error> {
        let space = self.nesting.rows.space;
        let scan = async |tx: &crate::Tx| tx.scan(space, Range::prefix([SCOPE])).await;
        let found = self.db.transact_here(scan).await?;
        found.into_iter().map(|(key, row)| Ok((scope_of(&key)?, row))).collect()
    }
}

impl OpenNesting {
    /// Finishes all scopes that make no progress for so long: aborts and compensates them, or runs
    /// the commit handlers of those that committed, and lets their locks go. How many there were.
    /// Whoever asks for one of their locks does the same, so that nobody has to call this.
    ///
    /// # Errors
    /// [`Error::Unfinished`]: of one of them, after all were tried.
    pub async fn finish_abandoned(&self, db: &Db, idle: Duration) -> Result<usize, Error> {
        let (nesting, own) = (self.clone(), db.clone());
        let run = async move |layer: &Layer| {
            let before = layer.scopes().await?;
            layer.db.sleep(idle).await?;
            let mut now = layer.scopes().await?;
            now.retain(|id, row| before.get(id) == Some(row));
            let mut failed = None;
            for id in now.keys() {
                match layer.finish(*id, Finish::OTHERS).await {
                    Ok(_) => count(&nesting.counters.taken_over),
                    Err(error) => failed = Some(error),
                }
            }
            failed.map_or(Ok(now.len()), Err)
        };
        self.on_loop(&own, run).await
    }

    /// What there is in the layer's space; where no transaction with open children runs, nothing,
    /// but for the [ends](NestingRows::ends) of scopes that others have aborted.
    ///
    /// # Errors
    /// What [`Db::transact`] says.
    pub async fn rows(&self, db: &Db) -> Result<NestingRows, Error> {
        self.on_loop(db, async move |layer: &Layer| {
            let space = layer.nesting.rows.space;
            let scan = async |tx: &crate::Tx| tx.scan(space, Range::all()).await;
            let found = layer.db.transact_here(scan).await?;
            let of = |kind: u8| {
                found.iter().filter(|(key, _)| key.as_slice().first() == Some(&kind)).count()
            };
            let (scopes, locks, parents, ends) = (of(SCOPE), of(LOCK), of(OPEN), of(END));
            Ok(NestingRows { scopes, locks, parents, ends })
        })
        .await
    }

    /// Removes the ends of scopes that others have aborted. For when none of the clients that ran
    /// them is there any more, or their transactions have reached their
    /// [timeout](Db::timeout): one that comes after that would not notice that it was aborted. How
    /// many there were.
    ///
    /// # Errors
    /// What [`Db::transact`] says.
    pub async fn forget_ends(&self, db: &Db) -> Result<usize, Error> {
        self.on_loop(db, async move |layer: &Layer| {
            let rows = layer.nesting.rows;
            let forget = async |tx: &crate::Tx| {
                let found = tx.scan(rows.space, Range::prefix([END])).await?;
                let mut forgotten = 0;
                for (key, _) in found {
                    let scope = scope_key(scope_of(&key)?);
                    if tx.get(rows.space, scope).await?.is_none() {
                        rows.delete(tx, key).await?;
                        forgotten += 1;
                    }
                }
                Ok(forgotten)
            };
            layer.db.transact_here(forget).await
        })
        .await
    }

    /// Runs this on a loop of the database, or here, if that is one.
    async fn on_loop<T: Send + 'static>(
        &self,
        db: &Db,
        run: impl AsyncFn(&Layer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let layer = Layer::new(db, self);
        match db.is_here() {
            true => run(&layer).await,
            false => db.run_on(db.next_loop(), async move || run(&layer).await).await?,
        }
    }
}
