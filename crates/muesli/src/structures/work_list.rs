//! A list of work that several workers share, who know when all of it is done.

use std::marker::PhantomData;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::BlockingQueue;
use super::rows::{StructureRows, StructureShape};
use crate::data::space::Space;
use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// Items of work that are waiting, and those that are being worked on. Work may lead to more of it.
/// A worker that finds nothing waiting sleeps while others are at work, as they may add some, and
/// is told that all is done once nobody is.
///
/// A worker takes an item, does it (perhaps in many transactions), and [finishes](Self::finish) it
/// with what follows from it. Where the work's effects are written by the transaction that
/// finishes, each item takes effect once, whatever fails.
///
/// **A worker that dies** before it finishes leaves its item as one that is being worked on, and
/// all who find nothing else wait, each until its [timeout](Db::timeout). Nothing tells a worker
/// that died from one that is slow but time, and how long work may take only the user knows:
/// [`give_back_after`](Self::give_back_after) lets others have what was worked on for that long. A
/// worker that comes late with such an item cannot finish it.
pub struct WorkList<T> {
    waiting: BlockingQueue<T>,
    taken: StructureRows,
    item: PhantomData<fn() -> T>,
}

/// An item of work that was taken, to be [finished](WorkList::finish).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenWork<T> {
    /// What is to be done.
    pub item: T,
    /// Under which number it is worked on, which no other take of the list has.
    number: u64,
}

/// What is being worked on.
///
/// Invariant: numbers ascend, and are below `next`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct UnderWay {
    takes: Vec<TakeUnderWay>,
    /// The number of the next take.
    next: u64,
}

/// An item that is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TakeUnderWay {
    number: u64,
    /// How often its worker said that it is at work.
    extended: u64,
}

impl<T> Clone for WorkList<T> {
    fn clone(&self) -> Self {
        let (waiting, taken) = (self.waiting.clone(), self.taken.clone());
        WorkList { waiting, taken, item: PhantomData }
    }
}

impl<T> std::fmt::Debug for WorkList<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WorkList").field(&self.taken).finish()
    }
}

impl<T: Serialize + DeserializeOwned> WorkList<T> {
    /// The list of this name; nothing is to be done where nothing was added.
    pub fn new(space: Space, name: &str) -> Self {
        let waiting = BlockingQueue::new(space, &format!("{name} waiting"), u64::MAX);
        let taken = StructureRows::new(space, name, StructureShape::WorkList);
        WorkList { waiting, taken, item: PhantomData }
    }

    async fn under_way(&self, tx: &Tx) -> Result<UnderWay, Error> {
        let under_way: UnderWay = self.taken.read_head(tx).await?.unwrap_or_default();
        let ascends = under_way.takes.windows(2).all(|pair| pair[0].number < pair[1].number);
        let bounded = under_way.takes.last().is_none_or(|last| last.number < under_way.next);
        match ascends && bounded {
            true => Ok(under_way),
            false => Err(self.taken.broken("what is being worked on is out of order")),
        }
    }

    /// Where the item of a number is among those that are being worked on.
    fn position(under_way: &UnderWay, number: u64) -> Result<usize, Error> {
        let found = under_way.takes.binary_search_by_key(&number, |take| take.number);
        found.map_err(|_| {
            Error::rollback(
                "this item of work is not this worker's any more: it was finished before, or \
                 given back to others after a while",
            )
        })
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
    pub async fn take(&self, tx: &Tx) -> Result<Option<TakenWork<T>>, Error> {
        let mut under_way = self.under_way(tx).await?;
        if self.waiting.is_empty(tx).await? {
            return if under_way.takes.is_empty() { Ok(None) } else { tx.retry() };
        }
        let item = self.waiting.take(tx).await?;
        let number = under_way.next;
        self.taken.write(tx, &number.to_be_bytes(), &item).await?;
        under_way.takes.push(TakeUnderWay { number, extended: 0 });
        under_way.next += 1;
        self.taken.write_head(tx, &under_way).await?;
        Ok(Some(TakenWork { item, number }))
    }

    /// An item that was taken is done.
    ///
    /// # Errors
    /// As [`add`](Self::add); [`Error::Rollback`] where it was finished before, or given back:
    /// whoever takes it next does it, so what this transaction did for it must not stay.
    pub async fn finish(&self, tx: &Tx, taken: &TakenWork<T>) -> Result<(), Error> {
        let mut under_way = self.under_way(tx).await?;
        under_way.takes.remove(Self::position(&under_way, taken.number)?);
        self.taken.delete(tx, &taken.number.to_be_bytes()).await?;
        self.taken.write_head(tx, &under_way).await
    }

    /// Says that an item is still being worked on: the time after which it is given back begins
    /// anew.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub async fn extend(&self, tx: &Tx, taken: &TakenWork<T>) -> Result<(), Error> {
        let mut under_way = self.under_way(tx).await?;
        let position = Self::position(&under_way, taken.number)?;
        under_way.takes[position].extended += 1;
        self.taken.write_head(tx, &under_way).await
    }

    /// Gives those items back to others that nobody has finished or [extended](Self::extend) while
    /// this looked on for so long; how many these were. No clock is compared with another one:
    /// who calls this waits, by its own. Several may do it at the same time.
    ///
    /// # Errors
    /// As [`Db::transact`] and [`add`](Self::add).
    pub async fn give_back_after(&self, db: &Db, patience: Duration) -> Result<usize, Error>
    where
        T: Send + 'static,
    {
        let (look, list) = (self.clone(), self.clone());
        let before = db.transact(async move |tx| look.under_way(tx).await).await?.takes;
        if before.is_empty() {
            return Ok(0);
        }
        match db.is_here() {
            true => db.sleep(patience).await?,
            false => {
                let sleeper = db.clone();
                db.run_on(db.next_loop(), async move || sleeper.sleep(patience).await).await??;
            }
        }
        db.transact(async move |tx| list.give_back(tx, &before).await).await
    }

    /// Gives back what is as it was.
    async fn give_back(&self, tx: &Tx, before: &[TakeUnderWay]) -> Result<usize, Error> {
        let UnderWay { takes, next } = self.under_way(tx).await?;
        let (stalled, others): (Vec<_>, Vec<_>) =
            takes.into_iter().partition(|take| before.contains(take));
        if stalled.is_empty() {
            return Ok(0);
        }
        for take in &stalled {
            let number = take.number.to_be_bytes();
            let item: T = self.taken.follow(tx, &number).await?;
            self.taken.delete(tx, &number).await?;
            self.waiting.put(tx, &item).await?;
        }
        self.taken.write_head(tx, &UnderWay { takes: others, next }).await?;
        Ok(stalled.len())
    }
}
