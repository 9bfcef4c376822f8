//! Waits for a change of what a transaction with open children has read, or an open child, which
//! asked for a [`retry`](crate::Tx::retry).
//!
//! One without open children is watched itself. What others have read is not there
//! any more to be watched: their transactions have ended. So when all is undone another transaction
//! reads the same keys and is watched, and the body is run once more. If it asks for a retry again,
//! having read nothing else, it sleeps until the watched one sees a change: whatever changed
//! before that one read, this attempt has seen.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use muesli_core::{Nanos, Scan, SmallBytes, SpaceId, TxnOptions, client};

use super::layer::Layer;
use super::reads::ReadNotes;
use super::rows::end_key;
use super::scope::NestingScope;
use crate::bodies::attempts::AttemptOptions;
use crate::bodies::timeout::{Timeout, WithTimeout};
use crate::data::byte_range::Range;
use crate::data::space::Space;
use crate::error::{Error, ErrorKind};
use crate::nesting_choice::Choosing;
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

/// What is to be waited for when an attempt asked for a retry, as it was before that is undone.
pub(super) enum AttemptReads {
    /// Nothing is to be undone, and all that was read the transaction itself has read.
    OfItself,
    /// What it and its open children have read, and the ends of transactions that it is within.
    OfAll(ReadNotes),
    /// Its children have written: each attempt changes that again, and would wake itself.
    Overwritten,
}

impl AttemptReads {
    pub fn of(layer: &Layer, scope: &NestingScope) -> AttemptReads {
        if waits_itself(scope) {
            return AttemptReads::OfItself;
        }
        let Some(mut reads) = scope.level.read_by_all() else { return AttemptReads::Overwritten };
        let space = layer.nesting.rows.space.id;
        let around = scope.chain().skip(1).map(|scope| (space, end_key(scope.id)));
        reads.add(around.collect(), Vec::new());
        AttemptReads::OfAll(reads)
    }
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
        left: AttemptReads,
        timeout: &Timeout,
    ) -> Result<(), Error> {
        let watched = self.watched.take();
        let reads = match left {
            AttemptReads::OfItself => return Ok(()), // It has waited, or is to keep notes first.
            AttemptReads::OfAll(reads) => Some(reads),
            AttemptReads::Overwritten => None,
        };
        if let Some(reads) = reads {
            match watched {
                Some(mut watched) if watched.reads.covers(&reads) => {
                    return layer.db.until_changed(&mut watched.change, timeout).await;
                }
                // It reads something else each time.
                Some(_) => layer.db.sleep(layer.db.inner.retry.pause_max).await?,
                None => {}
            }
            self.watched = layer.watch_again(reads, timeout).await?;
        }
        match self.watched {
            Some(_) => Ok(()),
            None => layer.db.sleep(layer.db.inner.retry.pause_max).await,
        }
    }
}

/// Whether nothing is to be undone, and all that was read the transaction itself has read.
fn waits_itself(scope: &NestingScope) -> bool {
    !scope.is_touched() && !scope.level.has_read_below()
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
        how: &AttemptOptions<'_>,
        choosing: Option<&Arc<Choosing>>,
    ) -> Result<(), Error> {
        let has_notes = self.given.has_notes(how);
        if tx.conflict() != Some(Error::Retry) || !has_notes || !waits_itself(scope) {
            return Ok(());
        }
        choosing.inspect(|it| it.sleeps());
        self.db.wait_for_change(tx, how.timeout).await
    }

    /// Reads the same once more, and watches it; `None` where changes cannot be known, or somebody
    /// was in the way.
    async fn watch_again(
        &self,
        reads: ReadNotes,
        timeout: &Timeout,
    ) -> Result<Option<ReadsWaitedFor>, Error> {
        let (db, inner) = (&self.db, &self.db.inner);
        // It keeps nothing from others.
        let options = TxnOptions { tried_since: Nanos(0), ..db.txn_options() };
        let begun = client::with(inner.database, |engine| engine.begin(options));
        let txn = begun.ok_or(Error::Closed)?.at_once()?;
        let tx = Tx::at(inner.database, inner.origin, txn, inner.retry);
        let open = RollbackOnDrop { tx };
        let read = Layer::read_again(&open.tx, &reads);
        let read = WithTimeout::new(pin!(read), timeout).await;
        match read.and_then(|()| open.tx.watch_reads()) {
            Ok(change) => Ok(change.map(|change| ReadsWaitedFor { reads, change, _open: open })),
            // Or all of it is more than one transaction may read.
            Err(error) if error.is_retryable() || error.kind() == ErrorKind::Limit => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read_again(tx: &Tx, reads: &ReadNotes) -> Result<(), Error> {
        let mut by_space = BTreeMap::<SpaceId, Vec<SmallBytes>>::new();
        for (space, key) in reads.keys() {
            by_space.entry(*space).or_default().push(key.clone());
        }
        for (space, keys) in by_space {
            tx.get_many(Space::numbered(space), keys).await?;
        }
        for Scan { space, lo, hi, reverse, limit } in reads.scans().iter().cloned() {
            tx.scan(Space::numbered(space), Range { lo, hi, reverse, limit }).await?;
        }
        Ok(())
    }
}
