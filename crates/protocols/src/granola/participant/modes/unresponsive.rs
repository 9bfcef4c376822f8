//! A participant stays away: what does not need it goes on (section 5.3).
//!
//! In timestamp mode everything waits behind a transaction whose votes do not come, whether it
//! touches the same keys or not. After a while the repository goes into locking mode, as for a
//! coordinated transaction, and stays there for as long as anything is active that was then. Where
//! what is queued conflicts with itself, the order in which it will be done is not known, and with
//! it what it will touch. Then each claims *all that it may touch in any order*, as its procedures
//! declare it, whatever the others have claimed: against newcomers, not against each other. Among
//! themselves they are done in the order of their places, as before.
//!
//! With [`out_of_order`](super::out_of_order) none of this is needed, as nobody waits but who must.
//!
//! A transaction whose place is known and that conflicts with nothing before it is done at once:
//! whatever will come to stand before it stands before it now.

use std::sync::Arc;

use muesli_core::TxnId;
use muesli_core::parts::execution::footprint;
use muesli_core::parts::footprint_locks::Claim;

use super::WaitQueue;
use crate::granola::message::{Agreement, Install, ReplyOutcome, Request, Task, TimestampVote};
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;

impl Participant {
    /// Goes into locking mode if what is first in the queue has waited for too long.
    pub(in super::super) fn look_for_blocked(&mut self, cx: &mut Context<'_>) {
        let first = self.queue.first().map(|(_, txn)| &self.active[&txn]);
        let waits = first.is_some_and(|active| {
            active.place.is_none() && active.since + cx.settings.in_doubt_after <= cx.now()
        });
        if self.locking || !waits || self.queue.is_passed() {
            return;
        }
        self.perform_ready(cx);
        if !self.enter_locking(cx) {
            self.force_locking(cx);
        }
        self.blocked = self.active.keys().copied().collect();
        self.go_on(cx);
    }

    /// Whether something is active that waited as the repository went into locking mode.
    pub(in super::super) fn is_blocked(&mut self) -> bool {
        let active = &self.active;
        self.blocked.retain(|txn| active.contains_key(txn));
        !self.blocked.is_empty()
    }

    /// Claims all that the queued transactions may touch, whatever the order in which they will be
    /// done.
    pub(in super::super) fn force_locking(&mut self, cx: &mut Context<'_>) {
        self.locking = true;
        // What has kept its claims since the last time stands in the order of places, too.
        let all: Vec<_> = self.active.keys().copied().collect();
        all.into_iter().for_each(|txn| self.undo(txn));
        for (place, txn) in self.queue.all() {
            let active = &self.active[&txn];
            let (request, is_decided) = (active.request.clone(), active.place.is_some());
            let about = active.about;
            if request.agreement == Agreement::Alone || request.read_only {
                self.abort_unanswered(&request, cx);
                continue;
            }
            if request.agreement == Agreement::Coordinated {
                self.prepare_again(txn, cx);
                continue;
            }
            let claim = self.all_it_may_touch(&request, cx);
            if is_decided && !request.exchanges_data() && !self.footprint_locks.conflict(&claim) {
                self.queue.remove(WaitQueue::Placed, &(place, txn));
                self.active.remove(&txn);
                self.perform(&request, about, place, cx);
            } else {
                self.footprint_locks.hold(txn, claim);
            }
        }
    }

    /// Of a transaction that changes nothing or was not voted on: its coordinator is to try again.
    fn abort_unanswered(&mut self, request: &Arc<Request>, cx: &mut Context<'_>) {
        let active = self.active.remove(&request.txn).expect("it is queued");
        assert!(!active.is_prepared(), "{} is prepared, and is turned away", request.txn);
        self.queue.remove(active.wait_queue, &(active.bound, request.txn));
        if request.agreement == Agreement::Alone {
            self.refuse(request, TimestampVote::Conflict, cx);
        } else {
            self.end_dropped(&active, ReplyOutcome::Conflict, cx);
        }
    }

    /// Of a coordinated transaction of an earlier life: it is as it was when it was voted on, for
    /// nothing that it touched can have changed since.
    fn prepare_again(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let request = self.active[&txn].request.clone();
        let (prepared, claim) = self.try_run(&request, cx);
        self.active.put_aside(&txn, Some(prepared));
        let active = &self.active[&txn];
        self.queue.remove(active.wait_queue, &(active.bound, txn));
        self.footprint_locks.hold(txn, claim);
    }

    pub(in super::super) fn all_it_may_touch(
        &self,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> Claim {
        if !self.switches.keeps(GranolaSwitch::Supersets) {
            return self.try_run(request, cx).1;
        }
        let mut all = Claim::default();
        for part in &request.parts {
            if part.is_held_by(self.id, cx.catalog) {
                all.join(claim_of_task(&part.task, cx));
            }
        }
        all
    }
}

fn claim_of_task(task: &Task, cx: &Context<'_>) -> Claim {
    match task {
        Task::Call { procedure, arguments, .. } => {
            let known = cx.settings.procedures.get(procedure);
            let footprint_known = known.map(|known| footprint(known, cx.catalog, arguments));
            Claim::of_footprint(footprint_known.and_then(Result::ok).flatten().as_ref())
        }
        Task::Install(install) => {
            let Install { reads, scans, writes } = &**install;
            Claim {
                reads: reads.iter().map(|(space, key, _)| (*space, key.clone())).collect(),
                writes: writes.iter().map(|(space, key, _)| (*space, key.clone())).collect(),
                read_ranges: scans.iter().map(|seen| seen.range.clone()).collect(),
                ..Claim::default()
            }
        }
        Task::Read(keys) => Claim { reads: keys.clone(), ..Claim::default() },
        Task::Scan { range, .. } => Claim { read_ranges: vec![range.clone()], ..Claim::default() },
        // Nothing that is under way touches what moves.
        Task::Take { .. } | Task::Move(_) | Task::Names => Claim::default(),
    }
}
