//! A semaphore: so many permits, and who wants more than are left sleeps.

use super::rows::{StructureRows, StructureShape};
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// A number of permits, in one row. Permits are taken and given back by transactions: what is taken
/// by one that aborts was never taken.
#[derive(Clone, Debug)]
pub struct Semaphore {
    rows: StructureRows,
    permits: u64,
}

impl Semaphore {
    /// The semaphore of this name, which begins with so many permits.
    pub fn new(space: Space, name: &str, permits: u64) -> Semaphore {
        Semaphore { rows: StructureRows::new(space, name, StructureShape::Semaphore), permits }
    }

    /// How many permits are left.
    ///
    /// # Errors
    /// What [`Tx`] says; [`Error::Codec`] where another structure has this name.
    pub async fn available(&self, tx: &Tx) -> Result<u64, Error> {
        Ok(self.rows.read_head(tx).await?.unwrap_or(self.permits))
    }

    /// Takes permits; waits while fewer are left.
    ///
    /// # Errors
    /// As [`available`](Self::available), and [`Error::Retry`], which a body passes on.
    pub async fn acquire(&self, tx: &Tx, permits: u64) -> Result<(), Error> {
        match self.available(tx).await?.checked_sub(permits) {
            Some(left) => self.rows.write_head(tx, &left).await,
            None => tx.retry(),
        }
    }

    /// Gives permits back, or adds them.
    ///
    /// # Errors
    /// As [`available`](Self::available).
    pub async fn release(&self, tx: &Tx, permits: u64) -> Result<(), Error> {
        let left = self.available(tx).await?.saturating_add(permits);
        self.rows.write_head(tx, &left).await
    }
}
