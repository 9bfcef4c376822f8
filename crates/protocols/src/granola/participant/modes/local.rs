//! A transaction of this repository alone, for a coordinator of the same node that waits for it
//! ([`local_call`](crate::granola::coordinator)).

use crate::granola::message::{ReplyOutcome, Request};
use crate::granola::participant::{Context, Participant};

impl Participant {
    /// Does a transaction of this repository alone; `None`: somebody is before it or in its way, or
    /// it is to be done with others, or there is no room for it.
    pub(in crate::granola) fn perform_here(
        &mut self,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> Option<ReplyOutcome> {
        assert_eq!(request.participants[..], [self.id], "who takes part in {}", request.txn);
        if self.is_elsewhere(request, cx).is_some() || self.waits_for_company(request, cx) {
            return None;
        }
        if self.has_plans(request, cx) && self.lacks(request, cx).is_some() {
            return None;
        }
        if self.lacks_capacity(request, cx).is_some() {
            return None; // It is refused as all others are.
        }
        let is_free = self.queue.is_empty() && self.footprint_locks.is_empty();
        let at = if is_free {
            self.propose(request, cx)
        } else if !self.locking && request.read_only && self.reads_at_once(request, cx) {
            self.clock.done
        } else {
            return None;
        };
        let (end, _) = self.run_at(request, at, cx);
        self.count_for_memory(cx.settings);
        Some(end)
    }
}
