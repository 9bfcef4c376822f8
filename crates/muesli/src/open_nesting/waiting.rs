//! Waits for a change of what a transaction with open children has read, or an open child, which
//! asked for a [`retry`](crate::Tx::retry).
//!
//! One without open children is watched itself. What others have read is not there
//! any more to be watched: their transactions have ended. So when all is undone another transaction
//! reads the same keys and is watched, and the body is run once more. If it asks for a retry again,
//! having read nothing else, it sleeps until the watched one sees a change: whatever changed
//! before that one read, this attempt has seen.

use std::collections::BTreeMap;

use muesli_core::{Nanos, Scan, SmallBytes, SpaceId, TxnOptions, client};

use super::layer::Layer;
use super::reads::ReadNotes;
use super::scope::NestingScope;
use crate::bodies::timeout::Timeout;
use crate::data::byte_range::Range;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::open::RollbackOnDrop;
use crate::transaction::retrying::ReadChange;
use crate::transaction::tx::Tx;

/// What was read, and is watched.
struct ReadsWaitedFor {
    reads: ReadNotes,
    change: ReadChange,
    /// The transaction that has read it.
    _open: RollbackOnDrop,
}

/// The waits of one transaction, between its attempts.
#[derive(Default)]
pub(super) struct RetryWait {
    watched: Option<ReadsWaitedFor>,
}

impl RetryWait {
    /// An attempt asked for a retry, and what its open children did has been undone: waits until
    /// the next one may find something else.
    ///
    /// # Errors
    /// The time is over; what [`Db::transact`](crate::Db::transact) says.
    pub async fn before_next(
        &mut self,
        layer: &Layer,
        scope: &NestingScope,
        timeout: &Timeout,
    ) -> Result<(), Error> {
        if waits_itself(scope) {
            return Ok(()); // It has done so.
        }
        let watched = self.watched.take();
        // What its children wrote changes with each attempt, and it would wake itself.
        if let Some(reads) = scope.level.read_by_all() {
            match watched {
                Some(mut watched) if watched.reads.covers(&reads) => {
                    return layer.db.until_changed(&mut watched.change, timeout).await;
                }
                // It reads something else each time.
                Some(_) => layer.db.sleep(layer.db.inner.retry.pause_max).await?,
                None => {}
            }
            self.watched = layer.watch_again(reads).await?;
        }
        match self.watched {
            Some(_) => Ok(()),
            None => layer.db.sleep(layer.db.inner.retry.pause_max).await,
        }
    }
}

/// Whether nothing is to be undone, and all that was read the transaction itself has read.
fn waits_itself(scope: &NestingScope) -> bool {
    !scope.is_touched() && !scope.level.has_read_beneath()
}

impl Layer {
    /// Where a transaction asks for a retry that leaves nothing to be undone, and of which open
    /// children have read nothing, it waits for a change of what it has read itself.
    ///
    /// # Errors
    /// The time is over; what [`Db::transact`](crate::Db::transact) says.
    pub async fn wait_untouched(
        &self,
        (tx, scope): (&Tx, &NestingScope),
        timeout: &Timeout,
    ) -> Result<(), Error> {
        if tx.conflict() != Some(Error::Retry) || !waits_itself(scope) {
            return Ok(());
        }
        self.db.wait_for_change(tx, timeout).await
    }

    /// Reads the same once more, and watches it; `None` where changes cannot be known, or somebody
    /// was in the way.
    async fn watch_again(&self, reads: ReadNotes) -> Result<Option<ReadsWaitedFor>, Error> {
        let (db, inner) = (&self.db, &self.db.inner);
        // It keeps nothing from others.
        let options = TxnOptions { tried_since: Nanos(0), ..db.txn_options() };
        let begun = client::with(inner.database, |engine| engine.begin(options));
        let txn = begun.ok_or(Error::Closed)?.at_once()?;
        let tx = Tx::at(inner.database, inner.origin, txn, inner.retry);
        let open = RollbackOnDrop { tx };
        let read = async {
            let mut by_space = BTreeMap::<SpaceId, Vec<SmallBytes>>::new();
            for (space, key) in reads.keys() {
                by_space.entry(*space).or_default().push(key.clone());
            }
            for (space, keys) in by_space {
                open.tx.get_many(Space::numbered(space), keys).await?;
            }
            for Scan { space, lo, hi, reverse, limit } in reads.scans().iter().cloned() {
                open.tx.scan(Space::numbered(space), Range { lo, hi, reverse, limit }).await?;
            }
            open.tx.watch_reads()
        };
        match read.await {
            Ok(change) => Ok(change.map(|change| ReadsWaitedFor { reads, change, _open: open })),
            Err(error) if error.is_retryable() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
