//! A running transaction, as its body sees it.

use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::task::{Context, Poll};

use muesli_core::client::{self, Engine};
use muesli_core::{Committed, Failure, OpId, OpResult, Row, SmallBytes, Step, Txn};

use crate::db::Db;
use crate::error::Error;
use crate::space::Space;

/// The handle of a running transaction: reads see the transaction's snapshot and its own writes;
/// writes are buffered until it commits.
///
/// Handles are cheap to clone; operations of one transaction may run side by side.
#[derive(Clone, Debug)]
pub struct Tx {
    pub(crate) database: u64,
    pub(crate) txn: Txn,
    /// Where the transaction lives, if that is not the loop that polls this.
    pub(crate) away: Option<Box<(Db, usize)>>,
}

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

    /// The keys that start with `prefix`.
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
    /// Reads a key; `None` where it is absent.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the transaction cannot commit any more, [`Error::Timeout`],
    /// [`Error::TooLarge`], [`Error::Ended`], [`Error::Closed`].
    #[inline]
    pub async fn get(
        &self,
        space: Space,
        key: impl Into<SmallBytes>,
    ) -> Result<Option<SmallBytes>, Error> {
        let key = key.into();
        let space = space.id;
        match self.away() {
            None => match self.here(|engine| engine.get(self.txn, space, &key))? {
                Step::Done(answer) => Ok(answer?),
                Step::Wait(op) => match wait(self.database, op).await? {
                    OpResult::Value(value) => Ok(value),
                    other => Err(unexpected(other)),
                },
            },
            Some((db, home)) => {
                let (tx, space) = (self.at_home(), Space { id: space });
                db.run_on(*home, async move || tx.get_boxed(space, key).await).await?
            }
        }
    }

    /// Reads several keys at once: those that live elsewhere in parallel.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_many(
        &self,
        space: Space,
        keys: impl IntoIterator<Item = impl Into<SmallBytes>>,
    ) -> Result<Vec<Option<SmallBytes>>, Error> {
        let keys: Vec<SmallBytes> = keys.into_iter().map(Into::into).collect();
        match self.away() {
            None => match self.here(|engine| engine.get_many(self.txn, space.id, keys))? {
                Step::Done(answer) => Ok(answer?),
                Step::Wait(op) => match wait(self.database, op).await? {
                    OpResult::Values(values) => Ok(values),
                    other => Err(unexpected(other)),
                },
            },
            Some((db, home)) => {
                let tx = self.at_home();
                db.run_on(*home, async move || {
                    let again: Pin<Box<dyn Future<Output = _>>> =
                        Box::pin(async move { tx.get_many(space, keys).await });
                    again.await
                })
                .await?
            }
        }
    }

    /// Writes a key. Nothing is sent before the commit.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::ReadOnly`], [`Error::Ended`], [`Error::Closed`].
    #[inline]
    pub async fn put(
        &self,
        space: Space,
        key: impl Into<SmallBytes>,
        value: impl Into<SmallBytes>,
    ) -> Result<(), Error> {
        self.write(space, key.into(), Some(value.into())).await
    }

    /// Deletes a key; nothing happens where it is absent.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub async fn delete(&self, space: Space, key: impl Into<SmallBytes>) -> Result<(), Error> {
        self.write(space, key.into(), None).await
    }

    #[inline]
    async fn write(
        &self,
        space: Space,
        key: SmallBytes,
        value: Option<SmallBytes>,
    ) -> Result<(), Error> {
        match self.away() {
            None => Ok(self.here(|engine| engine.put(self.txn, space.id, key, value))??),
            Some((db, home)) => {
                let tx = self.at_home();
                db.run_on(*home, async move || {
                    Ok(tx.here(|engine| engine.put(tx.txn, space.id, key, value))??)
                })
                .await?
            }
        }
    }

    /// Reads a range of keys in order. In an update transaction the range is protected: nobody
    /// can add or change a key in what was seen of it before the commit.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Error::Space`] where the space has a hash index.
    pub async fn scan(&self, space: Space, range: Range) -> Result<Vec<Row>, Error> {
        match self.away() {
            None => {
                let Range { lo, hi, reverse, limit } = range;
                let scan = muesli_core::Scan { space: space.id, lo, hi, reverse, limit };
                match self.here(|engine| engine.scan(self.txn, scan))? {
                    Step::Done(answer) => Ok(answer?),
                    Step::Wait(op) => match wait(self.database, op).await? {
                        OpResult::Rows(rows) => Ok(rows),
                        other => Err(unexpected(other)),
                    },
                }
            }
            Some((db, home)) => {
                let tx = self.at_home();
                db.run_on(*home, async move || {
                    let again: Pin<Box<dyn Future<Output = _>>> =
                        Box::pin(async move { tx.scan(space, range).await });
                    again.await
                })
                .await?
            }
        }
    }

    fn get_boxed(
        self,
        space: Space,
        key: SmallBytes,
    ) -> Pin<Box<dyn Future<Output = Result<Option<SmallBytes>, Error>>>> {
        Box::pin(async move { self.get(space, key).await })
    }

    #[inline]
    pub(crate) async fn commit_here(&self) -> Result<Committed, Error> {
        match self.here(|engine| engine.commit(self.txn))? {
            Step::Done(answer) => Ok(answer?),
            Step::Wait(op) => as_committed(wait(self.database, op).await?),
        }
    }

    /// Rolls back, if the transaction's loop is here and still there.
    pub(crate) fn rollback_here(&self) {
        client::with(self.database, |engine| engine.rollback(self.txn));
    }

    #[inline]
    fn away(&self) -> Option<&(Db, usize)> {
        self.away.as_deref()
    }

    pub(crate) fn at_home(&self) -> Tx {
        Tx { database: self.database, txn: self.txn, away: None }
    }

    #[inline]
    fn here<T>(&self, f: impl FnOnce(&dyn Engine) -> T) -> Result<T, Error> {
        client::with(self.database, f).ok_or(Error::Closed)
    }
}

/// The answer to a commit.
pub(crate) fn as_committed(result: OpResult) -> Result<Committed, Error> {
    match result {
        OpResult::Committed(committed) => Ok(committed),
        other => Err(unexpected(other)),
    }
}

fn unexpected(result: OpResult) -> Error {
    match result {
        OpResult::Failed(failure) => failure.into(),
        other => unreachable!("an operation was answered by {other:?}"),
    }
}

/// Waits for the answer to an operation; dropping it tells the driver that nobody waits.
pub(crate) fn wait(database: u64, op: OpId) -> Waiting {
    Waiting { database, op: Some(op) }
}

pub(crate) struct Waiting {
    database: u64,
    op: Option<OpId>,
}

impl Future for Waiting {
    type Output = Result<OpResult, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let op = self.op.expect("polled after it was ready");
        let polled = client::with(self.database, |engine| engine.poll(op, cx.waker()));
        match polled {
            Some(Poll::Pending) => Poll::Pending,
            Some(Poll::Ready(result)) => {
                self.op = None;
                Poll::Ready(Ok(result))
            }
            None => {
                self.op = None;
                Poll::Ready(Err(Failure::Closed.into()))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(op) = self.op {
            client::with(self.database, |engine| engine.forget(op));
        }
    }
}
