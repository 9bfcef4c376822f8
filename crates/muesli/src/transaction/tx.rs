//! A running transaction, as its body sees it.

use std::ops::Bound;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use muesli_core::client::{self, Engine};
use muesli_core::{Catalog, Operation, Scan, SmallBytes, Txn};

use crate::data::space::{Origin, Space};
use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::operation::{Get, GetMany, Put, RangeScan, Reply};

/// The handle of a running transaction: reads see the transaction's snapshot and its own writes;
/// writes are buffered until it commits.
///
/// Operations of one transaction may run side by side, so they take the handle by shared
/// reference. It stays with the body: what a transaction does, it does before it ends.
#[derive(Debug)]
pub struct Tx {
    pub(crate) database: u64,
    /// Whose spaces it uses.
    pub(crate) origin: Origin,
    pub(crate) txn: Txn,
    /// Where the transaction lives, if that is not the loop that polls this.
    pub(crate) away: Option<Box<(Db, usize)>>,
    /// The first conflict that an operation met: the transaction cannot commit any more, whatever
    /// error its body makes of that.
    conflict: OnceLock<Error>,
}

/// The future of a body that may be polled on any thread.
///
/// Bodies are async closures, `async move |tx| { .. }`, and nothing needs to be said of their
/// futures, as long as the closure is written where it is used. Code that takes bodies of others,
/// and whose own future is to be [`Send`] (a task of a multi-threaded executor), cannot say of an
/// `impl AsyncFn(&Tx) -> ..` that its futures are. It takes functions that give this instead:
///
/// ```
/// use muesli::{BodyFuture, Db, Error, Tx};
///
/// async fn twice<T: Send + 'static>(
///     db: &Db,
///     body: impl for<'a> Fn(&'a Tx) -> BodyFuture<'a, T> + Clone + Send + Sync + 'static,
/// ) -> Result<(T, T), Error> {
///     let again = body.clone();
///     let first = db.transact(async move |tx| body(tx).await).await?;
///     Ok((first, db.transact(async move |tx| again(tx).await).await?))
/// }
///
/// fn is_send(_: impl Send) {}
/// fn show(db: &'static Db) {
///     is_send(twice(db, |_| Box::pin(async { Ok(1) })));
/// }
/// ```
pub type BodyFuture<'a, T, E = Error> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A range of keys to scan, and how: by default all keys, ascending, without limit.
#[derive(Clone, Debug)]
pub struct Range {
    pub(crate) lo: SmallBytes,
    pub(crate) hi: Option<SmallBytes>,
    pub(crate) reverse: bool,
    pub(crate) limit: usize,
}

impl Range {
    /// All keys.
    pub fn all() -> Range {
        Range { lo: SmallBytes::EMPTY, hi: None, reverse: false, limit: usize::MAX }
    }

    /// The keys within two bounds, as `Range::of(lo..hi)` or with any other range of byte strings.
    pub fn of<K: AsRef<[u8]>>(bounds: impl std::ops::RangeBounds<K>) -> Range {
        let lo = match bounds.start_bound() {
            Bound::Included(lo) => SmallBytes::new(lo.as_ref()),
            Bound::Excluded(lo) => SmallBytes::new(lo.as_ref()).successor(),
            Bound::Unbounded => SmallBytes::EMPTY,
        };
        let hi = match bounds.end_bound() {
            Bound::Included(hi) => Some(SmallBytes::new(hi.as_ref()).successor()),
            Bound::Excluded(hi) => Some(SmallBytes::new(hi.as_ref())),
            Bound::Unbounded => None,
        };
        Range { lo, hi, ..Range::all() }
    }

    /// The keys that start with `prefix`, as they are stored. The encoding of a typed string has an
    /// end of its own, so other strings do not start with it: those that start with some text are
    /// [`KeyRange::prefix`](crate::KeyRange::prefix).
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Range {
        let lo = SmallBytes::new(prefix.as_ref());
        Range { hi: lo.prefix_end(), lo, ..Range::all() }
    }

    /// From the last key backwards.
    pub fn reverse(self) -> Range {
        Range { reverse: true, ..self }
    }

    /// At most `limit` rows.
    pub fn limit(self, limit: usize) -> Range {
        Range { limit, ..self }
    }
}

impl Tx {
    /// A transaction of the loop that polls this.
    #[inline]
    pub(crate) fn at(database: u64, origin: Origin, txn: Txn) -> Tx {
        Tx { database, origin, txn, away: None, conflict: OnceLock::new() }
    }

    /// A transaction of a loop of this number, which is used from elsewhere.
    pub(crate) fn away(db: &Db, txn: Txn, home: Option<usize>) -> Tx {
        let away = home.map(|home| Box::new((db.clone(), home)));
        Tx { away, ..Tx::at(db.inner.database, db.inner.origin, txn) }
    }

    /// Refuses a space of another database.
    pub(crate) fn check(&self, space: Space) -> Result<(), Error> {
        match self.origin.admits(space.origin) {
            true => Ok(()),
            false => Err(Error::OtherDatabase { space: space.id.0 }),
        }
    }

    /// Why its transaction cannot commit any more, if an operation met a conflict.
    pub(crate) fn conflict(&self) -> Option<Error> {
        self.conflict.get().cloned()
    }

    /// An operation failed.
    #[cold]
    pub(crate) fn failed(&self, error: impl Into<Error>) -> Error {
        let error = error.into();
        if error.is_conflict() {
            let _ = self.conflict.set(error.clone()); // The first one counts.
        }
        error
    }

    /// Reads a key; `None` where it is absent.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the transaction cannot commit any more, [`Error::Timeout`],
    /// [`Error::TooLarge`], [`Error::Ended`], [`Error::Closed`], [`Error::OtherDatabase`].
    #[inline]
    pub fn get(&self, space: Space, key: impl Into<SmallBytes>) -> Reply<'_, Get> {
        Reply::new(self, space, Get { space: space.id, key: key.into() })
    }

    /// Reads several keys at once: those that live elsewhere in parallel.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many(
        &self,
        space: Space,
        keys: impl IntoIterator<Item = impl Into<SmallBytes>>,
    ) -> Reply<'_, GetMany> {
        let keys = keys.into_iter().map(Into::into).collect();
        Reply::new(self, space, GetMany { space: space.id, keys })
    }

    /// Writes a key. Nothing is sent before the commit.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::ReadOnly`], [`Error::Ended`], [`Error::Closed`],
    /// [`Error::OtherDatabase`].
    #[inline]
    pub fn put(
        &self,
        space: Space,
        key: impl Into<SmallBytes>,
        value: impl Into<SmallBytes>,
    ) -> Reply<'_, Put> {
        let value = Some(value.into());
        Reply::new(self, space, Put { space: space.id, key: key.into(), value })
    }

    /// Deletes a key; nothing happens where it is absent.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub fn delete(&self, space: Space, key: impl Into<SmallBytes>) -> Reply<'_, Put> {
        Reply::new(self, space, Put { space: space.id, key: key.into(), value: None })
    }

    /// Reads a range of keys in order. In an update transaction the range is protected: nobody
    /// can add or change a key in what was seen of it before the commit.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Error::Space`] where the space has a hash index.
    pub fn scan(&self, space: Space, range: Range) -> Reply<'_, RangeScan> {
        let Range { lo, hi, reverse, limit } = range;
        let scan = Scan { space: space.id, lo, hi, reverse, limit };
        Reply::new(self, space, RangeScan { scan })
    }

    /// Rolls back, if the transaction's loop is here and still there.
    pub(crate) fn rollback_here(&self) {
        client::with(self.database, |engine| engine.operate(Operation::rollback(self.txn)));
    }

    /// The catalog of its database, where that is to be had.
    #[cold]
    pub(crate) fn catalog(&self) -> Option<Arc<Catalog>> {
        match self.away.as_deref() {
            Some((db, _)) => Some(db.catalog()),
            None => self.here(|engine| engine.catalog()).ok()?.ok(),
        }
    }

    pub(crate) fn at_home(&self) -> Tx {
        Tx::at(self.database, self.origin, self.txn)
    }

    #[inline]
    pub(crate) fn here<T>(&self, f: impl FnOnce(&dyn Engine) -> T) -> Result<T, Error> {
        client::with(self.database, f).ok_or(Error::Closed)
    }
}
