//! Transactional structures: maps and counters that several clients change at once.
//!
//! A structure is a name within a [`Space`](crate::Space) and a way of laying out rows there; its
//! handle holds no data. Its operations take the transaction that they are part of, so that
//! several of them, on several structures and plain keys, take effect together or not at all. They
//! use nothing but [`Tx`], so they are as safe as the protocol that runs it.
//!
//! | structure | rows | an operation reads |
//! | --- | --- | --- |
//! | [`SkipList`] | a node per key, linked at several levels | about log₂ n nodes |
//! | [`LinkedList`] | a node per key, linked in order | half of the nodes |
//! | [`SearchTree`] | a node per key, with two children | its depth: about 2 ln n nodes |
//! | [`HashTable`] | head, and a row per bucket | one row, and the head where that is absent |
//! | [`Counter`] | one row | one row, or none ([`Counter::add_deferred`]) |
//! | [`BlockingQueue`] | head, and a row per item | the head, and a row; waits for one |
//! | [`Semaphore`] | one row | one row; waits where too few permits are left |
//! | [`WorkList`] | a queue's, head, a row per item in work | as a queue; waits for others' |
//!
//! Nodes lie under their own keys, and links are keys: no ids are given out, a link tells on
//! which side of a key it leads without being followed, and [`KeyedMap::get`] is one read whatever
//! the structure. What is changed, and what was read on the way, decides which operations conflict:
//! an insert into a list conflicts with every search that passed its place.
//!
//! ```
//! use muesli::structures::{Counter, KeyedMap, OrderedMap, SkipList};
//! use muesli::{Db, Error, Options, SpaceOptions};
//!
//! # fn main() -> Result<(), Error> {
//! let db = Db::open(Options::default().space("shop", SpaceOptions::default()))?;
//! let space = db.space("shop")?;
//! let prices = SkipList::<u32, String>::new(space, "prices");
//! let changes = Counter::new(space, "changes");
//! let next = db.blocking().transact(async move |tx| {
//!     prices.insert(tx, &30, &"tea".to_owned()).await?;
//!     prices.insert(tx, &20, &"milk".to_owned()).await?;
//!     changes.add_deferred(tx, 2).await?;
//!     prices.at_or_after(tx, &25).await
//! })?;
//! assert_eq!(next, Some((30, "tea".to_owned())));
//! # Ok(())
//! # }
//! ```

mod blocking_queue;
mod counter;
mod hash_table;
mod linked_list;
mod rows;
mod search_tree;
mod semaphore;
mod skip_list;
mod work_list;

pub use blocking_queue::BlockingQueue;
pub use counter::Counter;
pub use hash_table::HashTable;
pub use linked_list::LinkedList;
pub use search_tree::SearchTree;
pub use semaphore::Semaphore;
pub use skip_list::SkipList;
pub use work_list::{TakenWork, WorkList};

use crate::error::Error;
use crate::transaction::tx::Tx;

/// What every structure with keys can do.
///
/// # Errors
/// All of these: what [`Tx`] says, and [`Error::Codec`] where rows are not what the structure has
/// written: another one of the same name, or a snapshot that a weak protocol tore apart.
#[expect(async_fn_in_trait, reason = "the futures stay with their transaction")]
pub trait KeyedMap<K, V> {
    /// The value of a key; one read.
    async fn get(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error>;

    /// Sets the value of a key, if it has none or is to be `replaced`; the one it had.
    async fn put(&self, tx: &Tx, key: &K, value: &V, replaced: bool) -> Result<Option<V>, Error>;

    /// Sets the value of a key; the one it had.
    async fn insert(&self, tx: &Tx, key: &K, value: &V) -> Result<Option<V>, Error> {
        self.put(tx, key, value, true).await
    }

    /// Sets the value of a key that has none; whether it had none. Nothing is written where it has.
    async fn add(&self, tx: &Tx, key: &K, value: &V) -> Result<bool, Error> {
        Ok(self.put(tx, key, value, false).await?.is_none())
    }

    /// Takes a key out; the value it had. Nothing is written where it is absent.
    async fn remove(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error>;

    /// Everything, in the structure's order, found as its operations find it.
    async fn entries(&self, tx: &Tx) -> Result<Vec<(K, V)>, Error>;

    /// Reads all rows and looks whether they are what the structure promises. The space needs an
    /// ordered index ([`Index::Ordered`](crate::Index::Ordered)).
    async fn inspect(&self, tx: &Tx) -> Result<Inspected<K, V>, Error>;
}

/// What structures in order of keys can do.
///
/// # Errors
/// As with [`KeyedMap`].
#[expect(async_fn_in_trait, reason = "the futures stay with their transaction")]
pub trait OrderedMap<K, V>: KeyedMap<K, V> {
    /// The first key that is not before this one, with its value. Reads what lies on the way.
    async fn at_or_after(&self, tx: &Tx, key: &K) -> Result<Option<(K, V)>, Error>;
}

/// What was found in a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected<K, V> {
    /// What can be reached, in the structure's order.
    pub entries: Vec<(K, V)>,
    /// Promises that are broken; empty if all is well.
    pub wrong: Vec<String>,
}

/// Handles are names: they can be copied whatever their keys and values are.
macro_rules! handle {
    ($name:ident) => {
        impl<K, V> Clone for $name<K, V> {
            fn clone(&self) -> Self {
                Self { rows: self.rows.clone(), ..*self }
            }
        }

        impl<K, V> std::fmt::Debug for $name<K, V> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.rows).finish()
            }
        }
    };
}

use handle;
