//! How much memory a repository holds, and what it does where old versions take too much.
//!
//! An open snapshot keeps the versions that it may still read. Where those that were replaced take
//! more than the process allows, the repository serves no snapshot below a point that it has passed
//! while they grew from half of that: transactions that read below it are told that their snapshot
//! is too old, and may run again. This needs no agreement: a repository may refuse old snapshots
//! whenever it likes.

use std::fmt;

use muesli_core::memory::{Held, REPORT_BYTES};
use muesli_core::{Abort, Address, Nanos, NodeId, RepositoryId, Settings, TxnId};

use super::Participant;
use crate::doubts::{Asking, CLIENTS_ASKED_MAX, ClientsUntil};
use crate::two_phase::message::{Message, Prepare, Vote};
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant};

/// What a repository has reported of its memory.
#[derive(Clone)]
pub(in crate::two_phase) struct Reported<S> {
    held: Held,
    /// Up to where versions go first, should old ones take too much.
    next_low: Option<S>,
    /// How many bytes have come and gone since.
    moved: usize,
}

impl<S> Reported<S> {
    pub fn new() -> Reported<S> {
        Reported { held: Held::default(), next_low: None, moved: 0 }
    }
}

/// Not shown: when something was counted last makes no state another one.
impl<S> fmt::Debug for Reported<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Reported")
    }
}

impl<V: Variant> Participant<V> {
    /// Nothing is held here any more.
    pub(in crate::two_phase) fn take_back_report(&mut self, settings: &Settings) {
        settings.memory.report(self.reported.held, Held::default());
        self.reported.held = Held::default();
    }

    /// So many bytes have come or gone here, and are counted with the next report.
    #[inline]
    pub(in crate::two_phase) fn note_moved(&mut self, bytes: usize) {
        self.reported.moved += bytes;
    }

    /// Whether so much has come and gone that the process is to hear of it at once.
    #[inline]
    pub(in crate::two_phase) fn has_moved_much(&self) -> bool {
        self.reported.moved >= REPORT_BYTES
    }

    /// Tells the process what is held here, and drops old versions where there are too many.
    pub(in crate::two_phase) fn report_memory(&mut self, cx: &mut Context<'_, V>) {
        let (memory, now) = (&cx.settings.memory, self.held());
        assert!(now.old <= now.all, "{} bytes are old, of {} in all", now.old, now.all);
        memory.report(self.reported.held, now);
        (self.reported.held, self.reported.moved) = (now, 0);
        let old = memory.held().old;
        if old <= memory.old_limit / 2 {
            self.reported.next_low = None;
            return;
        }
        let committed = self.time.committed();
        let mark = self.reported.next_low.get_or_insert_with(|| committed.clone()).clone();
        if old > memory.old_limit {
            self.reported.next_low = Some(committed);
            self.drop_below(&mark, cx);
            let left = self.held();
            memory.report(self.reported.held, left);
            self.reported.held = left;
        }
    }

    /// Whether no key is known here, and no transaction.
    pub(in crate::two_phase) fn keeps_nothing(&self) -> bool {
        let no_transactions = self.table.prepared().next().is_none();
        let mut stores = self.spaces.iter().chain(self.whereabouts.pointers.iter());
        no_transactions && stores.all(|(_, versions)| versions.slots() == 0)
    }

    /// Keys and versions, what was prepared, and what is remembered of transactions.
    fn held(&self) -> Held {
        let (spaces, pointers) = (self.spaces.held(), self.whereabouts.pointers.held());
        Held { all: spaces.all + pointers.all + self.table.bytes() as u64, ..spaces }
    }

    /// Why a transaction is not prepared for the memory that it takes, if it is not. At the limit
    /// what adds nothing is prepared all the same, as long as that takes no more together than a
    /// transaction may, or there is none: nobody need decide what was prepared.
    pub(in crate::two_phase) fn lacks_capacity(
        &self,
        prepare: &Prepare<V>,
        cx: &Context<'_, V>,
    ) -> Option<Abort> {
        if !cx.settings.memory.is_full() {
            return None;
        }
        if prepare.adds() {
            return Some(Abort::OutOfMemory);
        }
        let others = self.table.prepared_bytes().adding_nothing;
        let most = cx.settings.limits.transaction_bytes;
        let is_much = others > 0 && others.saturating_add(prepare.held_bytes()) > most;
        is_much.then_some(Abort::Overloaded)
    }

    /// What is remembered of clients from now on is remembered at this time.
    pub(in crate::two_phase) fn tell_time(&mut self, cx: &Context<'_, V>) {
        if cx.catalog.visiting_coordinators {
            self.table.tell_time(cx.now());
        }
    }

    /// Remembers a vote of no or a decision for those who ask. What is settled is not remembered,
    /// and is no sign of life of its client: that may be about to be forgotten.
    pub(in crate::two_phase) fn remember(
        &mut self,
        txn: TxnId,
        vote: Vote<V>,
        cx: &Context<'_, V>,
    ) {
        let is_new = self.table.remember(txn, vote);
        if is_new && cx.catalog.is_client(txn.node) {
            self.table.note_client(txn.node);
        }
    }

    /// The log has a vote of no or a decision.
    pub(in crate::two_phase) fn remember_logged(&mut self, txn: TxnId, vote: Vote<V>) {
        self.table.remember(txn, vote);
    }

    /// Once in a while: of clients that were silent for long, what nobody asks for.
    pub(in crate::two_phase) fn forget_silent_clients(&mut self, cx: &mut Context<'_, V>) {
        if !cx.catalog.visiting_coordinators {
            return;
        }
        self.table.forget_retired(cx.now(), cx.settings.snapshot_lease);
        if cx.now() < self.forgets_at {
            return;
        }
        let lease = cx.settings.client_lease;
        self.forgets_at = cx.now() + Nanos(lease.0 / 8);
        let (catalog, reached) = (cx.catalog, self.reached());
        let kept = self.switches.keeps(FamilySwitch::KeepsCommitsOfSilent);
        let since = cx.now() - lease;
        let forgotten =
            self.table.forget_silent(since, kept, reached, |node| catalog.is_client(node));
        cx.effects.maintenance.clients_forgotten += forgotten;
        self.ask_about_clients(None, cx);
        if cfg!(debug_assertions) {
            self.table.assert_invariants();
        }
    }

    /// How far what was committed here has come.
    fn reached(&self) -> u64 {
        self.time.reached(&self.time.committed())
    }

    /// Asks all others about the next clients whose commits are kept for those in doubt.
    fn ask_about_clients(&mut self, mut after: Option<NodeId>, cx: &mut Context<'_, V>) {
        let (catalog, asked) = (cx.catalog, cx.now());
        let since = asked - cx.settings.client_lease;
        self.asking = None;
        loop {
            let may_go = |node| catalog.is_client(node);
            let kept = self.table.kept_for_others(since, after, CLIENTS_ASKED_MAX, may_go);
            if kept.is_empty() {
                return;
            }
            let (asking, others) = Asking::new(self.id, asked, kept, catalog);
            for other in others {
                let clients = asking.clients.clone();
                cx.send_to_repository(other, Message::AskDoubts { asked, clients });
            }
            self.asking = Some(asking);
            let Some(last) = self.forget_if_all_have_answered(cx) else { return };
            after = Some(last);
        }
    }

    /// Another repository keeps commits of these clients, for those in doubt.
    pub(in crate::two_phase) fn on_ask_doubts(
        &mut self,
        from: Address,
        asked: Nanos,
        clients: &[ClientsUntil],
        cx: &mut Context<'_, V>,
    ) {
        let most = clients.len();
        let (repository, clients) = (self.id, self.table.not_in_doubt(clients));
        assert!(clients.len() <= most, "an answer about clients that were not asked about");
        cx.send_when_logged(from, Message::NoDoubts { repository, asked, clients });
    }

    /// Another repository says of which of these clients it is in doubt of nothing.
    pub(in crate::two_phase) fn on_no_doubts(
        &mut self,
        repository: RepositoryId,
        asked: Nanos,
        clients: &[ClientsUntil],
        cx: &mut Context<'_, V>,
    ) {
        if let Some(asking) = &mut self.asking {
            asking.observe(repository, asked, clients);
            if let Some(last) = self.forget_if_all_have_answered(cx) {
                self.ask_about_clients(Some(last), cx);
            }
        }
    }

    /// The last client that was asked about, if all have answered.
    fn forget_if_all_have_answered(&mut self, cx: &mut Context<'_, V>) -> Option<NodeId> {
        let asking = self.asking.take_if(|it| it.is_over())?;
        let reached = self.reached();
        assert!(asking.clients.len() <= CLIENTS_ASKED_MAX, "asked about too many clients");
        for client in asking.clients {
            let forgotten = self.table.forget_commits(client, asking.asked, reached);
            cx.effects.maintenance.clients_forgotten += u64::from(forgotten);
        }
        Some(asking.last)
    }

    /// How many coordinators are known here.
    pub fn known_coordinators(&self) -> usize {
        self.table.known()
    }
}
