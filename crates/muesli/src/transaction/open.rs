//! A transaction that is rolled back unless it gets to its commit.

use crate::transaction::tx::Tx;

/// Rolls back the transaction of a body that did not get to its commit.
pub(crate) struct RollbackOnDrop {
    pub tx: Tx,
    /// It has got to its commit, or somebody else ends it.
    is_over: bool,
}

impl RollbackOnDrop {
    #[inline]
    pub fn new(tx: Tx) -> RollbackOnDrop {
        RollbackOnDrop { tx, is_over: false }
    }

    /// There is nothing to roll back any more.
    #[inline]
    pub fn ended(&mut self) {
        self.is_over = true;
    }
}

impl Drop for RollbackOnDrop {
    #[inline]
    fn drop(&mut self) {
        if !self.is_over {
            self.tx.rollback_here();
        }
    }
}
