//! A list of work that several workers share, who know when all of it is done.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::BlockingQueue;
use super::rows::{StructureRows, StructureShape};
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// Items of work that are waiting, and how many are being worked on. Work may lead to more of it. A
/// worker that finds nothing waiting sleeps while others are at work, as they may add some, and is
/// told that all is done once nobody is.
///
/// A worker takes an item, does it (perhaps in many transactions), and [finishes](Self::finish) it
/// with what follows from it.
pub struct WorkList<T> {
    waiting: BlockingQueue<T>,
    counts: StructureRows,
    item: PhantomData<fn() -> T>,
}

/// How much work there is beside what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct UnderWay {
    items: u64,
}

impl<T> Clone for WorkList<T> {
    fn clone(&self) -> Self {
        let (waiting, counts) = (self.waiting.clone(), self.counts.clone());
        WorkList { waiting, counts, item: PhantomData }
    }
}

impl<T> std::fmt::Debug for WorkList<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WorkList").field(&self.counts).finish()
    }
}

impl<T: Serialize + DeserializeOwned> WorkList<T> {
    /// The list of this name; nothing is to be done where nothing was added.
    pub fn new(space: Space, name: &str) -> Self {
        let waiting = BlockingQueue::new(space, &format!("{name} waiting"), u64::MAX);
        let counts = StructureRows::new(space, name, StructureShape::WorkList);
        WorkList { waiting, counts, item: PhantomData }
    }

    async fn under_way(&self, tx: &Tx) -> Result<UnderWay, Error> {
        Ok(self.counts.read_head(tx).await?.unwrap_or_default())
    }

    /// Adds work.
    ///
    /// # Errors
    /// What [`Tx`] says; [`Error::Codec`] where another structure has this name.
    pub async fn add(&self, tx: &Tx, item: &T) -> Result<(), Error> {
        self.waiting.put(tx, item).await
    }

    /// Takes an item to work on; `None`: all is done. Waits while nothing can be taken and others
    /// are at work.
    ///
    /// # Errors
    /// As [`add`](Self::add), and [`Error::Retry`], which a body passes on.
    pub async fn take(&self, tx: &Tx) -> Result<Option<T>, Error> {
        let UnderWay { items } = self.under_way(tx).await?;
        if self.waiting.is_empty(tx).await? {
            return if items == 0 { Ok(None) } else { tx.retry() };
        }
        self.counts.write_head(tx, &UnderWay { items: items + 1 }).await?;
        self.waiting.take(tx).await.map(Some)
    }

    /// An item that was taken is done.
    ///
    /// # Errors
    /// As [`add`](Self::add); [`Error::Codec`] where more is finished than was taken.
    pub async fn finish(&self, tx: &Tx) -> Result<(), Error> {
        let UnderWay { items } = self.under_way(tx).await?;
        let Some(items) = items.checked_sub(1) else {
            return Err(self.counts.broken("more is finished than was taken"));
        };
        self.counts.write_head(tx, &UnderWay { items }).await
    }
}
