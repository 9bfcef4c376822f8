//! Requests that were not answered in time.

use muesli_core::Failure;

use super::Coordinator;
use crate::two_phase::coordinator::asked::{Asked, AskedKeys, PendingRequest};
use crate::two_phase::{Context, Variant};

impl<V: Variant> Coordinator<V> {
    /// Requests that were not answered go out again, to another replica; those that never are
    /// end their transaction. What is on its way still is neither.
    pub(in crate::two_phase) fn retry_requests(&mut self, cx: &mut Context<'_, V>) {
        let (now, settings) = (cx.now(), cx.settings);
        for request in self.requests.values_mut() {
            if cx.is_outstanding(request.to, request.sent) {
                request.quiet = now;
            }
        }
        let late: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, request)| !request.held && request.quiet + settings.retry_after <= now)
            .map(|(id, _)| id)
            .collect();
        for id in late {
            let Some(request) = self.requests.get(id) else { continue };
            let Some(operation) = self.operations.get(request.op.0) else { continue };
            if request.since + settings.give_up_after <= now {
                let (txn, after_ms) = (operation.txn, settings.give_up_after.as_millis());
                cx.effects.maintenance.given_up += 1;
                self.abort(txn, &Failure::Timeout { after_ms }, cx);
            } else {
                self.ask_others(id, cx);
            }
        }
    }

    /// Asks for everything in a request once more, each part of it at the replica after the one
    /// that was asked. Where these are several, each gets a request of its own; an answer to the
    /// old one that still comes is then nobody's.
    fn ask_others(&mut self, id: u64, cx: &mut Context<'_, V>) {
        let Some(mut request) = self.requests.remove(id) else { return };
        let mut groups = match V::keys_move(cx.catalog) {
            true => vec![(request.to, request.asked)],
            false => request.asked.by_next_replica(request.to, cx.catalog),
        };
        request.asked = Asked::Keys(AskedKeys::new());
        let operation = self.operations.get_mut(request.op.0).expect("requests have operations");
        let txn = operation.txn;
        assert!(!groups.is_empty(), "request {id} asked for nothing");
        operation.missing += groups.len() - 1;
        let Some(slot) = self.slot(txn) else { return };
        if slot.fixing == Some(id) {
            slot.fixing = None;
        }
        if groups.len() == 1 {
            (request.to, request.asked) = groups.remove(0);
            return self.issue(txn, id, request, cx);
        }
        for (to, asked) in groups {
            self.next_request += 1;
            let part = PendingRequest { to, asked, held: true, ..request };
            self.issue(txn, self.next_request, part, cx);
        }
    }
}
