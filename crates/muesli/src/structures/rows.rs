//! The rows of one structure: its head, and a row for each key.
//!
//! A row's key is the structure's name, encoded so that no name is the beginning of another's
//! ([`Key`] for strings), a byte that tells the head from the others, and the encoded key. Its
//! value is the structure's [`StructureShape`] and what the structure keeps there.

use std::fmt;
use std::sync::Arc;

use muesli_core::SmallBytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data::byte_range::Range;
use crate::data::key::Key;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// An encoded key that leads to the row of that key, or nowhere.
pub(super) type Link = Option<Vec<u8>>;

const HEAD: u8 = 0;
const NODE: u8 = 1;

/// What a structure is. Each of its rows says so, and a row of another shape is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StructureShape {
    SkipList {
        levels: u8,
    },
    SearchTree,
    HashTable {
        buckets: u32,
    },
    /// Its row is a number as actions store it, and says nothing.
    Counter,
    Queue,
    Semaphore,
    WorkList,
}

impl fmt::Display for StructureShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StructureShape::SkipList { levels: 1 } => write!(f, "a linked list"),
            StructureShape::SkipList { levels } => write!(f, "a skip list of {levels} levels"),
            StructureShape::SearchTree => write!(f, "a search tree"),
            StructureShape::HashTable { buckets } => write!(f, "a hash table of {buckets} buckets"),
            StructureShape::Counter => write!(f, "a counter"),
            StructureShape::Queue => write!(f, "a queue"),
            StructureShape::Semaphore => write!(f, "a semaphore"),
            StructureShape::WorkList => write!(f, "a work list"),
        }
    }
}

/// Where the rows of a structure lie.
#[derive(Clone, Debug)]
pub(super) struct StructureRows {
    space: Space,
    shape: StructureShape,
    name: Arc<str>,
    prefix: Arc<[u8]>,
}

impl StructureRows {
    pub fn new(space: Space, name: &str, shape: StructureShape) -> StructureRows {
        let mut prefix = Vec::new();
        name.to_owned().encode(&mut prefix);
        StructureRows { space, shape, name: name.into(), prefix: prefix.into() }
    }

    pub fn space(&self) -> Space {
        self.space
    }

    /// The key of the head.
    pub fn head(&self) -> SmallBytes {
        [&*self.prefix, &[HEAD]].concat().into()
    }

    fn node(&self, link: &[u8]) -> SmallBytes {
        [&*self.prefix, &[NODE], link].concat().into()
    }

    /// The head, where it was ever written.
    pub async fn read_head<T: DeserializeOwned>(&self, tx: &Tx) -> Result<Option<T>, Error> {
        let value = tx.get(self.space, self.head()).await?;
        value.map(|value| self.decode(&value)).transpose()
    }

    pub async fn write_head<T: Serialize>(&self, tx: &Tx, head: &T) -> Result<(), Error> {
        tx.put(self.space, self.head(), self.encode(head)?).await
    }

    /// The row of a key.
    pub async fn read<T: DeserializeOwned>(&self, tx: &Tx, key: &[u8]) -> Result<Option<T>, Error> {
        let value = tx.get(self.space, self.node(key)).await?;
        value.map(|value| self.decode(&value)).transpose()
    }

    /// The rows of several keys.
    pub async fn read_many<T: DeserializeOwned>(
        &self,
        tx: &Tx,
        keys: impl Iterator<Item = Vec<u8>>,
    ) -> Result<Vec<Option<T>>, Error> {
        let values = tx.get_many(self.space, keys.map(|key| self.node(&key))).await?;
        values.into_iter().map(|value| value.map(|value| self.decode(&value)).transpose()).collect()
    }

    /// The row that a link leads to.
    pub async fn follow<T: DeserializeOwned>(&self, tx: &Tx, link: &[u8]) -> Result<T, Error> {
        let row = self.read(tx, link).await?;
        row.ok_or_else(|| self.broken("a link leads nowhere"))
    }

    pub async fn write<T: Serialize>(&self, tx: &Tx, key: &[u8], row: &T) -> Result<(), Error> {
        tx.put(self.space, self.node(key), self.encode(row)?).await
    }

    pub async fn delete(&self, tx: &Tx, key: &[u8]) -> Result<(), Error> {
        tx.delete(self.space, self.node(key)).await
    }

    /// All rows but the head, in the order of their keys.
    pub async fn scan<T: DeserializeOwned>(&self, tx: &Tx) -> Result<Vec<(Vec<u8>, T)>, Error> {
        let prefix = self.node(&[]);
        let rows = tx.scan(self.space, Range::prefix(&prefix)).await?;
        let cut = |key: &SmallBytes| key.as_slice()[prefix.len()..].to_vec();
        rows.iter().map(|(key, value)| Ok((cut(key), self.decode(value)?))).collect()
    }

    /// Rows that the structure cannot have written.
    #[cold]
    pub fn broken(&self, what: &str) -> Error {
        Error::Codec(format!("structure `{}`: {what}", self.name))
    }

    fn encode<T: Serialize>(&self, row: &T) -> Result<Vec<u8>, Error> {
        postcard::to_stdvec(&(self.shape, row)).map_err(|error| self.broken(&error.to_string()))
    }

    fn decode<T: DeserializeOwned>(&self, value: &SmallBytes) -> Result<T, Error> {
        let unreadable = |error: postcard::Error| self.broken(&error.to_string());
        let (shape, row) = postcard::take_from_bytes(value.as_slice()).map_err(unreadable)?;
        if shape != self.shape {
            let (found, opened): (StructureShape, StructureShape) = (shape, self.shape);
            return Err(self.broken(&format!("it is {found}, and was opened as {opened}")));
        }
        postcard::from_bytes(row).map_err(unreadable)
    }
}

/// A hash that is stored, in a way: it decides where things lie, so it must never change. FNV-1a
/// with a finisher, because its low bits are used.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_data_were_laid_out_by() {
        assert_eq!([hash(b""), hash(b"key")], [0xefd0_1f60_ba99_2926, 0xcf8c_7983_8f3b_3030]);
    }
}
