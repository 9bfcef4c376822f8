//! Requests under way: sent, sent again, answered, acknowledged. [`verdict`] says what the answers
//! come to, [`retry`] when a transaction is tried again after a conflict, and [`unanswered`] what
//! is told and remembered of those that were not answered in time.

mod retry;
mod unanswered;
mod verdict;

use std::sync::Arc;

use muesli_core::parts::votes::Votes;
use muesli_core::recorder::{Status, TxnRecord};
use muesli_core::{Address, Nanos, NodeId, RepositoryId, TxnId};

use super::calls::other_reader;
use super::master::Ruling;
use super::migration::issued;
use super::{Context, Coordinator, Purpose, RequestVerdict};
use crate::granola::Switches;
use crate::granola::message::{
    Agreement, Few, Message, Noted, ReplyOutcome, Repositories, Request, Shown,
};
use crate::granola::switches::GranolaSwitch;

pub(super) use retry::Again;

/// A request that is not settled: not answered by all its participants, or not known to be stable
/// at all of them.
///
/// Invariants: whoever has not answered or acknowledged takes part; while somebody waits for it,
/// its answers and those that are missing are all, and do not say yet what it comes to; who is
/// alone acknowledges nothing.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub request: Arc<Request>,
    /// Who has not answered.
    unanswered: Repositories,
    /// Who has not said that its end is stable there.
    unacknowledged: Repositories,
    /// The answers.
    ends: Few<(RepositoryId, ReplyOutcome)>,
    /// What it comes to, under a master that decides.
    pub ruling: Ruling,
    /// At a client that decides: the votes, to be shown with what they come to.
    pub shown: Vec<Shown>,
    /// Who is to be told; nobody once told.
    pub purpose: Option<Purpose>,
    /// When it was sent last.
    sent: Nanos,
    /// When that was, or when it was on its way still.
    quiet: Nanos,
    /// When its first attempt began.
    since: Nanos,
    /// Whether this attempt was sent more than once.
    repeated: bool,
    attempt: u32,
}

impl Purpose {
    /// A one-round transaction under way, as histories have it: it may take effect.
    fn record_running(&self, request: &Request) -> Option<TxnRecord> {
        match self {
            Purpose::Invoke(it) => Some(it.record(request, None, Status::Unknown, None)),
            Purpose::Read(_)
            | Purpose::Commit(..)
            | Purpose::Names
            | Purpose::Partitions(_)
            | Purpose::Issue(_)
            | Purpose::Move(_) => None,
        }
    }
}

impl Pending {
    fn new(
        mut request: Request,
        purpose: Purpose,
        switches: Switches,
        cx: &Context<'_>,
    ) -> Pending {
        let several = request.agreement != Agreement::Alone;
        request.master =
            cx.catalog.master_of(cx.me.node).filter(|_| several && switches.has_master());
        let unacknowledged = match request.agreement {
            Agreement::Alone => Repositories::new(),
            Agreement::Independent | Agreement::Coordinated => request.participants.clone(),
        };
        let voters = request.participants.clone();
        Pending {
            unanswered: request.participants.clone(),
            unacknowledged,
            request: Arc::new(request),
            ends: Few::new(),
            ruling: Ruling::Open(Votes::from_voters(voters)),
            shown: Vec::new(),
            purpose: Some(purpose),
            sent: cx.now(),
            quiet: cx.now(),
            since: cx.now(),
            repeated: false,
            attempt: 0,
        }
    }

    /// Whether what was sent for it last is on its way still.
    fn is_under_way(&self, cx: &Context<'_>) -> bool {
        let outstanding = |to: &RepositoryId| cx.is_outstanding(*to, self.sent);
        self.unanswered.iter().chain(&self.unacknowledged).any(outstanding)
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let Request { txn, participants, agreement, .. } = &*self.request;
        let takes_part = |it: &RepositoryId| participants.contains(it);
        assert!(self.unanswered.iter().all(takes_part), "{txn} is answered by others");
        assert!(self.unacknowledged.iter().all(takes_part), "{txn} is acknowledged by others");
        let alone = *agreement == Agreement::Alone;
        assert!(!alone || self.unacknowledged.is_empty(), "{txn} is acknowledged by who is alone");
        if self.purpose.is_some() {
            let all = self.ends.len() + self.unanswered.len();
            assert_eq!(all, participants.len(), "answers to {txn}, and those that are missing");
            assert!(self.verdict().is_none(), "{txn} has come to its end, and somebody waits");
        }
        if let Ruling::Open(votes) = &self.ruling {
            votes.assert_invariants();
        }
    }

    /// Whether somebody has not answered.
    fn waits(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// A one-round transaction under way, as histories have it: it may take effect.
    pub fn record_running(&self) -> Option<TxnRecord> {
        self.purpose.as_ref().and_then(|it| it.record_running(&self.request))
    }
}

impl Coordinator {
    /// Sends a request to its participants, or to who decides it on another node.
    pub(super) fn ask(&mut self, request: Request, purpose: Purpose, cx: &mut Context<'_>) {
        let pending = Pending::new(request, purpose, self.switches, cx);
        self.send(pending, cx);
    }

    fn send(&mut self, mut pending: Pending, cx: &mut Context<'_>) {
        let txn = pending.request.txn;
        self.note_holders(&pending.request, cx);
        if pending.request.follower_read {
            if let Some((repository, end, noted)) = self.answer_from_copy(&pending.request, cx) {
                self.pending.insert(txn.sequence, pending);
                self.note_data(txn, &end, &noted, cx);
                return self.on_reply(txn, repository, end, cx);
            }
            // Members that follow would only pass it on.
            Arc::make_mut(&mut pending.request).follower_read = !self.switches.is_out_of_order();
        }
        assert!(!pending.request.participants.is_empty(), "{txn} is asked of nobody");
        match pending.request.master {
            Some(master) => send_to_master(master, &pending.request, cx),
            None => send_to(&pending.request.participants, &pending.request, cx),
        }
        let before = self.pending.insert(txn.sequence, pending);
        assert!(before.is_none(), "{txn} is under way twice");
        self.set_sweep_timer(cx);
    }

    pub(super) fn on_reply(
        &mut self,
        txn: TxnId,
        repository: RepositoryId,
        end: ReplyOutcome,
        cx: &mut Context<'_>,
    ) {
        let Some(pending) = self.pending.get_mut(txn.sequence) else { return };
        if pending.request.txn != txn || !pending.unanswered.contains(&repository) {
            return; // Of an earlier life, or repeated.
        }
        pending.unanswered.retain(|other| *other != repository);
        let given_up = self.unknown.is_unknown(txn.sequence);
        if pending.purpose.is_none() && !given_up {
            return self.forget_settled(txn.sequence);
        }
        pending.ends.push((repository, end));
        let (ends, all) = (pending.ends.len(), pending.request.participants.len());
        assert!(ends <= all, "{ends} answers to {txn}, of {all}");
        let Some(verdict) = pending.verdict() else { return };
        pending.ends.clear();
        let Some(purpose) = pending.purpose.take() else {
            self.learn_late(txn, &verdict, cx);
            return self.forget_settled(txn.sequence);
        };
        let (request, since) = (pending.request.clone(), pending.since);
        let (attempt, repeated) = (pending.attempt, pending.repeated);
        self.forget_settled(txn.sequence);
        let in_time = since + cx.settings.give_up_after > cx.now();
        let is_unsure = request.is_update() && (repeated || !in_time);
        match (verdict, purpose) {
            (verdict, purpose)
                if is_unsure
                    && verdict.knows_nothing()
                    && self.switches.keeps(GranolaSwitch::DoubtsForgotten) =>
            {
                self.give_up(&request, purpose, cx);
                self.unknown.forget(txn.sequence);
            }
            (verdict, Purpose::Names) => self.on_names(verdict),
            (verdict, Purpose::Move(moving)) => self.on_round_end(moving, &request, verdict, cx),
            (RequestVerdict::Moved(at), purpose) if in_time => {
                self.learn_names(at, cx);
                self.try_again(&request, purpose, since, attempt, cx);
            }
            (RequestVerdict::Forgotten(at), purpose) if in_time => {
                let above =
                    Request { lower_bound: request.lower_bound.max(at), ..(*request).clone() };
                self.try_again(&above, purpose, since, attempt, cx);
            }
            (
                RequestVerdict::Conflict,
                purpose @ (Purpose::Read(_)
                | Purpose::Invoke(_)
                | Purpose::Partitions(_)
                | Purpose::Issue(_)),
            ) if in_time => {
                self.try_again(&request, purpose, since, attempt, cx);
            }
            (verdict, Purpose::Partitions(op)) => self.on_partitions(op, verdict, cx),
            (verdict, Purpose::Issue(op)) => cx.complete(op, issued(verdict)),
            (verdict, Purpose::Read(op)) => self.on_read_end(op, &request, verdict, cx),
            (verdict, Purpose::Commit(of, op)) => {
                self.on_commit_end(of, op, &request, verdict, cx);
            }
            (verdict, Purpose::Invoke(invocation)) => {
                self.on_invoke_end(invocation, &request, verdict, cx);
            }
        }
    }

    /// For histories: what the client will be told of. Where a participant answers twice, the first
    /// answer is the one that counts.
    pub(super) fn note_data(
        &self,
        txn: TxnId,
        end: &ReplyOutcome,
        noted: &Noted,
        cx: &mut Context<'_>,
    ) {
        let (Some(recorder), Some(all)) = (&mut cx.effects.recorder, &noted.0) else { return };
        let ReplyOutcome::Done { at, .. } = end else { return };
        let waits = self
            .pending
            .get(txn.sequence)
            .is_some_and(|pending| pending.request.txn == txn && pending.purpose.is_some());
        if waits
            && recorder
                .ran_for(txn)
                .all(|ran| !ran.shared || all.iter().all(|(part, _)| *part != ran.part))
        {
            for (part, operations) in all.iter() {
                recorder.shared(txn, *part, *at, operations.clone());
            }
        }
    }

    pub(super) fn on_acknowledge(&mut self, txn: TxnId, repository: RepositoryId) {
        let Some(pending) = self.pending.get_mut(txn.sequence) else { return };
        if pending.request.txn == txn {
            pending.unacknowledged.retain(|other| *other != repository);
            self.forget_settled(txn.sequence);
        }
    }

    /// Forgets a request once its client has been told and all participants have its end stable.
    /// One whose client was told that nobody knows is also to be answered: acknowledgements do not
    /// say how it ended.
    fn forget_settled(&mut self, sequence: u64) {
        let given_up = self.unknown.is_unknown(sequence);
        let settled = self.pending.get(sequence).is_some_and(|pending| {
            let alone = pending.request.agreement == Agreement::Alone;
            let answered = !(alone || given_up) || pending.unanswered.is_empty();
            pending.purpose.is_none() && pending.unacknowledged.is_empty() && answered
        });
        if settled {
            self.pending.remove(sequence);
        }
    }

    /// What was not answered or acknowledged goes out again. A client does not wait for ever: in
    /// the end it is told that nobody knows, and the transaction goes on.
    pub(super) fn send_again(&mut self, cx: &mut Context<'_>) {
        let (now, settings) = (cx.now(), cx.settings);
        let (mut given_up, mut elsewhere) = (Vec::new(), Vec::new());
        for pending in self.pending.values_mut() {
            if pending.is_under_way(cx) {
                pending.quiet = now;
                continue;
            }
            if pending.since + settings.give_up_after <= now
                && let Some(purpose) = pending.purpose.take()
            {
                given_up.push((pending.request.clone(), purpose));
            }
            if pending.quiet + settings.retry_after > now
                || pending.quiet + settings.retry_after + pending.request.patience() > now
            {
                continue;
            }
            if pending.purpose.is_some() && pending.request.reads_alone() {
                elsewhere.extend(
                    other_reader(&pending.request, cx.catalog)
                        .map(|other| (pending.request.txn.sequence, other)),
                );
            }
            (pending.sent, pending.quiet, pending.repeated) = (now, now, true);
            let mut missing = pending.unacknowledged.clone();
            if pending.purpose.is_some() || missing.is_empty() {
                missing.extend(pending.unanswered.iter().copied());
            }
            missing.sort_unstable();
            missing.dedup();
            if let Some(master) = pending.request.master.filter(|_| pending.waits()) {
                send_to_master(master, &pending.request, cx);
            }
            // A master may be dead: then they end it among themselves.
            send_to(&missing, &pending.request, cx);
        }
        for (request, purpose) in given_up {
            self.give_up(&request, purpose, cx);
        }
        for (sequence, other) in elsewhere {
            self.read_elsewhere(sequence, other, cx);
        }
    }
}

/// Sends a request to participants.
fn send_to(whom: &[RepositoryId], request: &Arc<Request>, cx: &mut Context<'_>) {
    for &participant in whom {
        cx.send_to_repository(participant, Message::Request(request.clone()));
    }
}

fn send_to_master(master: NodeId, request: &Arc<Request>, cx: &mut Context<'_>) {
    cx.send(Address::coordinator(master), Message::Request(request.clone()));
}
