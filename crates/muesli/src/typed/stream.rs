//! Rows of a range, one after the other.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use muesli_core::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::byte_range::Range;
use crate::data::codec::{Postcard, RowCodec};
use crate::data::key::Key;
use crate::data::range::KeyRange;
use crate::data::space::TypedSpace;
use crate::error::Error;
use crate::transaction::operation::{Reply, ScanOperation};
use crate::transaction::tx::Tx;

/// So many rows are read at once.
const PAGE: usize = 256;

/// The rows of a [range](TypedSpace::rows), one after the other: by [`next`](Self::next), or as a
/// [`Stream`] to whatever takes those. An error is the last item.
///
/// ```
/// # use muesli::{Db, Error, KeyRange, Options, SpaceOptions};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::open(Options::default().space("s", SpaceOptions::default()))?;
/// let numbers = db.space("s")?.typed::<u32, u64>();
/// db.blocking().transact(async move |tx| {
///     for key in 0..1_000 {
///         numbers.put(tx, &key, &(2 * u64::from(key))).await?;
///     }
///     let mut rows = numbers.rows(tx, KeyRange::of(100..).reverse());
///     let mut sum = 0;
///     while let Some((_, value)) = rows.next().await? {
///         sum += value;
///         if sum > 10_000 {
///             break; // What is not asked for is not read.
///         }
///     }
///     assert_eq!(sum, 1_998 + 1_996 + 1_994 + 1_992 + 1_990 + 1_988);
///     Ok::<_, Error>(())
/// })
/// # }
/// ```
pub struct RowStream<'a, K, V, C = Postcard> {
    space: TypedSpace<K, V, C>,
    tx: &'a Tx,
    /// What is not read yet; `None` at the end.
    rest: Option<Range>,
    reading: Option<PageReading<'a>>,
    page: VecDeque<Row>,
}

impl<K, V, C> fmt::Debug for RowStream<'_, K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowStream").field("rest", &self.rest).finish_non_exhaustive()
    }
}

/// A page that is being read.
struct PageReading<'a> {
    /// What it was read from, and the most rows that it can have.
    rest: Range,
    most: usize,
    reply: Reply<'a, ScanOperation>,
}

impl<'a, K: Key, V: Serialize + DeserializeOwned, C: RowCodec> RowStream<'a, K, V, C> {
    pub(super) fn new(space: TypedSpace<K, V, C>, tx: &'a Tx, range: KeyRange<K>) -> Self {
        RowStream { space, tx, rest: Some(range.encoded), reading: None, page: VecDeque::new() }
    }

    /// The next row; `None` at the end of the range, and after an error.
    ///
    /// # Errors
    /// As [`TypedSpace::range`].
    pub async fn next(&mut self) -> Result<Option<(K, V)>, Error> {
        poll_fn(|cx| self.poll_row(cx)).await.transpose()
    }

    fn poll_row(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(K, V), Error>>> {
        loop {
            if let Some(row) = self.page.pop_front() {
                let row = self.space.decode_row(self.tx, &row);
                if row.is_err() {
                    self.page.clear();
                    self.rest = None;
                }
                return Poll::Ready(Some(row));
            }
            if self.reading.is_none() {
                let Some(rest) = self.rest.take() else { return Poll::Ready(None) };
                let most = rest.limit.min(PAGE);
                let reply = self.tx.scan(self.space.raw(), rest.clone().limit(most));
                self.reading = Some(PageReading { rest, most, reply });
            }
            let reading = self.reading.as_mut().expect("begun above");
            let Poll::Ready(read) = Pin::new(&mut reading.reply).poll(cx) else {
                return Poll::Pending;
            };
            let PageReading { rest, most, .. } = self.reading.take().expect("looked at above");
            match read {
                Ok(rows) => self.take_page(rows, rest, most),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    fn take_page(&mut self, rows: Vec<Row>, mut rest: Range, most: usize) {
        rest.limit -= rows.len();
        let is_full = rows.len() == most && rest.limit > 0;
        self.page.extend(rows);
        if let Some((last, _)) = self.page.back().filter(|_| is_full) {
            match rest.reverse {
                false => rest.lo = last.successor(),
                true => rest.hi = Some(last.clone()),
            }
            self.rest = Some(rest);
        }
    }
}

impl<K: Key, V: Serialize + DeserializeOwned, C: RowCodec> Stream for RowStream<'_, K, V, C> {
    type Item = Result<(K, V), Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_row(cx)
    }

    /// The rows that are here already; a page that is not read yet may have any number.
    fn size_hint(&self) -> (usize, Option<usize>) {
        let here = self.page.len();
        (0, (self.rest.is_none() && self.reading.is_none()).then_some(here))
    }
}
