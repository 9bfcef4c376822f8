//! A counter: one number, which may be changed without being looked at.

use muesli_core::{Action, SmallBytes};

use super::rows::{StructureRows, StructureShape};
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// A whole number that wraps around, zero at first. It is stored as actions store numbers (eight
/// bytes, little-endian).
#[derive(Clone, Debug)]
pub struct Counter {
    rows: StructureRows,
}

impl Counter {
    /// The counter of this name.
    pub fn new(space: Space, name: &str) -> Counter {
        Counter { rows: StructureRows::new(space, name, StructureShape::Counter) }
    }

    /// The key that its number lies at, for [`Tx::defer_returning`] and delayed procedures.
    pub fn key(&self) -> SmallBytes {
        self.rows.head()
    }

    /// What it shows.
    ///
    /// # Errors
    /// What [`Tx`] says, and [`Error::Codec`] where another structure has this name.
    pub async fn get(&self, tx: &Tx) -> Result<i64, Error> {
        self.read(tx.get(self.rows.space(), self.rows.head()).await?)
    }

    /// What several counters show, read at once.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_many(tx: &Tx, counters: &[Counter]) -> Result<Vec<i64>, Error> {
        let Some(first) = counters.first() else { return Ok(Vec::new()) };
        let keys = counters.iter().map(|counter| counter.rows.head());
        let values = tx.get_many(first.rows.space(), keys).await?;
        counters.iter().zip(values).map(|(counter, value)| counter.read(value)).collect()
    }

    /// Adds to it; what it shows then. Whoever else changes the counter at the same time is in the
    /// way.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn add(&self, tx: &Tx, amount: i64) -> Result<i64, Error> {
        let sum = self.get(tx).await?.wrapping_add(amount);
        let bytes = sum.to_le_bytes().to_vec();
        tx.put(self.rows.space(), self.rows.head(), bytes).await?;
        Ok(sum)
    }

    /// Adds to it when the transaction commits ([`Tx::defer`]): where the protocol can delay
    /// actions, nobody else who does so is in the way. The transaction should not look at the
    /// counter afterwards.
    ///
    /// # Errors
    /// As [`Tx::defer`].
    pub async fn add_deferred(&self, tx: &Tx, amount: i64) -> Result<(), Error> {
        tx.defer(self.rows.space(), self.rows.head(), Action::add(amount)).await
    }

    fn read(&self, value: Option<SmallBytes>) -> Result<i64, Error> {
        let Some(value) = value else { return Ok(0) };
        let bytes = value.as_slice().try_into();
        bytes.map(i64::from_le_bytes).map_err(|_| self.rows.broken("this is no counter"))
    }
}
