//! Clients that wait for a change of what their interactive transaction has read.
//!
//! The transaction ends, and what it has read goes to the repositories that hold the keys as far as
//! this coordinator has heard, one for each partition. The first of them that tells of a change
//! wakes the client; the others are told that nobody waits any more. While a client waits its
//! watches are asked for once more: soon where a link came, and once in a while in case that a
//! repository has forgotten them, or does not answer, or a partition has moved.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::parts::locator::Locator;
use muesli_core::{Abort, Answer, Failure, Nanos, OpId, RepositoryId, Step, Txn};

use crate::granola::coordinator::calls::one_of;
use crate::granola::coordinator::{Context, Coordinator, InteractiveSlot};
use crate::granola::locator::holders;
use crate::granola::message::{Message, WatchedReads};

/// Somebody who waits for a change, by the number of the operation.
#[derive(Clone, Debug)]
pub(in super::super) struct InteractiveWatch {
    /// Which transaction it was.
    pub(in super::super) txn: Txn,
    watched: WatchedReads,
    /// Who was asked last.
    asked: BTreeSet<RepositoryId>,
    /// How often that was.
    times: u64,
    /// When they are asked again.
    due: Nanos,
}

impl Coordinator {
    /// A transaction ends, and its client waits until something that it has read has changed. Who
    /// has read nothing would wait for ever: that counts as changed.
    pub(in super::super) fn on_watch(&mut self, txn: Txn, cx: &mut Context<'_>) -> Step {
        let watched = match self.open(txn) {
            Ok(slot) => slot.watched(),
            Err(failure) => return Step::Done(Err(failure)),
        };
        self.abort(txn, &Failure::Aborted(Abort::Rollback), cx);
        let limit = cx.settings.limits.transaction_bytes;
        if let Err(failure) = check_size(Limit::Transaction, watched.counted_bytes(), limit) {
            return Step::Done(Err(failure));
        }
        if watched.is_empty() {
            return Step::Done(Ok(Answer::Changed));
        }
        let op = self.next_op();
        let (asked, times, due) = (BTreeSet::new(), 0, Nanos(0));
        self.ask_to_watch(op, InteractiveWatch { txn, watched, asked, times, due }, cx);
        self.set_sweep_timer(cx);
        Step::Wait(op)
    }

    /// Asks those who hold the keys now.
    fn ask_to_watch(&mut self, op: OpId, mut waiting: InteractiveWatch, cx: &mut Context<'_>) {
        let mut parts: BTreeMap<RepositoryId, WatchedReads> = BTreeMap::new();
        for (space, key, version) in &waiting.watched.reads {
            let to = self.watched_at(cx.catalog.partition(*space, key), waiting.times, cx);
            parts.entry(to).or_default().reads.push((*space, key.clone(), *version));
        }
        for (partition, seen) in &waiting.watched.scans {
            let to = self.watched_at(*partition, waiting.times, cx);
            parts.entry(to).or_default().scans.push((*partition, seen.clone()));
        }
        assert!(!parts.is_empty(), "operation {} waits for nothing", op.0);
        let asked: BTreeSet<RepositoryId> = parts.keys().copied().collect();
        for to in waiting.asked.difference(&asked) {
            cx.send_to_repository(*to, Message::Unwatch { request: op.0 });
        }
        for (to, reads) in parts {
            let reads = Box::new(reads);
            cx.send_to_repository(to, Message::Watch { request: op.0, reads });
        }
        (waiting.asked, waiting.times) = (asked, waiting.times + 1);
        waiting.due = cx.now() + Nanos(cx.settings.in_doubt_after.0 / 3);
        self.watching.insert(op.0, waiting);
    }

    /// Who is asked about a partition: one of those who hold it, another one each time but for one
    /// of this node.
    fn watched_at(&self, partition: u16, times: u64, cx: &Context<'_>) -> RepositoryId {
        let moved = self.names.moved(&partition);
        one_of(&holders(partition, moved, cx.catalog), (self.id, times), cx.catalog)
    }

    /// Something has changed that was watched, or may have.
    pub(in super::super) fn on_changed(
        &mut self,
        repository: RepositoryId,
        request: u64,
        cx: &mut Context<'_>,
    ) {
        if let Some(waiting) = self.watching.remove(&request) {
            waiting.give_up(OpId(request), Some(repository), cx);
            cx.complete(OpId(request), Ok(Answer::Changed));
        }
    }

    /// Nobody waits any more for what a transaction has read.
    pub(in super::super) fn stop_watching(
        &mut self,
        txn: Txn,
        failure: &Failure,
        cx: &mut Context<'_>,
    ) {
        let stopped = self.watching.extract_if(.., |_, waiting| waiting.txn == txn);
        let stopped: Vec<_> = stopped.collect();
        assert!(stopped.len() <= 1, "{txn:?} waits {} times", stopped.len());
        for (op, waiting) in stopped {
            waiting.give_up(OpId(op), None, cx);
            cx.complete(OpId(op), Err(failure.clone()));
        }
    }

    /// Asks for watches again that were asked for some time ago.
    pub(in super::super) fn watch_again(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        let late = self.watching.extract_if(.., |_, waiting| waiting.due <= now);
        for (op, waiting) in late.collect::<Vec<_>>() {
            self.ask_to_watch(OpId(op), waiting, cx);
        }
    }
}

impl InteractiveWatch {
    /// A repository may have forgotten it, or never have heard of it: it is asked for again soon.
    pub fn ask_soon(&mut self) {
        self.due = Nanos(0);
    }

    /// Repositories need not watch any more, but for the one that has said so itself.
    fn give_up(&self, op: OpId, but: Option<RepositoryId>, cx: &mut Context<'_>) {
        for to in self.asked.iter().filter(|it| but != Some(**it)) {
            cx.send_to_repository(*to, Message::Unwatch { request: op.0 });
        }
    }

    /// Checks what holds of it: it waits for something, and somebody was asked.
    ///
    /// # Panics
    /// It does not.
    pub fn assert_invariants(&self) {
        assert!(!self.watched.is_empty(), "{:?} waits for nothing", self.txn);
        assert!(!self.asked.is_empty(), "{:?} waits, and nobody was asked", self.txn);
    }
}

impl InteractiveSlot {
    /// What it has read.
    fn watched(&self) -> WatchedReads {
        let reads = self.sets.reads.iter();
        let reads = reads.map(|read| (read.space, read.key.clone(), read.version)).collect();
        WatchedReads { reads, scans: self.scans.clone() }
    }
}
