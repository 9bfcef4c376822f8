//! Operations that wait for a site.

use muesli_core::{Failure, Nanos, OpId, RepositoryId, Scan, SmallBytes, SpaceId, Txn};

use super::CertifiedCoordinator;
use crate::certified::Context;
use crate::certified::message::moment::ReadMoment;
use crate::certified::message::{FoundKey, Message};

/// An operation that waits.
#[derive(Clone, Debug)]
pub struct PendingOperation {
    /// Whose.
    pub txn: Txn,
    /// The number of its request.
    pub request: u64,
    /// What was asked, to be asked again.
    pub asked: Message,
    /// When that was, and when it was asked first.
    pub sent: Nanos,
    /// When the operation began.
    pub since: Nanos,
    /// When its site was heard of last, if that has said that it waits.
    pub observed: Nanos,
    /// Bytes of what was answered so far.
    pub bytes: usize,
    /// What it reads.
    pub kind: PendingReads,
}

impl PendingOperation {
    /// One that asks for this, and of which so much is known.
    pub fn new(
        txn: Txn,
        (request, asked): (u64, Message),
        (bytes, kind): (usize, PendingReads),
        cx: &Context<'_>,
    ) -> PendingOperation {
        let (sent, since, observed) = (cx.now(), cx.now(), cx.now());
        PendingOperation { txn, request, asked, sent, since, observed, bytes, kind }
    }
}

/// What an operation reads.
#[derive(Clone, Debug)]
pub enum PendingReads {
    /// Keys.
    Keys {
        /// Their space.
        space: SpaceId,
        /// Whether one was asked for by itself.
        single: bool,
        /// What is known so far, by place.
        values: Vec<Option<SmallBytes>>,
        /// Those that are not known, with their places, in order.
        missing: Vec<(usize, SmallBytes)>,
    },
    /// A range.
    Range {
        /// As it was asked for.
        scan: Scan,
        /// How many rows are wanted, those that the transaction has deleted among them.
        wanted: usize,
        /// What was found so far, in the order of the scan.
        rows: Vec<(SmallBytes, FoundKey)>,
    },
}

impl CertifiedCoordinator {
    /// At which moment a transaction asks its site, which has heard of it from now on.
    pub(super) fn moment_to_ask_for(&mut self, txn: Txn) -> ReadMoment {
        let running = self.running.get_mut(&txn.slot).expect("a transaction that runs");
        running.has_asked = true;
        running.moment()
    }

    /// A site has not forgotten a read: that waits for a cut.
    pub(super) fn on_waits(&mut self, request: u64, cx: &Context<'_>) {
        let operation = self.requests.get(&request).and_then(|op| self.operations.get_mut(op));
        if let Some(operation) = operation {
            operation.observed = cx.now();
        }
    }

    /// A site has no cut that a transaction can use, which is not to wait for one.
    pub(super) fn on_not_fresh(&mut self, request: u64, cx: &mut Context<'_>) {
        let Some((op, operation)) = self.take_operation(request, |_| true) else { return };
        let options = self.running.get(&operation.txn.slot).map(|it| it.options);
        let most = options.and_then(|it| it.staleness).map_or(Nanos(0), |it| it.most);
        let failure = Failure::NotFresh { most_ms: most.as_millis() };
        self.fail(operation.txn, &failure, cx);
        cx.complete(op, Err(failure));
    }

    /// Where a transaction is run that is open.
    pub(super) fn site_of(&self, txn: Txn) -> RepositoryId {
        self.running.get(&txn.slot).expect("a transaction that runs").site
    }

    /// An operation waits from now on, and what it waits for is asked.
    pub(super) fn wait(&mut self, op: OpId, mut operation: PendingOperation, cx: &mut Context<'_>) {
        operation.sent = cx.now();
        cx.send_to_repository(self.site_of(operation.txn), operation.asked.clone());
        let before = self.requests.insert(operation.request, op);
        assert!(before.is_none(), "request {} is of two operations", operation.request);
        let before = self.operations.insert(op, operation);
        assert!(before.is_none(), "{op:?} waits twice");
    }

    /// Takes the operation that waits for this request, if it is of such a kind.
    pub(super) fn take_operation(
        &mut self,
        request: u64,
        is_such: impl Fn(&PendingReads) -> bool,
    ) -> Option<(OpId, PendingOperation)> {
        let op = *self.requests.get(&request)?;
        let kind = &self.operations.get(&op).expect("a request is of an operation").kind;
        if !is_such(kind) {
            return None;
        }
        self.requests.remove(&request);
        let operation = self.operations.remove(&op).expect("a request is of an operation");
        Some((op, operation))
    }

    /// All operations of a transaction fail that wait.
    pub(super) fn fail_operations(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_>) {
        let waiting = self.operations.extract_if(.., |_, operation| operation.txn == txn);
        let waiting: Vec<_> = waiting.collect();
        for (op, operation) in waiting {
            self.requests.remove(&operation.request);
            cx.complete(op, Err(failure.clone()));
        }
    }
}
