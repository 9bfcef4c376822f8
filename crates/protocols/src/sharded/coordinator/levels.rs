//! Parts of a transaction whose writes can be undone alone (closed nesting). What they have read is
//! certified with the transaction: reads at one timestamp never disagree before that, so no part is
//! run again by itself.

use muesli_core::parts::levels::LEVELS_MAX;
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
        if self.open(txn)?.sets.depth() + 1 != level {
            return Err(Failure::ChildOpen);
        }
        if level > LEVELS_MAX {
            let reason = format!("a transaction has at most {LEVELS_MAX} levels, one in the other");
            return Err(Failure::Procedure(reason));
        }
        self.fail_operations(txn, &Failure::ChildOpen, cx);
        let sets = &mut self.open(txn)?.sets;
        sets.nest();
        assert_eq!(sets.depth(), level, "one level inside of the other");
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
        if self.open(txn)?.sets.depth() != level || level == 0 {
            return Ok(());
        }
        self.fail_operations(txn, &Failure::Ended, cx);
        let sets = &mut self.open(txn)?.sets;
        match merges {
            true => sets.merge(),
            false => sets.unnest(),
        }
        assert_eq!(sets.depth() + 1, level, "the innermost level ends");
        Ok(())
    }
}
