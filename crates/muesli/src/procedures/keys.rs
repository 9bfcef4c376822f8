//! The keys of a repository, as a stored procedure reads and writes them.

use std::fmt;

use muesli_core::{Row, Scan, SmallBytes, Stop, Store};
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned};

use super::bounded;
use crate::data::byte_range::Range;
use crate::data::key::{AsKey, Key};
use crate::data::range::KeyRange;
use crate::data::space::{Space, TypedSpace};
use crate::error::Error;

/// What a procedure sees: the keys that live at its repository, and its own writes.
///
/// Each error is to be handed on with `?`: it says that the procedure did what it may not, or too
/// much, and its transaction ends there whether it is handed on or not.
pub struct Keys<'a> {
    store: &'a mut dyn Store,
    /// Where keys and values are encoded, one after the other.
    scratch: Vec<u8>,
}

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// What is wrong with stored bytes or arguments.
fn faulty(error: impl fmt::Display) -> Stop {
    Stop::Faulty(error.to_string())
}

fn undecodable(error: postcard::Error) -> Stop {
    faulty(Error::Codec(error.to_string()))
}

impl<'a> Keys<'a> {
    /// The keys of a store.
    pub fn new(store: &'a mut dyn Store) -> Keys<'a> {
        Keys { store, scratch: Vec::with_capacity(128) }
    }

    /// The space called `name`. A procedure that is called very often can be given its [`Space`]s
    /// among its arguments instead, where they travel as numbers.
    ///
    /// # Errors
    /// There is none.
    pub fn space(&self, name: &str) -> Result<Space, Stop> {
        self.store.space(name).map(Space::numbered)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// It lives elsewhere or was not declared, or too much was done.
    pub fn get(&mut self, space: Space, key: &SmallBytes) -> Result<Option<SmallBytes>, Stop> {
        self.store.get(space.id, key)
    }

    /// What a key had before the transaction that some procedure of the call
    /// [shares](super::StoredProcedure::SHARES), wherever it lives. `None`: nobody tells, as the
    /// repositories of this call vote; whoever holds the key looks for itself and may refuse.
    ///
    /// # Errors
    /// Nobody declared that it is told, or too much was done.
    pub fn shared(
        &mut self,
        space: Space,
        key: &SmallBytes,
    ) -> Result<Option<Option<SmallBytes>>, Stop> {
        self.store.shared(space.id, key)
    }

    /// Writes a key.
    ///
    /// # Errors
    /// As [`get`](Self::get); a limit of sizes; or the procedure was declared to read only.
    pub fn put(
        &mut self,
        space: Space,
        key: impl Into<SmallBytes>,
        value: impl Into<SmallBytes>,
    ) -> Result<(), Stop> {
        self.store.put(space.id, key.into(), Some(value.into()))
    }

    /// Deletes a key; nothing happens where it is absent.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, space: Space, key: impl Into<SmallBytes>) -> Result<(), Stop> {
        self.store.put(space.id, key.into(), None)
    }

    /// The keys of a range that live here, in order.
    ///
    /// # Errors
    /// As [`get`](Self::get), or the space has no order.
    pub fn scan(&mut self, space: Space, range: Range) -> Result<Vec<Row>, Stop> {
        let Range { lo, hi, reverse, limit } = range;
        self.store.scan(&Scan { space: space.id, lo, hi, reverse, limit })
    }

    /// Reads a typed key.
    ///
    /// # Errors
    /// As [`get`](Self::get), or the stored bytes are no such value.
    pub fn read<K: Key, V: Serialize + DeserializeOwned>(
        &mut self,
        space: TypedSpace<K, V>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<V>, Stop> {
        let key = self.encoded(key);
        self.get(space.raw(), &key)?.map(|value| Self::decode(&value)).transpose()
    }

    /// Writes a typed key.
    ///
    /// # Errors
    /// As [`put`](Self::put), or the value cannot be serialized.
    pub fn write<K: Key, V: Serialize + DeserializeOwned>(
        &mut self,
        space: TypedSpace<K, V>,
        key: &(impl AsKey<K> + ?Sized),
        value: &V,
    ) -> Result<(), Stop> {
        let key = self.encoded(key);
        let value = self.encode(value)?;
        self.put(space.raw(), key, value)
    }

    /// Deletes a typed key.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn remove<K: Key, V: Serialize + DeserializeOwned>(
        &mut self,
        space: TypedSpace<K, V>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<(), Stop> {
        let key = self.encoded(key);
        self.delete(space.raw(), key)
    }

    /// The rows of a range, typed.
    ///
    /// # Errors
    /// As [`scan`](Self::scan), or a row is of other types.
    pub fn rows<K: Key, V: Serialize + DeserializeOwned>(
        &mut self,
        space: TypedSpace<K, V>,
        range: KeyRange<K>,
    ) -> Result<Vec<(K, V)>, Stop> {
        let rows = self.scan(space.raw(), range.encoded)?;
        let typed = |(key, value): &Row| -> Result<(K, V), Stop> {
            Ok((K::decoded(key.as_slice()).map_err(faulty)?, Self::decode(value)?))
        };
        rows.iter().map(typed).collect()
    }

    /// A key as it is stored, encoded without memory of its own where it is short.
    #[inline]
    pub fn encoded<K, Q: AsKey<K> + ?Sized>(&mut self, key: &Q) -> SmallBytes {
        self.scratch.clear();
        key.encode_key(&mut self.scratch);
        SmallBytes::new(&self.scratch)
    }

    /// A value as it is stored.
    ///
    /// # Errors
    /// It cannot be serialized, or is longer than a value may be.
    #[inline]
    pub fn encode<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<SmallBytes, Stop> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        self.scratch = bounded::encode(value, scratch, self.store.value_bytes_max())?;
        Ok(SmallBytes::new(&self.scratch))
    }

    /// A value as it is stored whose first fields are `first`, and whose other ones follow as they
    /// were [found](Self::decode_first).
    ///
    /// # Errors
    /// It cannot be serialized, or its first fields are longer than a value may be.
    pub fn encode_before<V: Serialize>(
        &mut self,
        first: &V,
        rest: &[u8],
    ) -> Result<SmallBytes, Stop> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        self.scratch = bounded::encode(first, scratch, self.store.value_bytes_max())?;
        self.scratch.extend_from_slice(rest);
        Ok(SmallBytes::new(&self.scratch))
    }

    /// The first fields of a stored value, and the bytes of the other ones: a row whose first
    /// fields change often need not be taken apart for that.
    ///
    /// # Errors
    /// The bytes do not begin so.
    pub fn decode_first<'b, V: Deserialize<'b>>(
        value: &'b SmallBytes,
    ) -> Result<(V, &'b [u8]), Stop> {
        postcard::take_from_bytes(value.as_slice()).map_err(undecodable)
    }

    /// A stored value; it may borrow from the bytes, so that long parts of it are not copied.
    ///
    /// # Errors
    /// The bytes are no such value.
    #[inline]
    pub fn decode<'b, V: Deserialize<'b>>(value: &'b SmallBytes) -> Result<V, Stop> {
        postcard::from_bytes(value.as_slice()).map_err(undecodable)
    }
}
