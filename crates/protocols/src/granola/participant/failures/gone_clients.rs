//! Clients that are gone: what they leave takes no room.
//!
//! A client that closes says that its transactions are settled. One that is killed leaves their
//! ends, with what they gave, and what participants were told in them. Once in a while a timer
//! looks for clients that were silent for their lease. What their transactions gave goes at once,
//! for nobody is there to be told; one that was only cut off is told that answers are missing
//! ([`AnswerLost`](muesli_core::Failure::AnswerLost)), or reads again. That they are done, and what
//! participants were told, is kept for those that still wait for it, so the others are asked
//! whether anything of the client is under way at them ([`doubts`](crate::doubts)); when all have
//! said no, it goes. Nothing new can come to wait for it: whoever takes part in a transaction that
//! was done here had voted on it, stably, and so had it under way as it was asked, or was through
//! with it. What is of a client's earlier lives goes in the same way while it speaks: nothing new
//! of these is ever taken up.
//!
//! # Requests that come late
//! A copy of a request may come after its transaction was forgotten, from a buffer or from a client
//! that was cut off, and is not to be done a second time. What is done here lies above all that
//! the request's session had seen, which the request says, and at or below what is done here when
//! it is forgotten. So the memory keeps one timestamp, the *lower bound*: how far this repository
//! had come when a client was forgotten last. A client that is not known gets that as its own lower
//! bound, and what it asks for below is refused, with the lower bound. If the coordinator asked
//! once, nobody has done it, and it asks again above the lower bound, as another transaction. If it
//! asked more than once, or has given up, an earlier copy may have been done: then it does not know
//! what became of the transaction, and says so.

use std::collections::BTreeSet;

use muesli_core::{Address, Nanos, RepositoryId, Timestamp, TxnId};

use crate::doubts::{Asking, CLIENTS_ASKED_MAX, ClientsUntil};
use crate::granola::message::{Message, Request};
use crate::granola::participant::{Context, GranolaParticipantTimer, Participant};
use crate::granola::switches::GranolaSwitch;

impl Participant {
    /// Where clients are known, they are looked for until none is.
    pub(in super::super) fn set_silent_timer(&mut self, cx: &mut Context<'_>) {
        if !self.silent_timer_set && self.memory.knows_clients() {
            self.silent_timer_set = true;
            cx.set_timer(
                GranolaParticipantTimer::Silent,
                Nanos(cx.settings.client_lease.0 / 8 + 1),
            );
        }
    }

    pub(in super::super) fn on_silent_timeout(&mut self, cx: &mut Context<'_>) {
        self.silent_timer_set = false;
        let (now, lease) = (cx.now(), cx.settings.client_lease);
        let forgotten = self.memory.forget_silent(now, lease, self.clock.done);
        cx.effects.maintenance.clients_forgotten += forgotten;
        self.memory.forget_retired(cx.now(), cx.settings.snapshot_lease);
        self.ask_about_clients(None, cx);
        if cfg!(debug_assertions) {
            self.memory.assert_invariants();
            self.active.assert_invariants();
        }
        self.report_memory(cx.settings);
        self.set_silent_timer(cx);
    }

    /// Asks all others about the next clients that left something.
    fn ask_about_clients(&mut self, mut after: Option<ClientsUntil>, cx: &mut Context<'_>) {
        self.asking = None;
        let deferred = self.deferred_ids();
        loop {
            let left = self.memory.left_by_clients(after);
            let left = left.filter(|of| !self.has_under_way(*of, &deferred));
            let left: Vec<ClientsUntil> = left.take(CLIENTS_ASKED_MAX).collect();
            if left.is_empty() {
                return;
            }
            let (asking, others) = Asking::new(self.id, cx.now(), left, cx.catalog);
            for other in others {
                let (asked, clients) = (asking.asked.0, asking.clients.clone());
                cx.send_to_repository(other, Message::AskDoubts { asked, clients });
            }
            self.asking = Some(asking);
            let Some(last) = self.forget_if_all_have_answered() else { return };
            after = Some(last);
        }
    }

    /// Up to where a request may have been done and forgotten, if it may.
    pub(in super::super) fn may_be_forgotten(
        &self,
        request: &Request,
        cx: &Context<'_>,
    ) -> Option<Timestamp> {
        let is_judged = self.switches.keeps(GranolaSwitch::RefusesForgotten)
            && cx.catalog.is_client(request.txn.node);
        let lower_bound = self.memory.may_be_forgotten(request.txn, request.lower_bound);
        lower_bound.filter(|_| is_judged && !request.reads_alone())
    }

    /// What waits for locking mode, in order.
    fn deferred_ids(&self) -> BTreeSet<TxnId> {
        self.deferred.iter().map(|it| it.request.txn).collect()
    }

    /// Whether anything of a client is under way here, where so many are deferred.
    fn has_under_way(&self, (node, incarnation): ClientsUntil, deferred: &BTreeSet<TxnId>) -> bool {
        let end = TxnId { node, incarnation, sequence: 0 };
        let all = TxnId { incarnation: 0, ..end }..end;
        self.active.range(all.clone()).next().is_some() || deferred.range(all).next().is_some()
    }

    /// Another repository keeps transactions of these clients.
    pub(in super::super) fn on_ask_doubts(
        &mut self,
        from: Address,
        asked: u64,
        clients: &[ClientsUntil],
        cx: &mut Context<'_>,
    ) {
        let deferred = self.deferred_ids();
        let has_none = |of: &ClientsUntil| !self.has_under_way(*of, &deferred);
        let clients = clients.iter().copied().filter(has_none).collect();
        let answer = Message::NoDoubts { repository: self.id, asked, clients };
        cx.send_when_logged(from, answer);
    }

    /// Another repository says of which of these clients nothing is under way there.
    pub(in super::super) fn on_no_doubts(
        &mut self,
        repository: RepositoryId,
        asked: u64,
        clients: &[ClientsUntil],
        cx: &mut Context<'_>,
    ) {
        if let Some(asking) = &mut self.asking {
            asking.observe(repository, Nanos(asked), clients);
            if let Some(last) = self.forget_if_all_have_answered() {
                self.ask_about_clients(Some(last), cx);
            }
        }
    }

    /// The last client that was asked about, if all have answered.
    fn forget_if_all_have_answered(&mut self) -> Option<ClientsUntil> {
        let asking = self.asking.take_if(|it| it.is_over())?;
        assert!(asking.clients.len() <= CLIENTS_ASKED_MAX, "asked about too many clients");
        for client in asking.clients {
            self.memory.forget_client(client, asking.asked, self.clock.done);
        }
        Some((asking.last, u32::MAX))
    }
}
