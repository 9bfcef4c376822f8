//! A hash table with a fixed number of buckets, each a row.
//!
//! Few buckets are hot and long, many are hardly ever in each other's way.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::rows::{Rows, hash};
use super::{Inspected, Map, handle};
use crate::data::key::Key;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// A map in which keys share rows: an operation reads one row and writes at most that one.
pub struct HashTable<K, V> {
    rows: Rows,
    buckets: u32,
    types: PhantomData<fn(K) -> V>,
}

handle!(HashTable);

/// The entries of a bucket, in the order of their encoded keys.
type Bucket<V> = Vec<(Vec<u8>, V)>;

impl<K, V> HashTable<K, V> {
    /// The table of this name, with so many buckets, at least 1; empty where nothing was
    /// inserted. Everybody must use the same number.
    pub fn new(space: Space, name: &str, buckets: u32) -> Self {
        HashTable { rows: Rows::new(space, name), buckets: buckets.max(1), types: PhantomData }
    }

    fn bucket_of(&self, key: &[u8]) -> u32 {
        (hash(key) % u64::from(self.buckets)) as u32
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> HashTable<K, V> {
    /// The bucket of a key, and where in it the key is or would be.
    async fn find(&self, tx: &Tx, key: &[u8]) -> Result<(Bucket<V>, Result<usize, usize>), Error> {
        let number = self.bucket_of(key).to_be_bytes();
        let bucket: Bucket<V> = self.rows.read(tx, &number).await?.unwrap_or_default();
        let place = bucket.binary_search_by(|(own, _)| own.as_slice().cmp(key));
        Ok((bucket, place))
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

impl<K: Key, V: Serialize + DeserializeOwned + Clone> Map<K, V> for HashTable<K, V> {
    async fn get(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let (mut bucket, place) = self.find(tx, key.encoded().as_slice()).await?;
        Ok(place.ok().map(|place| bucket.swap_remove(place).1))
    }

    async fn insert(&self, tx: &Tx, key: &K, value: &V) -> Result<Option<V>, Error> {
        let key = key.encoded();
        let (mut bucket, place) = self.find(tx, key.as_slice()).await?;
        let old = match place {
            Ok(place) => Some(std::mem::replace(&mut bucket[place].1, value.clone())),
            Err(place) => {
                bucket.insert(place, (key.as_slice().to_vec(), value.clone()));
                None
            }
        };
        self.store(tx, key.as_slice(), &bucket).await?;
        Ok(old)
    }

    async fn add(&self, tx: &Tx, key: &K, value: &V) -> Result<bool, Error> {
        let key = key.encoded();
        let (mut bucket, place) = self.find(tx, key.as_slice()).await?;
        let Err(place) = place else { return Ok(false) };
        bucket.insert(place, (key.as_slice().to_vec(), value.clone()));
        self.store(tx, key.as_slice(), &bucket).await?;
        Ok(true)
    }

    async fn remove(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let key = key.encoded();
        let (mut bucket, place) = self.find(tx, key.as_slice()).await?;
        let Ok(place) = place else { return Ok(None) };
        let (_, old) = bucket.remove(place);
        self.store(tx, key.as_slice(), &bucket).await?;
        Ok(Some(old))
    }

    async fn entries(&self, tx: &Tx) -> Result<Vec<(K, V)>, Error> {
        let numbers = (0..self.buckets).map(|number| number.to_be_bytes().to_vec());
        let buckets = self.rows.read_many::<Bucket<V>>(tx, numbers).await?;
        buckets.into_iter().flatten().flat_map(Self::decode).collect()
    }

    async fn inspect(&self, tx: &Tx) -> Result<Inspected<K, V>, Error> {
        let (mut entries, mut wrong) = (Vec::new(), Vec::new());
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
        Ok(Inspected { entries, wrong })
    }
}
