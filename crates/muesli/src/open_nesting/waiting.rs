//! Waits for a change of what a transaction with open children has read that asked for a
//! [`retry`](crate::Tx::retry), itself or in an open child.
//!
//! One of which no open child has done or read anything is watched itself. What others have read is
//! not there any more to be watched: their transactions have ended. So when all is undone another
//! transaction reads the same keys. Where it finds what the attempt and its children
//! [found](super::level), it is watched: the attempt would ask for a retry again as long as that
//! stays. Where it finds something else the body is run again, as somebody has changed it, or the
//! compensations have not put it back.

use std::pin::pin;
use std::sync::Arc;

use muesli_core::{Nanos, Scan, Staleness, TxnOptions, client};

use super::layer::Layer;
use super::level::ReadNotes;
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

/// What was read once more, and is watched.
struct RepeatedReads {
    change: ReadChange,
    /// The transaction that has read it.
    _open: RollbackOnDrop,
}

/// What an attempt has left to be waited for.
pub(super) struct LeftReads {
    /// Somebody changes some of this.
    reads: ReadNotes,
    /// Or this time has come.
    until: Option<Nanos>,
}

/// The waits of one transaction, between its attempts.
#[derive(Default)]
pub(super) struct RetryWait {
    /// So many attempts in a row have found what was not there any more when they were undone.
    unlike: u32,
}

impl RetryWait {
    /// An attempt asked for a retry, and what it and its open children did has been undone: waits
    /// until the next one may find something else than this has read. `None`: it has waited itself,
    /// or is to keep notes first.
    ///
    /// # Errors
    /// The time is over; what [`Db::transact`](crate::Db::transact) says.
    pub async fn before_next(
        &mut self,
        layer: &Layer,
        left: Option<LeftReads>,
        timeout: &Timeout,
    ) -> Result<(), Error> {
        let Some(LeftReads { reads, until }) = left else { return Ok(()) };
        if let Some(mut watched) = layer.watch_again(&reads, timeout).await? {
            self.unlike = 0;
            watched.change.until = until;
            return layer.db.until_changed(&mut watched.change, timeout).await;
        }
        self.unlike += 1;
        layer.db.pause(self.unlike).await
    }
}

/// Whether nothing is to be undone, and all that was read the transaction itself has read.
fn waits_itself(scope: &NestingScope) -> bool {
    !scope.is_touched() && !scope.level.has_read_below()
}

/// What an attempt and its open children have read, as it was before that is undone; `None` where
/// the attempt waits itself.
pub(super) fn to_be_waited_for(scope: &NestingScope) -> Option<LeftReads> {
    let reads = (!waits_itself(scope)).then(|| scope.level.read_by_all());
    reads.map(|reads| LeftReads { reads, until: scope.alarm() })
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
        scope.wake_at(tx.alarm()); // If it waits when it is undone.
        let has_notes = self.given.has_notes(how);
        if tx.conflict() != Some(Error::Retry) || !has_notes || !waits_itself(scope) {
            return Ok(());
        }
        choosing.inspect(|it| it.sleeps());
        self.db.wait_for_change(tx, how.timeout).await
    }

    /// Reads the same once more, and watches it; `None` where something else is there now, where
    /// that or a change of it cannot be known, or where somebody was in the way.
    async fn watch_again(
        &self,
        reads: &ReadNotes,
        timeout: &Timeout,
    ) -> Result<Option<RepeatedReads>, Error> {
        if !reads.can_be_compared() {
            return Ok(None);
        }
        let (db, inner) = (&self.db, &self.db.inner);
        let options = db.txn_options();
        let staleness = options.staleness.map(|_| Staleness::NONE);
        // It keeps nothing from others, and reads what is newest.
        let tried_since = Nanos(0);
        let options = TxnOptions { tried_since, staleness, follower_reads: false, ..options };
        let begun = client::with(inner.database, |engine| engine.begin(options));
        let txn = begun.ok_or(Error::Closed)?.at_once()?;
        let tx = Tx::at(inner.database, inner.origin, txn, inner.retry);
        let open = RollbackOnDrop::new(tx);
        let found_again = Layer::is_found_again(&open.tx, reads);
        let found_again = WithTimeout::new(pin!(found_again), timeout).await;
        let change = found_again.and_then(|it| if it { open.tx.watch_reads() } else { Ok(None) });
        match change {
            Ok(change) => Ok(change.map(|change| RepeatedReads { change, _open: open })),
            // Or all of it is more than one transaction may read.
            Err(error) if error.is_retryable() || error.kind() == ErrorKind::Limit => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn is_found_again(tx: &Tx, reads: &ReadNotes) -> Result<bool, Error> {
        for (space, keys) in reads.keys_of_others() {
            let values = tx.get_many(Space::numbered(space), keys.iter().cloned()).await?;
            let mut found = keys.into_iter().zip(values);
            if !found.all(|(key, value)| reads.is_found_again(&(space, key), value.as_ref())) {
                return Ok(false);
            }
        }
        for scan in reads.scans() {
            let Scan { space, lo, hi, reverse, limit } = scan.clone();
            let rows = tx.scan(Space::numbered(space), Range { lo, hi, reverse, limit }).await?;
            if !reads.is_range_found_again(scan, &rows) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
