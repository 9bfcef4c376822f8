//! Spaces: named sets of keys, raw or typed.

use std::marker::PhantomData;

use muesli_core::{Place, SmallBytes, SpaceId};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::data::key::Key;
use crate::error::Error;
use crate::transaction::tx::{Range, Tx};

/// A space of raw byte strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    pub(crate) id: SpaceId,
}

impl Space {
    /// Its number in the catalog.
    pub fn id(self) -> SpaceId {
        self.id
    }

    /// Where a key lives, as a place for a fragment of a one-round transaction.
    pub fn place(self, key: impl Into<SmallBytes>) -> Place {
        Place::Key(self.id, key.into())
    }

    /// The same space, with keys and values of these types.
    pub fn typed<K: Key, V: Serialize + DeserializeOwned>(self) -> TypedSpace<K, V> {
        TypedSpace { space: self, types: PhantomData }
    }
}

/// By its number, which is the same at every node: so spaces are arguments of procedures.
impl Serialize for Space {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.id.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Space {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Space, D::Error> {
        u16::deserialize(deserializer).map(|number| Space { id: SpaceId(number) })
    }
}

/// A space whose keys are encoded so that their order is kept ([`Key`]), and whose values by
/// serde (the postcard format).
#[derive(Debug)]
pub struct TypedSpace<K, V> {
    space: Space,
    types: PhantomData<fn(K) -> V>,
}

impl<K, V> Clone for TypedSpace<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for TypedSpace<K, V> {}

/// As its [`Space`].
impl<K, V> Serialize for TypedSpace<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.space.serialize(serializer)
    }
}

impl<'de, K, V> Deserialize<'de> for TypedSpace<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TypedSpace<K, V>, D::Error> {
        Space::deserialize(deserializer).map(|space| TypedSpace { space, types: PhantomData })
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> TypedSpace<K, V> {
    /// The space of raw bytes underneath.
    pub fn raw(&self) -> Space {
        self.space
    }

    /// Where a key lives, as a place for a fragment of a one-round transaction.
    pub fn place(&self, key: &K) -> Place {
        self.space.place(key.encoded())
    }

    /// Reads a key.
    ///
    /// # Errors
    /// As [`Tx::get`], and [`Error::Codec`].
    pub async fn get(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let value = tx.get(self.space, key.encoded()).await?;
        value.map(|value| self.decode(&key.encoded(), &value)).transpose()
    }

    /// Reads several keys at once.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_many(&self, tx: &Tx, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        let values = tx.get_many(self.space, keys.iter().map(Key::encoded)).await?;
        let decoded = |(key, value): (&K, Option<SmallBytes>)| {
            value.map(|value| self.decode(&key.encoded(), &value)).transpose()
        };
        keys.iter().zip(values).map(decoded).collect()
    }

    /// Writes a key.
    ///
    /// # Errors
    /// As [`Tx::put`], and [`Error::Codec`] where the value cannot be serialized.
    pub async fn put(&self, tx: &Tx, key: &K, value: &V) -> Result<(), Error> {
        tx.put(self.space, key.encoded(), Self::encode(value)?).await
    }

    /// A value as it is stored.
    ///
    /// # Errors
    /// [`Error::Codec`] where it cannot be serialized.
    pub fn encode(value: &V) -> Result<SmallBytes, Error> {
        let bytes = postcard::to_stdvec(value).map_err(|error| Error::Codec(error.to_string()))?;
        Ok(bytes.into())
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`Tx::delete`].
    pub async fn delete(&self, tx: &Tx, key: &K) -> Result<(), Error> {
        tx.delete(self.space, key.encoded()).await
    }

    /// Reads the keys from `from` (included) to `to` (excluded) in order.
    ///
    /// # Errors
    /// As [`Tx::scan`], and [`Error::Codec`].
    pub async fn range(&self, tx: &Tx, from: &K, to: &K) -> Result<Vec<(K, V)>, Error> {
        self.scan(tx, Range::of(from.encoded()..to.encoded())).await
    }

    /// Reads a range given in encoded keys.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub async fn scan(&self, tx: &Tx, range: Range) -> Result<Vec<(K, V)>, Error> {
        let rows = tx.scan(self.space, range).await?;
        let decoded = |(key, value): &(SmallBytes, SmallBytes)| {
            Ok((self.decode_key(key)?, self.decode(key, value)?))
        };
        rows.iter().map(decoded).collect()
    }

    fn decode(&self, key: &SmallBytes, value: &SmallBytes) -> Result<V, Error> {
        postcard::from_bytes(value.as_slice()).map_err(|error| {
            let (key, type_) = (key.as_slice().escape_ascii(), std::any::type_name::<V>());
            let space = self.space.id.0;
            Error::Codec(format!(
                "the value of key `{key}` of space {space} is no `{type_}`: {error}"
            ))
        })
    }

    fn decode_key(&self, key: &SmallBytes) -> Result<K, Error> {
        K::decoded(key.as_slice()).map_err(|error| {
            let (key, type_) = (key.as_slice().escape_ascii(), std::any::type_name::<K>());
            let space = self.space.id.0;
            Error::Codec(format!("key `{key}` of space {space} is no `{type_}`: {error}"))
        })
    }
}
