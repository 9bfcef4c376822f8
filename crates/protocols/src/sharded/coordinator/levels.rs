//! Parts of a transaction whose writes can be undone alone (closed nesting). What they have read is
//! certified with the transaction: reads at one timestamp never disagree before that, so no part is
//! run again by itself.

use muesli_core::{Failure, Nesting, Txn};

use super::ShardedCoordinator;
use crate::sharded::Context;

impl ShardedCoordinator {
    /// A level begins, inside of the innermost one.
    pub(super) fn nest(
        &mut self,
        txn: Txn,
        level: u32,
        cx: &mut Context<'_>,
    ) -> Result<Nesting, Failure> {
        self.open(txn)?.sets.check_next_level(level)?;
        self.fail_operations(txn, &Failure::ChildOpen, cx);
        let depth = self.open(txn)?.sets.nest();
        assert_eq!(depth, level, "one level inside of the other");
        Ok(Nesting::Closed)
    }

    /// The innermost level ends: its writes are its parent's, or undone. One that is not open ended
    /// with an outer one.
    pub(super) fn end_level(
        &mut self,
        txn: Txn,
        (level, merges): (u32, bool),
        cx: &mut Context<'_>,
    ) -> Result<(), Failure> {
        if self.open(txn)?.sets.is_innermost(level) {
            self.fail_operations(txn, &Failure::Ended, cx);
            self.open(txn)?.sets.end_level(merges);
        }
        Ok(())
    }
}
