//! Spaces: named sets of keys, raw or typed.

use std::any::type_name;
use std::marker::PhantomData;

use muesli_core::{Place, Row, SmallBytes, SpaceId};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::data::codec::{Named, Postcard, RowCodec};
use crate::data::key::{AsKey, Key, encoded};
use crate::data::range::KeyRange;
use crate::data::stream::RowStream;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// A space of raw byte strings. It is of one database, and the transactions of another one refuse
/// it ([`Error::OtherDatabase`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    pub(crate) id: SpaceId,
    pub(crate) origin: Origin,
}

/// The database that a space is of, in half a word: embedded and simulated ones by their number in
/// the process, a cluster by its own, as several connections to it share its spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin(u32);

impl Origin {
    /// Not known: of a space that came as an argument, which travels by its number.
    pub const UNKNOWN: Origin = Origin(0);
    const CLUSTER: u32 = 1 << 31;

    /// A database of this process, by its number.
    pub fn process(database: u64) -> Origin {
        Origin(database as u32 & !Origin::CLUSTER)
    }

    /// A cluster, by its number.
    #[cfg(feature = "cluster")]
    pub fn cluster(number: u64) -> Origin {
        Origin((number ^ number >> 31) as u32 | Origin::CLUSTER)
    }

    /// Whether a transaction of this database may use a space of that one.
    #[inline]
    pub fn admits(self, space: Origin) -> bool {
        space == self || space == Origin::UNKNOWN
    }
}

impl Space {
    /// A space of which only the number is known.
    pub(crate) fn numbered(id: SpaceId) -> Space {
        Space { id, origin: Origin::UNKNOWN }
    }

    /// Its number in the catalog.
    pub fn id(self) -> SpaceId {
        self.id
    }

    /// Where a key lives, as a place for a fragment of a one-round transaction.
    pub fn place(self, key: impl Into<SmallBytes>) -> Place {
        Place::Key(self.id, key.into())
    }

    /// The same space, with keys and values of these types; values are stored by [`Postcard`].
    pub fn typed<K: Key, V: Serialize + DeserializeOwned>(self) -> TypedSpace<K, V> {
        self.coded()
    }

    /// The same with rows that carry the names of their fields ([`Named`]): their type may change.
    ///
    /// ```
    /// # use muesli::{Db, Error, Options, SpaceOptions};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Person {
    ///     age: u32,
    /// }
    ///
    /// /// A later version of the program.
    /// #[derive(Debug, PartialEq, Serialize, Deserialize)]
    /// struct PersonNow {
    ///     age: u32,
    ///     #[serde(default)]
    ///     town: Option<String>,
    /// }
    ///
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::open(Options::default().space("people", SpaceOptions::default()))?;
    /// let (people, people_now) = (db.space("people")?, db.space("people")?);
    /// let (people, people_now) = (people.named::<String, Person>(), people_now.named());
    /// db.blocking().transact(async move |tx| {
    ///     people.put(tx, "ann", &Person { age: 30 }).await?;
    ///     let ann: Option<PersonNow> = people_now.get::<str>(tx, "ann").await?;
    ///     assert_eq!(ann, Some(PersonNow { age: 30, town: None }));
    ///     Ok::<_, Error>(())
    /// })
    /// # }
    /// ```
    pub fn named<K: Key, V: Serialize + DeserializeOwned>(self) -> TypedSpace<K, V, Named> {
        self.coded()
    }

    /// The same with values that a codec of one's own stores.
    pub fn coded<K: Key, V, C: RowCodec>(self) -> TypedSpace<K, V, C> {
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
        u16::deserialize(deserializer).map(|number| Space::numbered(SpaceId(number)))
    }
}

/// A space whose keys are encoded so that their order is kept ([`Key`]), and whose values are
/// stored by a codec: [`Postcard`], unless told otherwise.
#[derive(Debug)]
pub struct TypedSpace<K, V, C = Postcard> {
    space: Space,
    types: PhantomData<fn(K, C) -> V>,
}

impl<K, V, C> Clone for TypedSpace<K, V, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, C> Copy for TypedSpace<K, V, C> {}

/// As its [`Space`].
impl<K, V, C> Serialize for TypedSpace<K, V, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.space.serialize(serializer)
    }
}

impl<'de, K, V, C> Deserialize<'de> for TypedSpace<K, V, C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Space::deserialize(deserializer).map(|space| TypedSpace { space, types: PhantomData })
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> TypedSpace<K, V> {
    /// A value as it is stored.
    ///
    /// # Errors
    /// [`Error::Codec`] where it cannot be serialized.
    pub fn encode(value: &V) -> Result<SmallBytes, Error> {
        Postcard::encode(value).map(Into::into).map_err(Error::Codec)
    }
}

impl<K: Key, V: Serialize + DeserializeOwned, C: RowCodec> TypedSpace<K, V, C> {
    /// The space of raw bytes underneath.
    pub fn raw(&self) -> Space {
        self.space
    }

    /// Where a key lives, as a place for a fragment of a one-round transaction.
    pub fn place<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Place {
        self.space.place(encoded(key))
    }

    /// Reads a key.
    ///
    /// # Errors
    /// As [`Tx::get`], and [`Error::Codec`] where the value is of another type.
    pub async fn get<Q: AsKey<K> + ?Sized>(&self, tx: &Tx, key: &Q) -> Result<Option<V>, Error> {
        let Some(value) = tx.get(self.space, encoded(key)).await? else { return Ok(None) };
        let told = |why: String| self.unreadable::<V>(tx, &encoded(key), &why);
        C::decode(value.as_slice()).map(Some).map_err(told)
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
        let values = tx.get_many(self.space, keys.iter().map(encoded::<K, Q>)).await?;
        let decoded = keys.iter().zip(values).map(|(key, value)| {
            let told = |why: String| self.unreadable::<V>(tx, &encoded(key), &why);
            value.map(|value| C::decode(value.as_slice()).map_err(told)).transpose()
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
        tx.put(self.space, encoded(key), stored).await
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`Tx::delete`].
    pub async fn delete<Q: AsKey<K> + ?Sized>(&self, tx: &Tx, key: &Q) -> Result<(), Error> {
        tx.delete(self.space, encoded(key)).await
    }

    /// Reads a range of keys in order, all at once; [`rows`](Self::rows) reads it piece by piece.
    ///
    /// # Errors
    /// As [`Tx::scan`], and [`Error::Codec`].
    pub async fn range(&self, tx: &Tx, range: KeyRange<K>) -> Result<Vec<(K, V)>, Error> {
        let rows = tx.scan(self.space, range.encoded).await?;
        rows.iter().map(|row| self.decode_row(tx, row)).collect()
    }

    /// Reads a range of keys in order, as a stream of rows that never holds more than a page: the
    /// next page is read when it is asked for.
    pub fn rows<'a>(&self, tx: &'a Tx, range: KeyRange<K>) -> RowStream<'a, K, V, C> {
        RowStream::new(*self, tx, range)
    }

    /// A row as it was found.
    pub(super) fn decode_row(&self, tx: &Tx, (key, value): &Row) -> Result<(K, V), Error> {
        let own = K::decoded(key.as_slice());
        let own = own.map_err(|error| self.unreadable::<K>(tx, key, &error.to_string()))?;
        let told = |why: String| self.unreadable::<V>(tx, key, &why);
        Ok((own, C::decode(value.as_slice()).map_err(told)?))
    }

    #[cold]
    fn unreadable<T>(&self, tx: &Tx, key: &SmallBytes, why: &str) -> Error {
        let (name, of) = (self.name(tx), type_name::<T>());
        let codec = C::NAME;
        Error::Codec(format!("space `{name}`, key `{key:?}`: this is no `{of}` ({codec}): {why}"))
    }

    /// The space's name, for errors.
    fn name(&self, tx: &Tx) -> String {
        let id = self.space.id;
        let spaces = tx.catalog().map(|catalog| catalog.spaces().to_vec()).unwrap_or_default();
        let space = spaces.get(usize::from(id.0));
        space.map_or_else(|| format!("number {}", id.0), |space| space.name.clone())
    }
}
