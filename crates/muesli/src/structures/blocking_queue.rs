//! A queue whose consumers sleep while it is empty, and its producers while it is full.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rows::{StructureRows, StructureShape};
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// A first-in first-out queue: a row for each item, and a head that counts them. Who takes from an
/// empty one [waits](Tx::retry), as part of whatever its transaction does beside; so does who puts
/// into a full one.
///
/// ```
/// use muesli::structures::BlockingQueue;
/// use muesli::{Db, Error, Options, SpaceOptions};
///
/// # fn main() -> Result<(), Error> {
/// let db = Db::open(Options::default().space("work", SpaceOptions::default()))?;
/// let queue = BlockingQueue::<String>::new(db.space("work")?, "jobs", 2);
/// let worker = {
///     let (db, queue) = (db.clone(), queue.clone());
///     std::thread::spawn(move || db.blocking().transact(async move |tx| queue.take(tx).await))
/// };
/// db.blocking().transact(async move |tx| queue.put(tx, &"sweep".to_owned()).await)?;
/// assert_eq!(worker.join().expect("it does not panic")?, "sweep");
/// # Ok(())
/// # }
/// ```
pub struct BlockingQueue<T> {
    rows: StructureRows,
    capacity: u64,
    item: PhantomData<fn() -> T>,
}

/// Which items are there: from the first one up to the next one that comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct QueueEnds {
    first: u64,
    next: u64,
}

impl<T> Clone for BlockingQueue<T> {
    fn clone(&self) -> Self {
        BlockingQueue { rows: self.rows.clone(), ..*self }
    }
}

impl<T> std::fmt::Debug for BlockingQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BlockingQueue").field(&self.rows).finish()
    }
}

impl<T> BlockingQueue<T> {
    /// The queue of this name, which holds at most so many items, at least 1.
    pub fn new(space: Space, name: &str, capacity: u64) -> Self {
        let rows = StructureRows::new(space, name, StructureShape::Queue);
        BlockingQueue { rows, capacity: capacity.max(1), item: PhantomData }
    }

    async fn ends(&self, tx: &Tx) -> Result<QueueEnds, Error> {
        let ends: QueueEnds = self.rows.read_head(tx).await?.unwrap_or_default();
        match ends.first <= ends.next {
            true => Ok(ends),
            false => Err(self.rows.broken("its first item is after its last")),
        }
    }

    /// How many items it holds.
    ///
    /// # Errors
    /// What [`Tx`] says; [`Error::Codec`] where another structure has this name.
    pub async fn len(&self, tx: &Tx) -> Result<u64, Error> {
        self.ends(tx).await.map(|ends| ends.next - ends.first)
    }

    /// Whether it holds none.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub async fn is_empty(&self, tx: &Tx) -> Result<bool, Error> {
        self.len(tx).await.map(|len| len == 0)
    }
}

impl<T: Serialize + DeserializeOwned> BlockingQueue<T> {
    /// Puts an item at the end; waits while the queue is full.
    ///
    /// # Errors
    /// As [`len`](Self::len), and [`Error::Retry`], which a body passes on.
    pub async fn put(&self, tx: &Tx, item: &T) -> Result<(), Error> {
        let ends = self.ends(tx).await?;
        if ends.next - ends.first >= self.capacity {
            return tx.retry();
        }
        self.rows.write(tx, &ends.next.to_be_bytes(), item).await?;
        self.rows.write_head(tx, &QueueEnds { next: ends.next + 1, ..ends }).await
    }

    /// Takes the first item; waits while there is none.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn take(&self, tx: &Tx) -> Result<T, Error> {
        let ends = self.ends(tx).await?;
        if ends.first == ends.next {
            return tx.retry();
        }
        let number = ends.first.to_be_bytes();
        let item = self.rows.follow(tx, &number).await?;
        self.rows.delete(tx, &number).await?;
        self.rows.write_head(tx, &QueueEnds { first: ends.first + 1, ..ends }).await?;
        Ok(item)
    }
}
