//! Clients that wait for a change of what their transaction has read.
//!
//! The transaction ends, and what it has read goes to the repositories that it was read at, which
//! [keep watch](crate::two_phase::participant::waits::watches). The first of them that tells of a
//! change wakes the client; the others are told that nobody waits any more. While a client waits,
//! its watches are asked for again: soon where a link came, and once in a while in case that a
//! repository has forgotten them.

use muesli_core::limits::ENTRY_BYTES;
use muesli_core::parts::locator::Static;
use muesli_core::recorder::Status;
use muesli_core::{Answer, Failure, Nanos, NodeId, OpId, RepositoryId, Step, Txn, TxnId};

use super::Coordinator;
use super::slot::Slot;
use crate::two_phase::message::{Message, WatchRequest};
use crate::two_phase::{Context, Variant};

/// Somebody who waits for a change.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct WaitingClient<V: Variant> {
    op: OpId,
    /// Which transaction it was.
    pub(in crate::two_phase) txn: Txn,
    /// What is watched, by repository.
    parts: Vec<(RepositoryId, WatchRequest<V>)>,
    /// When it was asked for last.
    sent: Nanos,
}

impl<V: Variant> Coordinator<V> {
    /// A transaction ends, and its client waits until something that it has read has changed. What
    /// cannot be watched (reads that are not kept; at no snapshot more keys and ranges than a
    /// transaction may have) counts as changed.
    pub(in crate::two_phase) fn on_watch(&mut self, txn: Txn, cx: &mut Context<'_, V>) -> Step {
        let slot = match self.open(txn) {
            Ok(slot) => slot,
            Err(failure) => return Step::Done(Err(failure)),
        };
        let checked = slot.check_size(&cx.settings.limits);
        let snapshot = slot.reads_at().clone();
        let mut parts: Vec<(RepositoryId, WatchRequest<V>)> = Vec::new();
        self.next_request += 1;
        let request = self.next_request;
        let empty = WatchRequest { request, snapshot, reads: Vec::new(), scans: Vec::new() };
        let part_of = |parts: &mut Vec<(RepositoryId, WatchRequest<V>)>, to| match parts
            .iter()
            .position(|(known, _)| *known == to)
        {
            Some(place) => place,
            None => {
                parts.push((to, empty.clone()));
                parts.len() - 1
            }
        };
        let Slot { sets, seen, scanned, scanned_bytes, .. } = &self.slots[txn.slot as usize];
        let seen_bytes = seen.keys().map(|(_, key)| key.len() + ENTRY_BYTES).sum::<usize>();
        let seen_bytes = seen_bytes + scanned_bytes;
        let is_watched = seen_bytes <= cx.settings.limits.transaction_bytes;
        for ((space, key), found) in seen.iter().filter(|_| is_watched) {
            let partition = cx.catalog.partition(*space, key);
            let to = Static.replicas_of(partition, cx.catalog).next();
            let place = part_of(&mut parts, to.expect("every partition has its replicas"));
            parts[place].1.reads.push((*space, key.clone(), found.version));
        }
        for read in &sets.reads {
            let place = part_of(&mut parts, read.repository);
            parts[place].1.reads.push((read.space, read.key.clone(), read.version));
        }
        let scanned = scanned.iter().filter(|_| is_watched);
        for range in sets.scans.iter().chain(scanned) {
            let (lo, hi) = (&range.lo, range.hi.as_ref());
            for partition in cx.catalog.partitions_of_range(range.space, lo, hi) {
                let to = Static.replicas_of(partition, cx.catalog).next();
                let place = part_of(&mut parts, to.expect("every partition has its replicas"));
                if parts[place].1.scans.last() != Some(range) {
                    parts[place].1.scans.push(range.clone());
                }
            }
        }
        self.fail_operations(txn, &Failure::Ended, cx);
        self.end(txn, None, Status::Aborted, None, cx);
        if let Err(failure) = checked {
            return Step::Done(Err(failure));
        }
        if parts.is_empty() {
            return Step::Done(Ok(Answer::Changed));
        }
        assert!(parts.iter().all(|(_, part)| part.request == request), "one number for all");
        let op = self.next_op();
        let watching = WaitingClient { op, txn, parts, sent: cx.now() };
        watching.ask(cx);
        let before = self.watching.insert(request, watching);
        assert!(before.is_none(), "request {request} waits twice");
        self.set_sweep_timer(cx);
        Step::Wait(op)
    }

    /// Some wait for a change of what a transaction of this node writes.
    pub(in crate::two_phase) fn on_waiting(&mut self, txn: TxnId, waiting: Vec<(NodeId, u64)>) {
        let commit = self.committing.get_mut(txn.sequence).filter(|it| it.id == txn);
        if let Some(commit) = commit {
            commit.note_waiting(waiting);
        }
    }

    /// Something has changed that was watched, or may have.
    pub(in crate::two_phase) fn on_changed(&mut self, request: u64, cx: &mut Context<'_, V>) {
        if let Some(watching) = self.watching.remove(request) {
            watching.give_up(cx);
            cx.complete(watching.op, Ok(Answer::Changed));
        }
    }

    /// Nobody waits any more for what a transaction has read.
    pub(in crate::two_phase) fn stop_watching(
        &mut self,
        txn: Txn,
        failure: &Failure,
        cx: &mut Context<'_, V>,
    ) {
        let mut stopped = Vec::new();
        self.watching.retain(|it| {
            let is_its = it.txn == txn;
            stopped.extend(is_its.then(|| it.clone()));
            !is_its
        });
        for watching in stopped {
            watching.give_up(cx);
            cx.complete(watching.op, Err(failure.clone()));
        }
    }

    /// Asks for watches again that were asked for some time ago.
    pub(in crate::two_phase) fn watch_again(&mut self, cx: &mut Context<'_, V>) {
        let (now, patience) = (cx.now(), Nanos(cx.settings.in_doubt_after.0 / 3));
        for watching in self.watching.values_mut() {
            if watching.sent + patience <= now {
                watching.sent = now;
                watching.ask(cx);
            }
        }
    }
}

impl<V: Variant> WaitingClient<V> {
    fn ask(&self, cx: &mut Context<'_, V>) {
        for (to, request) in &self.parts {
            cx.send_to_repository(*to, Message::Watch(Box::new(request.clone())));
        }
    }

    /// A repository may have forgotten it, or never have heard of it: it is asked for again soon.
    pub(in crate::two_phase) fn ask_soon(&mut self) {
        self.sent = Nanos(0);
    }

    fn give_up(&self, cx: &mut Context<'_, V>) {
        for (to, WatchRequest { request, .. }) in &self.parts {
            cx.send_to_repository(*to, Message::Unwatch { request: *request });
        }
    }
}
