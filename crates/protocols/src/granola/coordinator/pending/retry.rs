//! Transactions that met a conflict are tried again, each as a new one.

use muesli_core::recorder::TxnRecord;
use muesli_core::{Failure, Nanos, TxnId};

use super::super::{Context, Coordinator, GranolaCoordinatorTimer, Purpose, RequestVerdict};
use super::Pending;
use crate::granola::message::{Refusal, Repositories, Request};

/// The first pause after a conflict is at most so long; each further one at most twice as long.
const PAUSE: Nanos = Nanos::from_micros(200);
/// Pauses are not doubled more often than this.
const DOUBLINGS_MAX: u32 = 7;

/// A transaction that met a conflict and is to be tried again.
#[derive(Clone, Debug)]
pub(in super::super) struct Again {
    request: Request,
    pub(in super::super) purpose: Purpose,
    since: Nanos,
    attempt: u32,
}

impl Again {
    /// As [`Pending::record_running`].
    pub fn record_running(&self) -> Option<TxnRecord> {
        self.purpose.record_running(&self.request)
    }
}

impl Coordinator {
    /// A transaction met a conflict: it is tried again, as another one, after a while that nobody
    /// can know beforehand and that grows.
    pub(in super::super) fn try_again(
        &mut self,
        request: &Request,
        purpose: Purpose,
        since: Nanos,
        attempt: u32,
        cx: &mut Context<'_>,
    ) {
        let most = PAUSE.0 << attempt.min(DOUBLINGS_MAX);
        let pause = Nanos(1 + scatter(request.txn) % most);
        let again = Again { request: request.clone(), purpose, since, attempt: attempt + 1 };
        let before = self.again.insert((cx.now() + pause, request.txn.sequence), again);
        assert!(before.is_none(), "{} is tried again twice", request.txn);
        cx.set_timer(GranolaCoordinatorTimer::Retry, pause);
    }

    /// Begins the attempts whose time has come, each as a new transaction.
    pub(in super::super) fn on_again_timeout(&mut self, cx: &mut Context<'_>) {
        while let Some(entry) = self.again.first_entry() {
            let (due, _) = *entry.key();
            if due > cx.now() {
                let wait = due - cx.now();
                return cx.set_timer(GranolaCoordinatorTimer::Retry, wait);
            }
            let Again { mut request, purpose, since, attempt } = entry.remove();
            let purpose = match purpose {
                Purpose::Move(moving) => {
                    self.go_round(moving, cx);
                    continue;
                }
                purpose => purpose,
            };
            if let Err(failure) = self.route(&mut request, &purpose, cx) {
                self.fail(&request, purpose, failure, cx);
                continue;
            }
            request.settled_below = self.settled_below();
            request.txn = self.next_txn_id();
            if let Purpose::Commit(txn, _) = purpose
                && let Some(slot) = self.slot(txn)
            {
                slot.ending = Some(request.txn.sequence);
            }
            let new = Pending::new(request, purpose, self.switches, cx);
            let pending = Pending { since, attempt, ..new };
            self.send(pending, cx);
        }
    }

    /// A transaction cannot be tried again as it was asked for.
    fn fail(
        &mut self,
        request: &Request,
        purpose: Purpose,
        failure: Failure,
        cx: &mut Context<'_>,
    ) {
        let Purpose::Invoke(invocation) = purpose else { unreachable!("{failure}") };
        let refused = RequestVerdict::Refused(Refusal::Faulty(failure.to_string()));
        self.on_invoke_end(invocation, request, refused, cx);
    }

    /// A reader of one repository is not answered: it becomes another one, which asks another
    /// repository. An answer of the first one is nobody's then.
    pub(super) fn read_elsewhere(
        &mut self,
        sequence: u64,
        other: Repositories,
        cx: &mut Context<'_>,
    ) {
        let Some(pending) = self.pending.remove(sequence) else { return };
        let Pending { request, purpose: Some(purpose), since, attempt, .. } = pending else {
            unreachable!("somebody waits for it")
        };
        let request = Request { participants: other, ..(*request).clone() };
        self.again.insert((cx.now(), sequence), Again { request, purpose, since, attempt });
        self.on_again_timeout(cx);
    }
}

/// A number that differs from one transaction to the next, and not by one: a coordinator has no
/// chance of its own, and neighbours must not pause alike.
fn scatter(txn: TxnId) -> u64 {
    let mixed = txn.sequence ^ u64::from(txn.node.0) << 32 ^ u64::from(txn.incarnation) << 48;
    let mixed = (mixed ^ mixed >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}
