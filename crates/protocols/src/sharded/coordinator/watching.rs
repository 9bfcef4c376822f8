//! Clients that wait for a change of what their transaction has read.
//!
//! The transaction ends, and what it has read in each shard goes to a member of that, which tells
//! of the first change that it applies. While a client waits its watches are asked for once more
//! now and then, in case that a member has forgotten them, or is passed over meanwhile.

use std::collections::BTreeMap;

use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::{
    Abort, Address, Answer, Catalog, Failure, Nanos, NodeId, OpId, RepositoryId, Role, Step,
    Timestamp, Txn,
};

use super::ShardedCoordinator;
use crate::certified::message::command::{CertifiedCommand, ReadKey, ReadRange};
use crate::sharded::Context;
use crate::sharded::locator::ShardId;
use crate::sharded::message::Message;

/// Somebody who waits for a change.
#[derive(Clone, Debug)]
pub struct WaitingShardReader {
    op: OpId,
    /// Which transaction it was.
    txn: Txn,
    parts: BTreeMap<ShardId, WatchedPart>,
    /// When they were asked for last.
    sent: Nanos,
}

/// What is watched in a shard.
#[derive(Clone, Debug)]
struct WatchedPart {
    /// By which member.
    to: RepositoryId,
    reads: Vec<ReadKey>,
    ranges: Vec<ReadRange>,
}

impl ShardedCoordinator {
    /// A transaction ends, and its client waits until something that it has read has changed.
    pub(super) fn watch(&mut self, txn: Txn, cx: &mut Context<'_>) -> Step {
        let id = self.id(self.sequence);
        let mut commands = match self.open(txn) {
            Ok(running) => running.commands(id, cx.catalog),
            Err(failure) => return Step::Done(Err(failure)),
        };
        self.fail(txn, &Failure::Aborted(Abort::Rollback), cx);
        let limit = cx.settings.limits.transaction_bytes;
        let bytes = commands.values().map(CertifiedCommand::bytes).sum();
        if let Err(failure) = check_size(Limit::Transaction, bytes, limit) {
            return Step::Done(Err(failure));
        }
        commands.retain(|_, it| !it.reads.is_empty() || !it.ranges.is_empty());
        if commands.is_empty() {
            return Step::Done(Ok(Answer::Changed)); // It would wait for ever.
        }
        let parts = commands.into_iter().map(|(shard, command)| {
            let to = self.nearest.of(shard, 0, (self.node, cx.catalog), cx.now());
            (shard, WatchedPart { to, reads: command.reads, ranges: command.ranges })
        });
        let parts = parts.collect();
        let (request, op) = (self.next_number(), OpId(self.next_number()));
        let waiting = WaitingShardReader { op, txn, parts, sent: cx.now() };
        waiting.ask(request, cx);
        let before = self.waiting.insert(request, waiting);
        assert!(before.is_none(), "request {request} waits twice");
        Step::Wait(op)
    }

    /// Something has changed, or may have, until the clock of its shard was there: what is read now
    /// sees it, though another shard is asked first whose clock is behind.
    pub(super) fn on_changed(
        &mut self,
        from: Address,
        (request, clock): (u64, u64),
        cx: &mut Context<'_>,
    ) {
        if let Some(waiting) = self.waiting.remove(&request) {
            self.issued = self.issued.max(Timestamp::new(clock, RepositoryId(0)));
            self.reads_from = self.reads_from.max(clock);
            waiting.stop(request, Some(from), cx);
            cx.complete(waiting.op, Ok(Answer::Changed));
        }
    }

    /// Nobody waits any more for what a transaction has read.
    pub(super) fn stop_watching(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_>) {
        let stopped = self.waiting.extract_if(.., |_, waiting| waiting.txn == txn);
        let stopped: Vec<_> = stopped.collect();
        assert!(stopped.len() <= 1, "{txn:?} waits {} times", stopped.len());
        for (request, waiting) in stopped {
            waiting.stop(request, None, cx);
            cx.complete(waiting.op, Err(failure.clone()));
        }
    }

    /// The link to a node is gone: whose watches are there looks again.
    pub(super) fn wake_watchers_of(&mut self, node: NodeId, cx: &mut Context<'_>) {
        let catalog = cx.catalog;
        let woken = self.waiting.extract_if(.., |_, waiting| waiting.asks(node, catalog));
        for (request, waiting) in woken.collect::<Vec<_>>() {
            waiting.stop(request, None, cx);
            cx.complete(waiting.op, Ok(Answer::Changed));
        }
    }

    /// Asks for watches again that were asked for some time ago, at the members that are the
    /// nearest now.
    pub(super) fn watch_again(&mut self, cx: &mut Context<'_>) {
        let (now, patience) = (cx.now(), Nanos(cx.settings.in_doubt_after.0 / 3));
        for (request, waiting) in &mut self.waiting {
            if waiting.sent + patience > now {
                continue;
            }
            waiting.sent = now;
            for (shard, part) in &mut waiting.parts {
                part.to = self.nearest.of(*shard, 0, (self.node, cx.catalog), now);
            }
            waiting.ask(*request, cx);
        }
    }

    /// Checks what holds of those who wait.
    ///
    /// # Panics
    /// It does not.
    pub(super) fn assert_waiting(&self) {
        for waiting in self.waiting.values() {
            assert!(!self.running.contains_key(&waiting.txn.slot), "it waits, and goes on");
            assert!(!waiting.parts.is_empty(), "{:?} waits for nothing", waiting.txn);
        }
    }
}

impl WaitingShardReader {
    fn ask(&self, request: u64, cx: &mut Context<'_>) {
        for WatchedPart { to, reads, ranges } in self.parts.values() {
            let (reads, ranges) = (reads.clone(), ranges.clone());
            cx.send_to_repository(*to, Message::Watch { request, reads, ranges });
        }
    }

    /// Members need not watch any more, but for the one that has said so itself.
    fn stop(&self, request: u64, but: Option<Address>, cx: &mut Context<'_>) {
        let has_answered =
            |to: RepositoryId| but.is_some_and(|but| but.role == Role::Repository(to));
        for part in self.parts.values().filter(|part| !has_answered(part.to)) {
            cx.send_to_repository(part.to, Message::Unwatch { request });
        }
    }

    /// Whether a member at a node watches a part of it.
    fn asks(&self, node: NodeId, catalog: &Catalog) -> bool {
        self.parts.values().any(|part| catalog.home(part.to) == node)
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Coordinator as _, Effects, Settings, StateMachine as _, TxnOptions};

    use super::super::running::ShardedTransaction;
    use super::*;
    use crate::sharded::Switches;

    #[test]
    fn who_is_told_of_a_change_reads_from_its_time_on() {
        let mut coordinator = ShardedCoordinator::new(NodeId(0), 1, &Switches::default());
        let (txn, op, sent) = (Txn { slot: 1, generation: 0 }, OpId(2), Nanos(0));
        let part = WatchedPart { to: RepositoryId(1), reads: Vec::new(), ranges: Vec::new() };
        let parts = BTreeMap::from([(ShardId(1), part)]);
        coordinator.waiting.insert(7, WaitingShardReader { op, txn, parts, sent });
        let catalog = Catalog::new(&[NodeId(0), NodeId(1)], 1, &[]).expect("it can be");
        let (settings, effects) = (Settings::default(), &mut Effects::default());
        let me = Address::coordinator(NodeId(0));
        let cx = &mut Context { me, catalog: &catalog, settings: &settings, effects };
        let from = Address::repository(NodeId(1), RepositoryId(1));
        coordinator.on_changed(from, (8, 200), cx);
        assert_eq!(coordinator.reads_from, 0, "nobody waits by that number");
        coordinator.on_changed(from, (7, 101), cx);
        // A shard that is asked first, and whose clock is at 100, would not show the change.
        assert_eq!(coordinator.reads_from, 101);
        assert!(coordinator.waiting.is_empty());
        coordinator.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "it waits, and goes on")]
    fn who_waits_does_nothing_else() {
        let mut coordinator = ShardedCoordinator::new(NodeId(0), 1, &Switches::default());
        let (txn, op, sent) = (Txn { slot: 1, generation: 0 }, OpId(2), Nanos(0));
        let part = WatchedPart { to: RepositoryId(0), reads: Vec::new(), ranges: Vec::new() };
        let parts = BTreeMap::from([(ShardId(0), part)]);
        coordinator.waiting.insert(0, WaitingShardReader { op, txn, parts, sent });
        coordinator.assert_waiting();
        let running = ShardedTransaction::new(TxnOptions::default(), Nanos(0));
        coordinator.running.insert(1, running);
        coordinator.assert_waiting();
    }
}
