//! Requests under way: sent, sent again, answered, acknowledged, tried again.

use std::sync::Arc;

use muesli_core::parts::votes::Votes;
use muesli_core::recorder::{Operations, Status, TxnRecord};
use muesli_core::{
    Abort, Address, Committed, Doubt, Failure, Nanos, NodeId, Outcome, RepositoryId, TxnId,
};

use super::calls::other_reader;
use super::interactive::commit::note_absent;
use super::master::Ruling;
use super::migration::issued;
use super::{AGAIN_TIMER, Context, Coordinator, Purpose, Verdict};
use crate::granola::Rules;
use crate::granola::message::{
    Agreement, End, Few, Message, Noted, Refusal, Repositories, Request, Shown,
};

/// So many transactions of unknown outcome are remembered, the newest ones.
const UNANSWERED_MAX: usize = 10_000;
/// The first pause after a conflict is at most so long; each further one at most twice as long.
const PAUSE: Nanos = Nanos::from_micros(200);
/// Pauses are not doubled more often than this.
const DOUBLINGS_MAX: u32 = 7;

/// A request that is not settled: not answered by all its participants, or not known to be stable
/// at all of them.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub request: Arc<Request>,
    /// Who has not answered.
    unanswered: Repositories,
    /// Who has not said that its end is stable there.
    unacknowledged: Repositories,
    /// The answers.
    ends: Few<(RepositoryId, End)>,
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

/// A transaction that met a conflict and is to be tried again.
#[derive(Clone, Debug)]
pub(super) struct Again {
    request: Request,
    pub purpose: Purpose,
    since: Nanos,
    attempt: u32,
}

impl Again {
    /// As [`Pending::record_running`].
    pub fn record_running(&self) -> Option<TxnRecord> {
        record_running(&self.request, Some(&self.purpose))
    }
}

fn record_running(request: &Request, purpose: Option<&Purpose>) -> Option<TxnRecord> {
    match purpose {
        Some(Purpose::Invoke(it)) => Some(it.record(request, None, Status::Unknown, None)),
        Some(_) | None => None,
    }
}

impl Pending {
    fn new(mut request: Request, purpose: Purpose, rules: Rules, cx: &Context<'_>) -> Pending {
        let several = request.agreement != Agreement::Alone;
        request.master = cx.catalog.master_of(cx.me.node).filter(|_| several && rules.master);
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

    /// Whether somebody has not answered.
    fn waits(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// A one-round transaction under way, as histories have it: it may take effect.
    pub fn record_running(&self) -> Option<TxnRecord> {
        record_running(&self.request, self.purpose.as_ref())
    }

    /// What the answers come to so far, if that is enough.
    fn verdict(&self) -> Option<Verdict> {
        let coordinated = self.request.agreement == Agreement::Coordinated;
        for (_, end) in &self.ends {
            match end {
                End::Conflict => return Some(Verdict::Conflict),
                End::Moved { at } => return Some(Verdict::Moved(*at)),
                End::Refused { at, refusal: Refusal::Aborted(Abort::Forgotten) } => {
                    return Some(Verdict::Forgotten(*at));
                }
                End::Refused { refusal, .. } if coordinated => {
                    return Some(Verdict::Refused(refusal.clone()));
                }
                End::Refused { .. } | End::Done { .. } => {}
            }
        }
        self.unanswered.is_empty().then(|| self.verdict_of_all())
    }

    /// What the answers of all participants come to, none of which met a conflict.
    fn verdict_of_all(&self) -> Verdict {
        let (mut place, mut answers, mut refused) = (None, Few::new(), None);
        for (repository, end) in &self.ends {
            match end {
                End::Done { at, answers: some } => {
                    // Of a reader: a participant that started again has voted twice.
                    if place.is_some_and(|(place, _)| place != *at) {
                        return Verdict::Conflict;
                    }
                    place = Some((*at, *repository));
                    answers.extend(some.iter().cloned());
                }
                End::Refused { refusal, .. } => refused = Some((*repository, refusal)),
                End::Conflict => return Verdict::Conflict,
                End::Moved { at } => return Verdict::Moved(*at),
            }
        }
        match (place, refused) {
            (Some((_, done)), Some((by, refusal))) if self.request.is_update() => {
                let text = half_done(done, by, refusal);
                Verdict::Refused(Refusal::Faulty(text))
            }
            (_, Some((_, refusal))) => Verdict::Refused(refusal.clone()),
            (Some((at, _)), None) => {
                answers.sort_by_key(|(part, _)| *part);
                answers.dedup_by_key(|(part, _)| *part);
                Verdict::Done(at, answers)
            }
            (None, None) => unreachable!("somebody takes part"),
        }
    }
}

/// An independent transaction did not keep what its class promises: that all participants come to
/// the same decision. What it did stands, where it did it; its client is told.
fn half_done(done: RepositoryId, by: RepositoryId, refusal: &Refusal) -> String {
    let why = match refusal {
        Refusal::Refused(reason) => String::from_utf8_lossy(reason.as_slice()).into_owned(),
        Refusal::Faulty(text) => text.clone(),
        Refusal::Aborted(reason) => reason.to_string(),
    };
    format!(
        "repository {} refused an independent transaction that took effect at repository {}: \
         {why}; a procedure that may refuse by data of its own repository needs class \
         `Coordinated`",
        by.0, done.0
    )
}

impl Coordinator {
    /// Sends a request to its participants, or to who decides it on another node.
    pub(super) fn ask(&mut self, request: Request, purpose: Purpose, cx: &mut Context<'_>) {
        let pending = Pending::new(request, purpose, self.rules, cx);
        self.send(pending, cx);
    }

    fn send(&mut self, mut pending: Pending, cx: &mut Context<'_>) {
        let txn = pending.request.txn;
        self.note_keepers(&pending.request, cx);
        if pending.request.nearby {
            if let Some((repository, end, noted)) = self.answer_from_copy(&pending.request, cx) {
                self.pending.insert(txn.sequence, pending);
                self.note_told(txn, &end, &noted, cx);
                return self.on_reply(txn, repository, end, cx);
            }
            // Members that follow would only pass it on.
            Arc::make_mut(&mut pending.request).nearby = !self.rules.out_of_order;
        }
        match pending.request.master {
            Some(master) => send_to_master(master, &pending.request, cx),
            None => send_to(&pending.request.participants, &pending.request, cx),
        }
        self.pending.insert(txn.sequence, pending);
        self.set_sweep_timer(cx);
    }

    pub(super) fn on_reply(
        &mut self,
        txn: TxnId,
        repository: RepositoryId,
        end: End,
        cx: &mut Context<'_>,
    ) {
        let Some(pending) = self.pending.get_mut(txn.sequence) else { return };
        if pending.request.txn != txn || !pending.unanswered.contains(&repository) {
            return; // Of an earlier life, or repeated.
        }
        pending.unanswered.retain(|other| *other != repository);
        let given_up = matches!(self.unanswered.get(&txn.sequence), Some(None));
        if pending.purpose.is_none() && !given_up {
            return self.forget_settled(txn.sequence);
        }
        pending.ends.push((repository, end));
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
                if is_unsure && verdict.knows_nothing() && self.rules.doubts_forgotten =>
            {
                self.give_up(&request, purpose, cx);
                self.unanswered.remove(&txn.sequence);
            }
            (verdict, Purpose::Names) => self.on_names(verdict),
            (verdict, Purpose::Move(moving)) => self.on_round_end(moving, &request, verdict, cx),
            (Verdict::Moved(at), purpose) if in_time => {
                self.learn_names(at, cx);
                self.try_again(&request, purpose, since, attempt, cx);
            }
            (Verdict::Forgotten(at), purpose) if in_time => {
                let above = Request { floor: request.floor.max(at), ..(*request).clone() };
                self.try_again(&above, purpose, since, attempt, cx);
            }
            (
                Verdict::Conflict,
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
    pub(super) fn note_told(&self, txn: TxnId, end: &End, noted: &Noted, cx: &mut Context<'_>) {
        let (Some(recorder), Some(all)) = (&mut cx.effects.recorder, &noted.0) else { return };
        let End::Done { at, .. } = end else { return };
        let waits = self
            .pending
            .get(txn.sequence)
            .is_some_and(|pending| pending.request.txn == txn && pending.purpose.is_some());
        if waits
            && recorder
                .ran_for(txn)
                .all(|ran| !ran.told || all.iter().all(|(part, _)| *part != ran.part))
        {
            for (part, operations) in all.iter() {
                recorder.told(txn, *part, *at, operations.clone());
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
        let given_up = matches!(self.unanswered.get(&sequence), Some(None));
        let settled = self.pending.get(sequence).is_some_and(|pending| {
            let alone = pending.request.agreement == Agreement::Alone;
            let answered = !(alone || given_up) || pending.unanswered.is_empty();
            pending.purpose.is_none() && pending.unacknowledged.is_empty() && answered
        });
        if settled {
            self.pending.remove(sequence);
        }
    }

    /// A transaction met a conflict: it is tried again, as another one, after a while that nobody
    /// can know beforehand and that grows.
    pub(super) fn try_again(
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
        self.again.insert((cx.now() + pause, request.txn.sequence), again);
        cx.set_timer(AGAIN_TIMER, pause);
    }

    /// Begins the attempts whose time has come, each as a new transaction.
    pub(super) fn on_again_timeout(&mut self, cx: &mut Context<'_>) {
        while let Some(entry) = self.again.first_entry() {
            let (due, _) = *entry.key();
            if due > cx.now() {
                let wait = due - cx.now();
                return cx.set_timer(AGAIN_TIMER, wait);
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
            let new = Pending::new(request, purpose, self.rules, cx);
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
        let refused = Verdict::Refused(Refusal::Faulty(failure.to_string()));
        self.on_invoke_end(invocation, request, refused, cx);
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

    /// A reader of one repository is not answered: it becomes another one, which asks another
    /// repository. An answer of the first one is nobody's then.
    fn read_elsewhere(&mut self, sequence: u64, other: Repositories, cx: &mut Context<'_>) {
        let Some(pending) = self.pending.remove(sequence) else { return };
        let Pending { request, purpose: Some(purpose), since, attempt, .. } = pending else {
            unreachable!("somebody waits for it")
        };
        let request = Request { participants: other, ..(*request).clone() };
        self.again.insert((cx.now(), sequence), Again { request, purpose, since, attempt });
        self.on_again_timeout(cx);
    }

    fn give_up(&mut self, request: &Request, purpose: Purpose, cx: &mut Context<'_>) {
        cx.effects.maintenance.given_up += 1;
        let after_ms = cx.settings.give_up_after.as_millis();
        let failure = match request.is_update() {
            true => Failure::Unknown { after_ms, txn: request.txn },
            false => Failure::Timeout { after_ms },
        };
        let status = if request.is_update() { Status::Unknown } else { Status::Aborted };
        match purpose {
            Purpose::Read(op) => {
                if let Some(txn) = self.operations.get(op.0).map(|operation| operation.txn) {
                    self.abort(txn, &failure, cx);
                }
            }
            Purpose::Commit(txn, op) => {
                self.end(txn, Some(request.txn), status, None, cx);
                cx.complete(op, Err(failure));
            }
            Purpose::Names => self.learning = false,
            Purpose::Partitions(op) | Purpose::Issue(op) => {
                cx.complete(op, Err(failure));
            }
            Purpose::Move(moving) => self.give_up_move(&moving, request, cx),
            Purpose::Invoke(invocation) => {
                let now = cx.now();
                if let Some(recorder) = &mut cx.effects.recorder {
                    let end = (status != Status::Unknown).then_some(now);
                    let record = invocation.record(request, end, status, None);
                    recorder.transaction(&record, &Operations::default());
                }
                cx.complete(invocation.op, Err(failure));
            }
        }
        if !request.is_update() {
            self.pending.remove(request.txn.sequence);
        } else {
            self.unanswered.insert(request.txn.sequence, None);
            if self.unanswered.len() > UNANSWERED_MAX {
                self.unanswered.pop_first();
            }
        }
    }

    /// The end of a transaction is known after its client was told that nobody knows.
    fn learn_late(&mut self, txn: TxnId, verdict: &Verdict, cx: &mut Context<'_>) {
        let outcome = match verdict {
            Verdict::Done(at, _) => Outcome::Committed(Committed { at: *at }),
            // An earlier copy may have been done.
            verdict if verdict.knows_nothing() && self.rules.doubts_forgotten => {
                self.unanswered.remove(&txn.sequence);
                return;
            }
            Verdict::Conflict | Verdict::Moved(_) | Verdict::Forgotten(_) => {
                Outcome::Aborted(Abort::Locked)
            }
            Verdict::Refused(Refusal::Aborted(reason)) => Outcome::Aborted(*reason),
            Verdict::Refused(..) => Outcome::Aborted(Abort::Rollback),
        };
        if let (Some(recorder), Verdict::Done(at, _)) = (&mut cx.effects.recorder, verdict) {
            recorder.applied(txn, *at);
        }
        if let Verdict::Done(at, answers) = verdict {
            note_absent(txn, *at, answers, cx);
        }
        self.unanswered.insert(txn.sequence, Some(outcome));
    }

    /// What has become of a transaction that was not answered in time.
    pub(super) fn outcome_of(&self, txn: TxnId) -> Outcome {
        if txn.incarnation != self.incarnation {
            return Outcome::NotKnown(Doubt::Elsewhere);
        }
        match self.unanswered.get(&txn.sequence) {
            Some(Some(outcome)) => *outcome,
            Some(None) => Outcome::NotKnown(Doubt::UnderWay),
            None => Outcome::NotKnown(Doubt::Forgotten),
        }
    }
}

/// Sends a request to participants.
pub(super) fn send_to(whom: &[RepositoryId], request: &Arc<Request>, cx: &mut Context<'_>) {
    for &participant in whom {
        cx.send_to_repository(participant, Message::Request(request.clone()));
    }
}

fn send_to_master(master: NodeId, request: &Arc<Request>, cx: &mut Context<'_>) {
    cx.send(Address::coordinator(master), Message::Request(request.clone()));
}

/// A number that differs from one transaction to the next, and not by one: a coordinator has no
/// chance of its own, and neighbours must not pause alike.
fn scatter(txn: TxnId) -> u64 {
    let mixed = txn.sequence ^ u64::from(txn.node.0) << 32 ^ u64::from(txn.incarnation) << 48;
    let mixed = (mixed ^ mixed >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}
