//! A counter, by way of its row or as an object.

use muesli::objects::{Object, Objects};
use muesli::structures::Counter;
use muesli::{Error, Space, Tx};
use serde::{Deserialize, Serialize};

use crate::interface::Interface;

/// The name of counters that are objects.
const KIND: &str = "counter";

/// What a counter shows, as an object.
#[derive(Clone, Debug, Deserialize, Object, Serialize)]
pub(super) struct CounterValue {
    shows: i64,
}

/// A counter of some name; one that nobody has added to shows zero.
#[derive(Clone, Debug)]
pub(super) enum CounterHandle {
    /// A row.
    Row(Counter),
    /// An object, with its key.
    Object(Objects<String, CounterValue>, String),
}

impl CounterHandle {
    /// The counter of this name.
    pub fn new(interface: Interface, space: Space, name: &str) -> CounterHandle {
        match interface {
            Interface::Rows => CounterHandle::Row(Counter::new(space, name)),
            Interface::Objects => CounterHandle::Object(Objects::new(space, KIND), name.to_owned()),
        }
    }

    /// The row, for delayed actions.
    ///
    /// # Panics
    /// If it is an object.
    pub fn row(&self) -> &Counter {
        match self {
            CounterHandle::Row(row) => row,
            CounterHandle::Object(..) => panic!("objects are not changed by delayed actions"),
        }
    }

    /// What several show, all of the same kind; rows are read at once.
    pub async fn get_many(tx: &Tx, all: &[CounterHandle]) -> Result<Vec<i64>, Error> {
        let [CounterHandle::Row(_), ..] = all else {
            let mut shown = Vec::with_capacity(all.len());
            for counter in all {
                shown.push(counter.get(tx).await?);
            }
            return Ok(shown);
        };
        Counter::get_many(tx, &all.iter().map(|it| it.row().clone()).collect::<Vec<_>>()).await
    }

    async fn get(&self, tx: &Tx) -> Result<i64, Error> {
        match self {
            CounterHandle::Row(row) => row.get(tx).await,
            CounterHandle::Object(kind, name) => match kind.try_open(tx, name).await? {
                Some(opened) => opened.shows().get(tx),
                None => Ok(0),
            },
        }
    }

    /// Adds to it.
    pub async fn add(&self, tx: &Tx, amount: i64) -> Result<(), Error> {
        match self {
            CounterHandle::Row(row) => row.add(tx, amount).await.map(drop),
            CounterHandle::Object(kind, name) => match kind.try_open(tx, name).await? {
                Some(opened) => opened.shows().update(tx, |shows| *shows += amount).await,
                None => kind.create(tx, name, CounterValue { shows: amount }).await.map(drop),
            },
        }
    }
}
