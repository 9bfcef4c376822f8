//! Spaces: named sets of keys, raw or typed.

use std::marker::PhantomData;

use muesli_core::{Place, SmallBytes, SpaceId};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::data::codec::{Named, Postcard, RowCodec};
use crate::data::key::{AsKey, Key, encoded};
use crate::error::Error;

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
}
