//! A hash table whose buckets are objects.

use muesli::objects::{Object, Objects};
use muesli::structures::Inspected;
use muesli::{Error, Space, Tx};
use serde::{Deserialize, Serialize};

/// The name of buckets.
const KIND: &str = "bucket";

/// The keys and values of a bucket, in order.
#[derive(Clone, Debug, Default, Deserialize, Object, Serialize)]
pub(super) struct Bucket {
    entries: Vec<(u64, u64)>,
}

/// A table of so many buckets; a bucket that never had a key is no object yet.
#[derive(Clone, Debug)]
pub(super) struct TableOfObjects {
    number: u32,
    buckets: u32,
    kind: Objects<(u32, u32), Bucket>,
}

/// Where in its bucket a key is, or would be.
fn place(bucket: &Bucket, key: u64) -> Result<usize, usize> {
    bucket.entries.binary_search_by_key(&key, |entry| entry.0)
}

impl TableOfObjects {
    /// The table of this number.
    pub fn new(space: Space, number: u32, buckets: u32) -> TableOfObjects {
        TableOfObjects { number, buckets, kind: Objects::new(space, KIND) }
    }

    /// The object of a key's bucket: keys are dealt as by a multiplicative hash.
    fn bucket_of(&self, key: u64) -> (u32, u32) {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (self.number, (mixed % u64::from(self.buckets)) as u32)
    }

    /// The value of a key.
    pub async fn get(&self, tx: &Tx, key: u64) -> Result<Option<u64>, Error> {
        let Some(bucket) = self.kind.try_open(tx, &self.bucket_of(key)).await? else {
            return Ok(None);
        };
        bucket.with(tx, |bucket| place(bucket, key).ok().map(|at| bucket.entries[at].1))
    }

    /// Adds a key; whether it was absent.
    pub async fn add(&self, tx: &Tx, key: &u64, value: &u64) -> Result<bool, Error> {
        let name = self.bucket_of(*key);
        let Some(bucket) = self.kind.try_open(tx, &name).await? else {
            let first = Bucket { entries: vec![(*key, *value)] };
            return self.kind.create(tx, &name, first).await.map(|_| true);
        };
        let Err(at) = bucket.with(tx, |bucket| place(bucket, *key))? else { return Ok(false) };
        bucket.entries().update(tx, |entries| entries.insert(at, (*key, *value))).await?;
        Ok(true)
    }

    /// Removes a key; its value.
    pub async fn remove(&self, tx: &Tx, key: &u64) -> Result<Option<u64>, Error> {
        let Some(bucket) = self.kind.try_open(tx, &self.bucket_of(*key)).await? else {
            return Ok(None);
        };
        let Ok(at) = bucket.with(tx, |bucket| place(bucket, *key))? else { return Ok(None) };
        let removed = bucket.entries().update(tx, |entries| entries.remove(at)).await?;
        Ok(Some(removed.1))
    }

    /// All buckets that are there.
    async fn buckets(&self, tx: &Tx) -> Result<Vec<(u32, Bucket)>, Error> {
        let mut all = Vec::new();
        for bucket in 0..self.buckets {
            if let Some(opened) = self.kind.try_open(tx, &(self.number, bucket)).await? {
                all.push((bucket, opened.value(tx)?));
            }
        }
        Ok(all)
    }

    /// All keys with their values.
    pub async fn entries(&self, tx: &Tx) -> Result<Vec<(u64, u64)>, Error> {
        let buckets = self.buckets(tx).await?;
        Ok(buckets.into_iter().flat_map(|(_, bucket)| bucket.entries).collect())
    }

    /// What is there, and what is wrong with it.
    pub async fn inspect(&self, tx: &Tx) -> Result<Inspected<u64, u64>, Error> {
        let (mut entries, mut wrong) = (Vec::new(), Vec::new());
        for (number, bucket) in self.buckets(tx).await? {
            let misplaced =
                bucket.entries.iter().filter(|entry| self.bucket_of(entry.0).1 != number);
            wrong.extend(misplaced.map(|(key, _)| format!("key {key} is in bucket {number}")));
            if !bucket.entries.is_sorted_by(|a, b| a.0 < b.0) {
                wrong.push(format!("bucket {number} is not in order: {:?}", bucket.entries));
            }
            entries.extend(bucket.entries);
        }
        Ok(Inspected { entries, wrong })
    }
}
