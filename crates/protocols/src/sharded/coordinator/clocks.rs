//! Strict transactions, and those that may be stale: they lie beyond the clocks of all shards, as
//! these were after they began, or a while before that.

use std::collections::BTreeSet;

use muesli_core::{Failure, Here, OpId, RepositoryId, Step, Timestamp, Txn};

use super::ShardedCoordinator;
use super::operations::{ShardedOperation, ShardedReads};
use super::running::DeferredEnd;
use crate::sharded::locator::{ShardId, shards};
use crate::sharded::message::command::end_of;
use crate::sharded::{Context, Sharded};

impl ShardedCoordinator {
    /// Asks all shards for their clocks, for a transaction that is to lie beyond them, unless that
    /// is under way.
    pub(super) fn ask_clocks(&mut self, txn: Txn, here: Here<'_, Sharded>, cx: &mut Context<'_>) {
        let mut under_way = self.operations.values().filter(|it| it.txn == txn);
        if under_way.any(|it| matches!(it.kind, ShardedReads::Clocks { .. })) {
            return;
        }
        let op = OpId(self.next_number());
        let missing: BTreeSet<_> = (0..shards(cx.catalog) as u16).map(ShardId).collect();
        assert!(!missing.is_empty(), "there is no shard");
        let kind = ShardedReads::Clocks { missing, most: 0 };
        let (since, bytes, asked) = (cx.now(), 0, Default::default());
        self.operations.insert(op, ShardedOperation { txn, since, bytes, kind, asked });
        let step = self.go_on(op, here, cx);
        assert!(matches!(step, Step::Wait(_)), "clocks are answered by messages");
    }

    /// A shard says what its clock says.
    pub(super) fn on_clock(
        &mut self,
        request: u64,
        clock: u64,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) {
        let is_of_clocks = |kind: &ShardedReads| matches!(kind, ShardedReads::Clocks { .. });
        let Some((op, shard)) = self.take_request(request, is_of_clocks) else { return };
        let operation = self.operations.get_mut(&op).expect("it waits");
        let ShardedReads::Clocks { missing, most } = &mut operation.kind else {
            unreachable!("clocks were asked for")
        };
        missing.remove(&shard);
        *most = clock.max(*most);
        let (is_last, most, txn) = (missing.is_empty(), *most, operation.txn);
        let beyond = Timestamp(Timestamp::new(most + 1, RepositoryId(0)).0 - 1);
        self.issued = self.issued.max(beyond);
        if !is_last {
            return;
        }
        self.operations.remove(&op);
        let running = self.running.get_mut(&txn.slot).expect("a transaction that runs");
        let options = &mut running.options;
        options.lower_bound = options.lower_bound.max(beyond);
        running.is_beyond_clocks = true;
        if running.may_be_stale() {
            // No later than it must be: all shards have come there, or soon will have.
            let counter = running.options.lower_bound.counter().max(self.reads_from);
            assert_eq!(running.snapshot, None, "it reads before it knows at what");
            running.snapshot = Some(end_of(counter));
        }
        match running.ends.take() {
            Some(ends) => self.end_deferred(txn, ends, cx),
            None => self.go_on_all(txn, here, cx),
        }
    }

    /// A shard does not know a clock that is fresh enough for a transaction that is not to wait.
    pub(super) fn on_not_fresh(&mut self, request: u64, cx: &mut Context<'_>) {
        let is_of_clocks = |kind: &ShardedReads| matches!(kind, ShardedReads::Clocks { .. });
        let Some((op, _)) = self.take_request(request, is_of_clocks) else { return };
        let txn = self.operations[&op].txn;
        let (most, _) = self.running[&txn.slot].clock_age();
        self.fail(txn, &Failure::NotFresh { most_ms: most.as_millis() }, cx);
    }

    /// Ends a transaction that has waited for clocks.
    fn end_deferred(&mut self, txn: Txn, ends: DeferredEnd, cx: &mut Context<'_>) {
        let mut running = self.running.remove(&txn.slot).expect("a transaction that runs");
        assert!(running.is_beyond_clocks, "{txn:?} is to be beyond all clocks, and ends");
        self.sequence += 1;
        let id = self.id(self.sequence);
        let (commands, fragments) = match ends.calls {
            None => (running.commands(id, cx.catalog), Vec::new()),
            Some((mut commands, fragments)) => {
                for command in commands.values_mut() {
                    command.txn = id;
                    command.after = running.options.lower_bound.counter();
                }
                (commands, fragments)
            }
        };
        self.ask_for_commit((id, ends.op), commands, (running, fragments), cx);
    }
}
