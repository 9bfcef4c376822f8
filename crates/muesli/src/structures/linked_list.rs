//! A sorted linked list: a [`SkipList`] with one level.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Inspected, KeyedMap, OrderedMap, SkipList};
use crate::data::key::Key;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// A sorted map whose searches read every node before their key: for few keys, or to see what
/// long read sets do.
pub struct LinkedList<K, V>(SkipList<K, V>);

impl<K, V> Clone for LinkedList<K, V> {
    fn clone(&self) -> Self {
        LinkedList(self.0.clone())
    }
}

impl<K, V> std::fmt::Debug for LinkedList<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LinkedList").field(&self.0).finish()
    }
}

impl<K, V> LinkedList<K, V> {
    /// The list of this name; empty where nothing was inserted.
    pub fn new(space: Space, name: &str) -> Self {
        LinkedList(SkipList::with_levels(space, name, 1))
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> KeyedMap<K, V> for LinkedList<K, V> {
    async fn get(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        self.0.get(tx, key).await
    }

    async fn put(&self, tx: &Tx, key: &K, value: &V, replaced: bool) -> Result<Option<V>, Error> {
        self.0.put(tx, key, value, replaced).await
    }

    async fn remove(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        self.0.remove(tx, key).await
    }

    async fn entries(&self, tx: &Tx) -> Result<Vec<(K, V)>, Error> {
        self.0.entries(tx).await
    }

    async fn inspect(&self, tx: &Tx) -> Result<Inspected<K, V>, Error> {
        self.0.inspect(tx).await
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> OrderedMap<K, V> for LinkedList<K, V> {
    async fn at_or_after(&self, tx: &Tx, key: &K) -> Result<Option<(K, V)>, Error> {
        self.0.at_or_after(tx, key).await
    }
}
