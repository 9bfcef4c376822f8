//! Clients that wait for a change of what their transaction has read.
//!
//! The transaction ends, and what it has read goes to its site, which tells of the first change
//! that it applies. While a client waits its watch is asked for once more now and then, in case
//! that the site has forgotten it.

use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::{Abort, Answer, Failure, Nanos, OpId, RepositoryId, Step, Txn};

use super::CertifiedCoordinator;
use super::running::RunningTransaction;
use crate::certified::Context;
use crate::certified::message::Message;
use crate::certified::message::command::{ReadKey, ReadRange};

/// Somebody who waits for a change.
#[derive(Clone, Debug)]
pub struct WaitingReader {
    op: OpId,
    /// Which transaction it was.
    txn: Txn,
    /// Where.
    site: RepositoryId,
    reads: Vec<ReadKey>,
    ranges: Vec<ReadRange>,
    /// When it was asked for last.
    sent: Nanos,
}

impl CertifiedCoordinator {
    /// A transaction ends, and its client waits until something that it has read has changed.
    pub(super) fn watch(&mut self, txn: Txn, cx: &mut Context<'_>) -> Step {
        let id = self.id(self.sequence);
        let (ended, command) = match self.open(txn) {
            Ok(running) => {
                let RunningTransaction { site, begin, .. } = *running;
                let ended = RunningTransaction::new(running.options, site, begin);
                (ended, running.command(id))
            }
            Err(failure) => return Step::Done(Err(failure)),
        };
        let site = ended.site;
        self.fail(txn, &Failure::Aborted(Abort::Rollback), cx);
        let limit = cx.settings.limits.transaction_bytes;
        if let Err(failure) = check_size(Limit::Transaction, command.bytes(), limit) {
            return Step::Done(Err(failure));
        }
        let (reads, ranges) = (command.reads, command.ranges);
        if reads.is_empty() && ranges.is_empty() {
            return Step::Done(Ok(Answer::Changed)); // It would wait for ever.
        }
        if ended.options.tried_since > Nanos(0) && !reads.is_empty() {
            self.give_claim_back(ended, &reads, cx);
        }
        let (request, op) = (self.next_number(), OpId(self.next_number()));
        assert!(!self.running.contains_key(&txn.slot), "{txn:?} waits, and goes on");
        let waiting = WaitingReader { op, txn, site, reads, ranges, sent: cx.now() };
        self.ask_to_watch(request, &waiting, cx);
        let before = self.waiting.insert(request, waiting);
        assert!(before.is_none(), "request {request} waits twice");
        Step::Wait(op)
    }

    fn ask_to_watch(&self, request: u64, waiting: &WaitingReader, cx: &mut Context<'_>) {
        let (reads, ranges) = (waiting.reads.clone(), waiting.ranges.clone());
        cx.send_to_repository(waiting.site, Message::Watch { request, reads, ranges });
    }

    /// Something has changed, or may have.
    pub(super) fn on_changed(&mut self, request: u64, cx: &mut Context<'_>) {
        if let Some(waiting) = self.waiting.remove(&request) {
            cx.complete(waiting.op, Ok(Answer::Changed));
        }
    }

    /// Nobody waits any more for what a transaction has read.
    pub(super) fn stop_watching(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_>) {
        let stopped = self.waiting.extract_if(.., |_, waiting| waiting.txn == txn);
        let stopped: Vec<_> = stopped.collect();
        assert!(stopped.len() <= 1, "{txn:?} waits {} times", stopped.len());
        for (request, waiting) in stopped {
            cx.send_to_repository(waiting.site, Message::Unwatch { request });
            cx.complete(waiting.op, Err(failure.clone()));
        }
    }

    /// Nobody is told any more of changes at a site: who waits there looks again.
    pub(super) fn wake_watchers_of(&mut self, site: RepositoryId, cx: &mut Context<'_>) {
        let woken = self.waiting.extract_if(.., |_, waiting| waiting.site == site);
        for (_, waiting) in woken.collect::<Vec<_>>() {
            cx.complete(waiting.op, Ok(Answer::Changed));
        }
    }

    /// Checks what holds of those who wait.
    ///
    /// # Panics
    /// It does not.
    pub(super) fn assert_waiting(&self) {
        for waiting in self.waiting.values() {
            assert!(!self.running.contains_key(&waiting.txn.slot), "it waits, and goes on");
        }
    }

    /// Asks for watches again that were asked for some time ago.
    pub(super) fn watch_again(&mut self, cx: &mut Context<'_>) {
        let (now, patience) = (cx.now(), Nanos(cx.settings.in_doubt_after.0 / 3));
        let mut late = Vec::new();
        for (request, waiting) in &mut self.waiting {
            if waiting.sent + patience <= now {
                waiting.sent = now;
                late.push(*request);
            }
        }
        late.iter().for_each(|request| self.ask_to_watch(*request, &self.waiting[request], cx));
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Coordinator as _, NodeId, TxnOptions};

    use super::*;
    use crate::certified::Switches;

    #[test]
    #[should_panic(expected = "it waits, and goes on")]
    fn who_waits_does_nothing_else() {
        let mut coordinator = CertifiedCoordinator::new(NodeId(0), 1, &Switches::default());
        let (txn, site) = (Txn { slot: 1, generation: 0 }, RepositoryId(0));
        let (op, reads, ranges, sent) = (OpId(2), Vec::new(), Vec::new(), Nanos(0));
        let waiting = WaitingReader { op, txn, site, reads, ranges, sent };
        coordinator.waiting.insert(0, waiting);
        coordinator.assert_waiting();
        let running = RunningTransaction::new(TxnOptions::default(), site, Nanos(0));
        coordinator.running.insert(1, running);
        coordinator.assert_waiting();
    }
}
