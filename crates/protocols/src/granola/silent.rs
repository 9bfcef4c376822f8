//! Clients that are gone: what they leave takes no room.
//!
//! A client that closes says that its transactions are settled. One that is killed leaves their
//! ends, with what they gave, and what participants were told in them. Once in a while a timer
//! looks for clients that were silent for their lease. What their transactions gave goes at once,
//! for nobody is there to be told. What participants were told is kept for those that still wait
//! for it, so the others are asked whether anything of the client is under way at them
//! ([`doubts`](crate::doubts)); when all have said no, it goes. Nothing new can come to wait for
//! it: whoever takes part in a transaction that was done here had voted on it, stably, and so had
//! it under way as it was asked, or was through with it. What stays is the fact that a transaction
//! was done: a late copy of its request is not to be done a second time.

use std::collections::BTreeSet;

use muesli_core::{Address, Nanos, RepositoryId, TxnId};

use super::message::Message;
use super::participant::{Context, Participant};
use crate::doubts::{Asking, CLIENTS_ASKED_MAX, ClientsUntil};

/// Looks for clients that were silent for long.
pub(super) const SILENT_TIMER: u32 = 7;

impl Participant {
    /// Where clients are known, they are looked for until none is.
    pub(super) fn set_silent_timer(&mut self, cx: &mut Context<'_>) {
        if !self.silent_timer_set && self.memory.knows_clients() {
            self.silent_timer_set = true;
            cx.set_timer(SILENT_TIMER, Nanos(cx.settings.client_lease.0 / 8 + 1));
        }
    }

    pub(super) fn on_silent_timeout(&mut self, cx: &mut Context<'_>) {
        self.silent_timer_set = false;
        self.memory.forget_silent(cx.now(), cx.settings.client_lease);
        self.memory.forget_retired(cx.now(), cx.settings.snapshot_lease);
        self.ask_about_clients(None, cx);
        if cfg!(debug_assertions) {
            self.memory.assert_counts();
        }
        self.report_memory(cx.settings);
        self.set_silent_timer(cx);
    }

    /// Asks all others about the next clients that left what participants were told.
    fn ask_about_clients(&mut self, after: Option<ClientsUntil>, cx: &mut Context<'_>) {
        self.asking = None;
        let deferred = self.deferred_ids();
        let may_go = |of| !self.has_under_way(of, &deferred);
        let told = self.memory.told_to_silent(after, CLIENTS_ASKED_MAX, may_go);
        if told.is_empty() {
            return;
        }
        let (asking, others) = Asking::new(self.id, cx.now(), told, cx.catalog);
        for other in others {
            let (asked, clients) = (asking.asked.0, asking.clients.clone());
            cx.send_to_repository(other, Message::AskDoubts { asked, clients });
        }
        self.asking = Some(asking);
        self.forget_if_all_have_answered(cx);
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

    /// Another repository keeps what was told of transactions of these clients.
    pub(super) fn on_ask_doubts(
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
    pub(super) fn on_no_doubts(
        &mut self,
        repository: RepositoryId,
        asked: u64,
        clients: &[ClientsUntil],
        cx: &mut Context<'_>,
    ) {
        if let Some(asking) = &mut self.asking {
            asking.hear(repository, Nanos(asked), clients);
            self.forget_if_all_have_answered(cx);
        }
    }

    fn forget_if_all_have_answered(&mut self, cx: &mut Context<'_>) {
        let Some(asking) = self.asking.take_if(|it| it.is_over()) else { return };
        let last = asking.last;
        for client in asking.clients {
            self.memory.forget_told(client, asking.asked);
        }
        self.ask_about_clients(Some((last, u32::MAX)), cx);
    }
}
