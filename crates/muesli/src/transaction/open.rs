//! A transaction that is rolled back unless it gets to its commit.

use crate::transaction::tx::Tx;

/// Rolls back the transaction of a body that did not get to its commit.
pub(crate) struct RollbackOnDrop {
    pub tx: Tx,
}

impl Drop for RollbackOnDrop {
    fn drop(&mut self) {
        self.tx.rollback_here();
    }
}
