//! Rows of a range, one after the other.

use std::collections::VecDeque;
use std::fmt;

use muesli_core::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::codec::{Postcard, RowCodec};
use crate::data::key::Key;
use crate::data::range::KeyRange;
use crate::data::space::TypedSpace;
use crate::error::Error;
use crate::transaction::tx::{Range, Tx};

/// So many rows are read at once.
const PAGE: usize = 256;

/// The rows of a [range](TypedSpace::rows), one after the other.
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
    page: VecDeque<Row>,
}

impl<K, V, C> fmt::Debug for RowStream<'_, K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowStream").field("rest", &self.rest).finish_non_exhaustive()
    }
}

impl<'a, K: Key, V: Serialize + DeserializeOwned, C: RowCodec> RowStream<'a, K, V, C> {
    pub(super) fn new(space: TypedSpace<K, V, C>, tx: &'a Tx, range: KeyRange<K>) -> Self {
        RowStream { space, tx, rest: Some(range.encoded), page: VecDeque::new() }
    }

    /// The next row; `None` at the end of the range.
    ///
    /// # Errors
    /// As [`TypedSpace::range`].
    pub async fn next(&mut self) -> Result<Option<(K, V)>, Error> {
        if self.page.is_empty()
            && let Some(rest) = self.rest.take()
        {
            self.read_page(rest).await?;
        }
        self.page.pop_front().map(|row| self.space.decode_row(self.tx, &row)).transpose()
    }

    async fn read_page(&mut self, mut rest: Range) -> Result<(), Error> {
        let most = rest.limit.min(PAGE);
        let rows = self.tx.scan(self.space.raw(), rest.clone().limit(most)).await?;
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
        Ok(())
    }
}
