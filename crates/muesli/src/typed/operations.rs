//! Reads and writes of typed keys, in a transaction.

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::stream::RowStream;
use crate::data::codec::RowCodec;
use crate::data::key::{AsKey, Key, encoded};
use crate::data::range::KeyRange;
use crate::data::space::TypedSpace;
use crate::error::Error;
use crate::transaction::tx::Tx;

impl<K: Key, V: Serialize + DeserializeOwned, C: RowCodec> TypedSpace<K, V, C> {
    /// Reads a key.
    ///
    /// # Errors
    /// As [`Tx::get`], and [`Error::Codec`] where the value is of another type.
    pub async fn get<Q: AsKey<K> + ?Sized>(&self, tx: &Tx, key: &Q) -> Result<Option<V>, Error> {
        let Some(value) = tx.get(self.raw(), encoded(key)).await? else { return Ok(None) };
        let codec_error = |why: String| self.unreadable::<V>(tx, &encoded(key), &why);
        C::decode(value.as_slice()).map(Some).map_err(codec_error)
    }

    /// Reads several keys at once.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_many<Q: AsKey<K>>(
        &self,
        tx: &Tx,
        keys: &[Q],
    ) -> Result<Vec<Option<V>>, Error> {
        let values = tx.get_many(self.raw(), keys.iter().map(encoded::<K, Q>)).await?;
        let decoded = keys.iter().zip(values).map(|(key, value)| {
            let codec_error = |why: String| self.unreadable::<V>(tx, &encoded(key), &why);
            value.map(|value| C::decode(value.as_slice()).map_err(codec_error)).transpose()
        });
        decoded.collect()
    }

    /// Writes a key.
    ///
    /// # Errors
    /// As [`Tx::put`], and [`Error::Codec`] where the value cannot be serialized.
    pub async fn put<Q: AsKey<K> + ?Sized>(
        &self,
        tx: &Tx,
        key: &Q,
        value: &V,
    ) -> Result<(), Error> {
        let stored = C::encode(value).map_err(|why| {
            let (name, of) = (self.name(tx), type_name::<V>());
            let key = encoded(key);
            Error::Codec(format!(
                "space `{name}`, key `{key:?}`: this `{of}` cannot be stored: {why}"
            ))
        })?;
        tx.put(self.raw(), encoded(key), stored).await
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`Tx::delete`].
    pub async fn delete<Q: AsKey<K> + ?Sized>(&self, tx: &Tx, key: &Q) -> Result<(), Error> {
        tx.delete(self.raw(), encoded(key)).await
    }

    /// Reads a range of keys in order, all at once; [`rows`](Self::rows) reads it piece by piece.
    ///
    /// # Errors
    /// As [`Tx::scan`], and [`Error::Codec`].
    pub async fn range(&self, tx: &Tx, range: KeyRange<K>) -> Result<Vec<(K, V)>, Error> {
        let rows = tx.scan(self.raw(), range.encoded).await?;
        rows.iter().map(|row| self.decode_row(tx, row)).collect()
    }

    /// Reads a range of keys in order, as a stream of rows that never holds more than a page: the
    /// next page is read when it is asked for.
    pub fn rows<'a>(&self, tx: &'a Tx, range: KeyRange<K>) -> RowStream<'a, K, V, C> {
        RowStream::new(*self, tx, range)
    }
}
