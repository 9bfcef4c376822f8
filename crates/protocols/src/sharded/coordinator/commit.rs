//! The end of a transaction.

use std::collections::BTreeMap;

use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::recorder::{Recorder, Status};
use muesli_core::{
    Address, Answer, Committed, Decision, Failure, Here, Invoked, Nanos, OpId, RepositoryId, Role,
    SmallBytes, Step, Timestamp, Txn, TxnId,
};

use super::ShardedCoordinator;
use super::running::{DeferredEnd, ShardedTransaction};
use crate::certified::message::command::{CallsEnd, CertifiedCommand};
use crate::sharded::locator::{ShardId, shard_of};
use crate::sharded::message::Message;
use crate::sharded::{Context, Sharded};

/// After so many times in which a member has not answered the next one is asked for a commit.
const TIMES_AT_A_MEMBER: u32 = 4;

/// A commit that is not answered.
#[derive(Clone, Debug)]
pub struct ShardedCommit {
    /// Who waits; `None`: the client was told that nobody knows.
    op: Option<OpId>,
    /// The transaction, for the history.
    transaction: ShardedTransaction,
    /// What each shard has to do with it.
    parts: BTreeMap<ShardId, CommitPart>,
    /// The shard of each procedure, in order; none: it has none.
    fragments: Vec<ShardId>,
    /// When it was first asked.
    since: Nanos,
}

/// What a shard has to do with a commit, and what it says of it.
#[derive(Clone, Debug)]
struct CommitPart {
    command: CertifiedCommand,
    /// The member that was asked last, when, and how often.
    to: RepositoryId,
    sent: Nanos,
    attempts: u32,
    /// How it ended.
    end: Option<(Decision, Option<CallsEnd>)>,
}

impl ShardedCommit {
    /// Writes it into a history, unless that has it.
    pub fn record_unanswered(&self, id: TxnId, recorder: &mut Recorder) {
        if self.op.is_some() {
            self.transaction.record_at(id, Status::Unknown, recorder);
        }
    }

    fn participants(&self) -> Vec<ShardId> {
        self.parts.keys().copied().collect()
    }

    /// How it ended, if all is known that its client is to be told: of procedures what each shard
    /// says.
    fn end(&self) -> Option<(Decision, Result<Vec<SmallBytes>, CallsEnd>)> {
        let ends = || self.parts.values().filter_map(|part| part.end.as_ref());
        let (decision, _) = ends().next()?;
        if self.fragments.is_empty() {
            return Some((*decision, Ok(Vec::new())));
        }
        if ends().count() < self.parts.len() {
            return None;
        }
        let refused = self.fragments.iter().filter_map(|shard| self.parts[shard].end.as_ref());
        let mut refused = refused.filter_map(|(_, calls)| calls.as_ref());
        let refused = refused.find(|calls| !matches!(calls, CallsEnd::Given { .. }));
        if let Some(refused) = refused {
            return Some((*decision, Err(refused.clone())));
        }
        let given = self.parts.iter().filter_map(|(shard, part)| match &part.end {
            Some((_, Some(CallsEnd::Given { results }))) => Some((*shard, results.iter())),
            Some(_) | None => None,
        });
        let mut given: BTreeMap<ShardId, _> = given.collect();
        let next = |shard| given.get_mut(shard).and_then(Iterator::next).cloned();
        Some((*decision, Ok(self.fragments.iter().filter_map(next).collect())))
    }
}

impl ShardedCoordinator {
    pub(super) fn commit(
        &mut self,
        txn: Txn,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) -> Step {
        if let Err(failure) = self.open(txn) {
            return Step::Done(Err(failure));
        }
        // Reads that are under way as their transaction is to end have come too late.
        self.fail_operations(txn, &Failure::Ended, cx);
        let running = self.running.get_mut(&txn.slot).expect("an open transaction");
        if !running.is_beyond_clocks && !running.sets.writes.is_empty() {
            self.numbers += 1;
            let op = OpId(self.numbers);
            running.ends = Some(DeferredEnd { op, calls: None });
            self.ask_clocks(txn, here, cx);
            return Step::Wait(op);
        }
        let mut running = self.running.remove(&txn.slot).expect("an open transaction");
        if running.sets.writes.is_empty() {
            return self.end_here(txn, &running, here, cx);
        }
        let id = self.id(self.sequence + 1);
        let commands = running.commands(id, cx.catalog);
        let limit = cx.settings.limits.transaction_bytes;
        let bytes = commands.values().map(CertifiedCommand::bytes).sum();
        self.release(txn, &running);
        if let Err(failure) = check_size(Limit::Transaction, bytes, limit) {
            let id = self.unasked_id();
            running.record(id, Status::Aborted, (Some(cx.now()), None), cx);
            return Step::Done(Err(failure));
        }
        self.sequence += 1;
        let op = OpId(self.next_number());
        self.ask_for_commit((id, op), commands, (running, Vec::new()), cx);
        Step::Wait(op)
    }

    /// Asks a member of each shard for a commit.
    pub(super) fn ask_for_commit(
        &mut self,
        (id, op): (TxnId, OpId),
        commands: BTreeMap<ShardId, CertifiedCommand>,
        (transaction, fragments): (ShardedTransaction, Vec<ShardId>),
        cx: &mut Context<'_>,
    ) {
        assert!(!commands.is_empty(), "{id} has nothing to commit");
        let now = cx.now();
        let parts = commands.into_iter().map(|(shard, command)| {
            let to = self.nearest.of(shard, 0, (self.node, cx.catalog), now);
            let (sent, attempts, end) = (now, 0, None);
            (shard, CommitPart { command, to, sent, attempts, end })
        });
        let parts = parts.collect();
        let commit = ShardedCommit { op: Some(op), transaction, parts, fragments, since: now };
        let before = self.commits.insert(id.sequence, commit);
        assert!(before.is_none(), "{id} commits twice");
        let settled_below = self.settled_below();
        assert!(settled_below <= id.sequence, "{id} settles itself");
        let commit = &self.commits[&id.sequence];
        for part in commit.parts.values() {
            let (participants, command) = (commit.participants(), part.command.clone());
            let ask = Message::Commit { settled_below, again: false, participants, command };
            cx.send_to_repository(part.to, ask);
        }
    }

    /// Ends a transaction that has only read: it is where it has read.
    fn end_here(
        &mut self,
        txn: Txn,
        running: &ShardedTransaction,
        mut here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) -> Step {
        assert!(running.sets.writes.is_empty(), "{txn:?} writes, and ends without a commit");
        let lower_bound = running.options.lower_bound;
        let (at, id) = (running.snapshot.unwrap_or(lower_bound), self.unasked_id());
        running.record(id, Status::Committed, (Some(cx.now()), Some(at)), cx);
        self.release(txn, running);
        let answer = Ok(Answer::Committed(Committed { at }));
        // What was read is not to be taken back by a crash of this node.
        let read_here = running.asked.iter().filter(|member| here.repository(**member).is_some());
        let logged = read_here.map(|member| cx.gate_of(Role::Repository(*member))).max();
        match logged.filter(|_| running.has_reads()) {
            Some(logged) => {
                let op = OpId(self.next_number());
                cx.complete_after(op, answer, logged);
                Step::Wait(op)
            }
            None => Step::Done(answer),
        }
    }

    /// All transactions below have ended, as far as shards can be asked.
    fn settled_below(&self) -> u64 {
        self.commits.keys().next().copied().unwrap_or(self.sequence + 1)
    }

    /// A shard says how a transaction ended.
    pub(super) fn on_ended(
        &mut self,
        from: Address,
        txn: TxnId,
        (decision, calls): (Decision, Option<CallsEnd>),
        cx: &mut Context<'_>,
    ) {
        let Role::Repository(member) = from.role else { return };
        let is_own = txn == self.id(txn.sequence);
        let is_there = usize::from(member.0) < cx.catalog.repositories();
        let Some(commit) = self.commits.get_mut(&txn.sequence).filter(|_| is_own && is_there)
        else {
            return;
        };
        let shard = shard_of(member, cx.catalog);
        let Some(part) = commit.parts.get_mut(&shard) else { return };
        let is_given = matches!(calls, Some(CallsEnd::Given { .. }));
        let gives = matches!(decision, Decision::Commit(_)) && !part.command.calls.is_empty();
        if is_given != gives {
            return; // No shard says so of this transaction.
        }
        part.end = Some((decision, calls));
        let Some((decision, results)) = commit.end() else { return };
        let commit = self.commits.remove(&txn.sequence).expect("just seen");
        if let Decision::Commit(at) = decision {
            self.issued = self.issued.max(at);
        } else if commit.parts.len() > 1 {
            // Some shard was further on than where it has read.
            self.reads_from = self.reads_from.max(commit.transaction.clock);
        }
        let Some(op) = commit.op else { return self.unknown.learn_end(txn, decision, cx) };
        let now = cx.now();
        let (status, at, answer) = match (decision, results) {
            (Decision::Commit(at), Ok(results)) if !commit.fragments.is_empty() => {
                (Status::Committed, Some(at), Ok(Answer::Invoked(Invoked { at, results })))
            }
            (Decision::Commit(at), _) => {
                (Status::Committed, Some(at), Ok(Answer::Committed(Committed { at })))
            }
            (Decision::Abort(reason), results) => {
                let failure = CallsEnd::failure(results.err(), reason);
                (Status::Aborted, None, Err(failure))
            }
        };
        commit.transaction.record(txn, status, (Some(now), at), cx);
        cx.complete(op, answer);
    }

    /// Asks again for commits that were not answered, and gives up those that take too long.
    pub(super) fn repeat_commits(&mut self, cx: &mut Context<'_>) {
        let (settings, now) = (cx.settings, cx.now());
        let settled_below = self.settled_below();
        let (mut late, mut forgotten) = (Vec::new(), Vec::new());
        for (sequence, commit) in &mut self.commits {
            if commit.op.is_some() && commit.since + settings.give_up_after <= now {
                late.push(*sequence);
            }
            let asked_for = settings.give_up_after + settings.client_lease;
            if commit.op.is_none() && commit.since + asked_for <= now {
                forgotten.push(*sequence); // Its shards have probably forgotten it as well.
                continue;
            }
            let participants = commit.participants();
            for (shard, part) in &mut commit.parts {
                let is_late = part.sent + settings.retry_after <= now;
                if part.end.is_some() || !is_late || cx.is_outstanding(part.to, part.sent) {
                    continue;
                }
                part.attempts += 1;
                let skipped = part.attempts / TIMES_AT_A_MEMBER;
                part.to = self.nearest.of(*shard, skipped, (self.node, cx.catalog), now);
                part.sent = now;
                let (participants, command) = (participants.clone(), part.command.clone());
                let ask = Message::Commit { settled_below, again: true, participants, command };
                cx.send_to_repository(part.to, ask);
            }
        }
        late.into_iter().for_each(|sequence| self.give_up(sequence, cx));
        for sequence in forgotten {
            self.commits.remove(&sequence);
            self.unknown.forget(sequence);
        }
    }

    /// The client of a commit waits no longer.
    fn give_up(&mut self, sequence: u64, cx: &mut Context<'_>) {
        let (after_ms, txn) = (cx.settings.give_up_after.as_millis(), self.id(sequence));
        let commit = self.commits.get_mut(&sequence).expect("a commit that is not answered");
        let op = commit.op.take().expect("its client waits");
        commit.transaction.record(txn, Status::Unknown, (None, None::<Timestamp>), cx);
        self.unknown.add(sequence);
        cx.effects.maintenance.given_up += 1;
        cx.complete(op, Err(Failure::Unknown { after_ms, txn }));
    }

    /// A shard has forgotten how a transaction ended.
    pub(super) fn on_not_known(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let is_own = txn == self.id(txn.sequence);
        let Some(commit) = self.commits.get(&txn.sequence).filter(|_| is_own) else { return };
        if commit.op.is_some() {
            self.give_up(txn.sequence, cx);
        }
        self.commits.remove(&txn.sequence);
        self.unknown.forget(txn.sequence);
    }
}
