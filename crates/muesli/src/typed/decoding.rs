//! Stored rows as values of their types, and errors that name what cannot be read.

use std::any::type_name;

use muesli_core::{Row, SmallBytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::codec::RowCodec;
use crate::data::key::Key;
use crate::data::space::TypedSpace;
use crate::error::Error;
use crate::transaction::tx::Tx;

impl<K: Key, V: Serialize + DeserializeOwned, C: RowCodec> TypedSpace<K, V, C> {
    /// A row as it was found.
    pub(super) fn decode_row(&self, tx: &Tx, (key, value): &Row) -> Result<(K, V), Error> {
        let own = K::decoded(key.as_slice());
        let own = own.map_err(|error| self.unreadable::<K>(tx, key, &error.to_string()))?;
        let codec_error = |why: String| self.unreadable::<V>(tx, key, &why);
        Ok((own, C::decode(value.as_slice()).map_err(codec_error)?))
    }

    #[cold]
    pub(super) fn unreadable<T>(&self, tx: &Tx, key: &SmallBytes, why: &str) -> Error {
        let (name, of) = (self.name(tx), type_name::<T>());
        let codec = C::NAME;
        Error::Codec(format!("space `{name}`, key `{key:?}`: this is no `{of}` ({codec}): {why}"))
    }

    /// The space's name, for errors.
    pub(super) fn name(&self, tx: &Tx) -> String {
        let id = self.raw().id;
        let spaces = tx.catalog().map(|catalog| catalog.spaces().to_vec()).unwrap_or_default();
        let space = spaces.get(usize::from(id.0));
        space.map_or_else(|| format!("number {}", id.0), |space| space.name.clone())
    }
}
