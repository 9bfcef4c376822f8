//! A hash table with a fixed number of buckets, each a row.
//!
//! The head says how many there are, and so does each row: whoever uses another number is told.
//! Few buckets are hot and long, many are hardly ever in each other's way.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::rows::{StructureRows, StructureShape, hash};
use super::{Inspected, KeyedMap, handle};
use crate::data::key::Key;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// A map in which keys share rows: an operation reads one row and writes at most that one.
pub struct HashTable<K, V> {
    rows: StructureRows,
    buckets: u32,
    types: PhantomData<fn(K) -> V>,
}

handle!(HashTable);

/// The entries of a bucket, in the order of their encoded keys.
type Bucket<V> = Vec<(Vec<u8>, V)>;

/// What a search has found.
struct FoundEntry<V> {
    bucket: Bucket<V>,
    /// Where in the bucket the key is, or would be.
    place: Result<usize, usize>,
    /// The table is empty: there is no head.
    is_first: bool,
}

impl<K, V> HashTable<K, V> {
    /// The table of this name, with so many buckets, at least 1; empty where nothing was
    /// inserted. Everybody must use the same number, which is stored: with another one, operations
    /// end in [`Error::Codec`].
    pub fn new(space: Space, name: &str, buckets: u32) -> Self {
        let buckets = buckets.max(1);
        let rows = StructureRows::new(space, name, StructureShape::HashTable { buckets });
        HashTable { rows, buckets, types: PhantomData }
    }

    fn bucket_of(&self, key: &[u8]) -> u32 {
        (hash(key) % u64::from(self.buckets)) as u32
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> HashTable<K, V> {
    /// The bucket of a key, and where in it the key is or would be. Where there is no such bucket,
    /// the head tells whether another number of them was used.
    async fn find(&self, tx: &Tx, key: &[u8]) -> Result<FoundEntry<V>, Error> {
        let number = self.bucket_of(key).to_be_bytes();
        let Some(bucket) = self.rows.read::<Bucket<V>>(tx, &number).await? else {
            let is_first = self.rows.read_head::<()>(tx).await?.is_none();
            return Ok(FoundEntry { bucket: Bucket::new(), place: Err(0), is_first });
        };
        let place = bucket.binary_search_by(|(own, _)| own.as_slice().cmp(key));
        Ok(FoundEntry { bucket, place, is_first: false })
    }

    /// Puts a key that is not there into its bucket. The first one of all writes the head.
    async fn put_new(
        &self,
        tx: &Tx,
        key: &[u8],
        found: FoundEntry<V>,
        value: V,
    ) -> Result<(), Error> {
        let FoundEntry { mut bucket, place: Ok(place) | Err(place), is_first } = found;
        if is_first {
            self.rows.write_head(tx, &()).await?;
        }
        bucket.insert(place, (key.to_vec(), value));
        self.store(tx, key, &bucket).await
    }

    async fn store(&self, tx: &Tx, key: &[u8], bucket: &Bucket<V>) -> Result<(), Error> {
        let number = self.bucket_of(key).to_be_bytes();
        if bucket.is_empty() {
            return self.rows.delete(tx, &number).await;
        }
        self.rows.write(tx, &number, bucket).await
    }

    fn decode(bucket: Bucket<V>) -> impl Iterator<Item = Result<(K, V), Error>> {
        bucket.into_iter().map(|(key, value)| Ok((K::decoded(&key)?, value)))
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> KeyedMap<K, V> for HashTable<K, V> {
    async fn get(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let FoundEntry { mut bucket, place, .. } = self.find(tx, key.encoded().as_slice()).await?;
        Ok(place.ok().map(|place| bucket.swap_remove(place).1))
    }

    async fn put(&self, tx: &Tx, key: &K, value: &V, replaced: bool) -> Result<Option<V>, Error> {
        let key = key.encoded();
        let mut found = self.find(tx, key.as_slice()).await?;
        let Ok(place) = found.place else {
            self.put_new(tx, key.as_slice(), found, value.clone()).await?;
            return Ok(None);
        };
        let bucket = &mut found.bucket;
        if !replaced {
            return Ok(Some(bucket.swap_remove(place).1));
        }
        let old = std::mem::replace(&mut bucket[place].1, value.clone());
        self.store(tx, key.as_slice(), bucket).await?;
        Ok(Some(old))
    }

    async fn remove(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let key = key.encoded();
        let FoundEntry { mut bucket, place, .. } = self.find(tx, key.as_slice()).await?;
        let Ok(place) = place else { return Ok(None) };
        let (_, old) = bucket.remove(place);
        self.store(tx, key.as_slice(), &bucket).await?;
        Ok(Some(old))
    }

    async fn entries(&self, tx: &Tx) -> Result<Vec<(K, V)>, Error> {
        self.rows.read_head::<()>(tx).await?;
        let numbers = (0..self.buckets).map(|number| number.to_be_bytes().to_vec());
        let buckets = self.rows.read_many::<Bucket<V>>(tx, numbers).await?;
        buckets.into_iter().flatten().flat_map(Self::decode).collect()
    }

    async fn inspect(&self, tx: &Tx) -> Result<Inspected<K, V>, Error> {
        let (mut entries, mut wrong) = (Vec::new(), Vec::new());
        let has_head = self.rows.read_head::<()>(tx).await?.is_some();
        for (number, bucket) in self.rows.scan::<Bucket<V>>(tx).await? {
            let belongs = |key: &[u8]| self.bucket_of(key).to_be_bytes() == number.as_slice();
            for (key, _) in bucket.iter().filter(|(key, _)| !belongs(key)) {
                wrong.push(format!("key {key:x?} is in bucket {number:x?}"));
            }
            if !bucket.is_sorted_by(|(a, _), (b, _)| a < b) {
                wrong.push(format!("bucket {number:x?} is out of order"));
            }
            if bucket.is_empty() {
                wrong.push(format!("bucket {number:x?} is empty and there"));
            }
            for entry in Self::decode(bucket) {
                entries.push(entry?);
            }
        }
        if !has_head && !entries.is_empty() {
            wrong.push("there are entries and no head".to_owned());
        }
        Ok(Inspected { entries, wrong })
    }
}
