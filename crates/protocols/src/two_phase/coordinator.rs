//! The coordinator: runs transactions for the clients of its node.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muesli_core::parts::watermark::Watermark;
use muesli_core::parts::window::Window;
use muesli_core::recorder::Status;
use muesli_core::{
    Abort, Address, Answer, Failure, Here, Nanos, NodeId, OpId, Operation, Outcome, Protocol, Put,
    Recorder, Rejection, RepositoryId, Sender, SmallBytes, SpaceId, Step, Timestamp, Txn, TxnId,
    TxnOptions, View,
};

use super::commit::Committing;
use super::failed::Failed;
use super::message::{Ballot, Message};
use super::requests::{Request, WaitingOperation};
use super::slot::Slot;
use super::time::Snapshot;
use super::{TwoPhase, Variant};
use muesli_core::Wire;
use muesli_core::parts::watermark::Bound;

pub(super) type Context<'a, V> = muesli_core::Context<'a, TwoPhase<V>>;

/// Tells the bound of this node's snapshots.
pub(super) const GOSSIP_TIMER: u32 = 0;
/// Looks after requests and commits that were not answered.
const SWEEP_TIMER: u32 = 1;
/// Asks repositories of this node for the next pages.
pub(super) const PAGES_TIMER: u32 = 2;

/// The coordinator.
#[derive(Clone, Debug)]
pub struct Coordinator<V: Variant> {
    pub(super) id: NodeId,
    pub(super) incarnation: u32,
    pub(super) tolerates_stale_reads: bool,
    /// Whether keys are locked as they are written.
    locks_at_writes: bool,
    pub(super) rules: V::Rules,
    sequence: u64,
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    failed: Failed,
    next_op: u64,
    /// Operations that wait for answers, by number.
    pub(super) operations: Window<WaitingOperation>,
    /// Requests that wait for answers, or for the snapshot to be known.
    pub(super) requests: Window<Request>,
    pub(super) next_request: u64,
    /// Requests for further pages of repositories here, in order.
    pub(super) pages: VecDeque<u64>,
    /// Commits under way, by sequence number; they stay until everybody has acknowledged.
    pub(super) committing: Window<Committing<V>>,
    /// Commits whose clients were told that nobody knows, by sequence number, and what came of
    /// them since.
    pub(super) unanswered: BTreeMap<u64, Option<Outcome>>,
    sweep_timer_set: bool,
    /// The largest timestamp heard of.
    pub(super) heard: V::Snapshot,
    /// A transaction was aborted because its snapshot was behind this: the next ones are not, or
    /// a node that is told of nothing new would read the same stale versions for ever.
    pub(super) fresh: V::Snapshot,
    /// What transactions of this node have seen, where nodes remember.
    pub(super) seen: V::Snapshot,
    /// No transaction of this node reads below it: told to others, so it never falls.
    pub(super) bound: V::Snapshot,
    pub(super) watermark: Watermark<V::Snapshot>,
    /// Transactions begun before this are too old to hold versions back.
    pub(super) aged: Nanos,
    /// When this life began.
    pub(super) started: Option<Nanos>,
    pub(super) told_all: Nanos,
    /// Of a client: who took part in its commits since it said that these are settled.
    pub(super) took_part: BTreeSet<RepositoryId>,
    pub(super) ended_since_told: u32,
    pub(super) begun_since_gossip: bool,
    pub(super) idle_factor: u64,
}

impl<V: Variant> Coordinator<V> {
    /// Whether no transaction but one runs in the whole database.
    #[inline]
    pub(super) fn runs_alone(&self, cx: &Context<'_, V>) -> bool {
        self.slots.len() == self.free.len() + 1 && cx.catalog.is_only_coordinator(self.id)
    }

    /// The running transactions.
    pub(super) fn running(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().filter(|slot| slot.running)
    }

    /// The slot of a transaction that takes operations.
    #[inline]
    pub(super) fn open(&mut self, txn: Txn) -> Result<&mut Slot<V>, Failure> {
        match self.slots.get_mut(txn.slot as usize) {
            Some(slot)
                if slot.running
                    && slot.generation == txn.generation
                    && slot.committing.is_none() =>
            {
                Ok(slot)
            }
            _ => Err(self.failed.reason(txn)),
        }
    }

    /// The slot of a transaction that has not ended, its commit perhaps under way.
    pub(super) fn slot(&mut self, txn: Txn) -> Option<&mut Slot<V>> {
        let slot = self.slots.get_mut(txn.slot as usize)?;
        (slot.running && slot.generation == txn.generation).then_some(slot)
    }

    pub(super) fn next_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    #[inline]
    pub(super) fn next_txn_id(&mut self) -> TxnId {
        self.sequence += 1;
        TxnId { node: self.id, incarnation: self.incarnation, sequence: self.sequence }
    }

    /// All commits with smaller numbers are settled everywhere.
    pub(super) fn settled_below(&self) -> u64 {
        self.committing.first().unwrap_or(self.sequence)
    }

    /// Ends a transaction: into the history, and its slot is free.
    #[inline]
    pub(super) fn end(
        &mut self,
        txn: Txn,
        id: Option<TxnId>,
        status: Status,
        at: Option<Timestamp>,
        cx: &mut Context<'_, V>,
    ) {
        let environment = &mut cx.effects.environment;
        if let Some(recorder) = &mut environment.recorder {
            let id = id.unwrap_or_else(|| {
                self.sequence += 1;
                TxnId { node: self.id, incarnation: self.incarnation, sequence: self.sequence }
            });
            let slot = &self.slots[txn.slot as usize];
            let end = (status != Status::Unknown).then_some(environment.now);
            recorder.transaction(&slot.record(id, end, status, at), &slot.sets.operations);
        }
        if V::MAY_LOCK_AT_WRITES {
            self.give_locks_back(txn, status, cx);
        }
        self.slots[txn.slot as usize].vacate();
        self.free.push(txn.slot);
    }

    /// A transaction with locks ends: where it has not prepared it gives them back.
    fn give_locks_back(&mut self, txn: Txn, status: Status, cx: &mut Context<'_, V>) {
        let slot = &self.slots[txn.slot as usize];
        if status == Status::Committed && slot.committing.is_some() {
            return; // Its prepares have taken them over.
        }
        let reader = V::reader(self.id, self.incarnation, txn);
        for &repository in &slot.locked_at {
            cx.send_to_repository(repository, Message::Unlock { reader });
        }
    }

    /// Ends a transaction that failed before its commit, and everything that waits for it.
    pub(super) fn abort(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_, V>) {
        if self.slot(txn).is_none() {
            return;
        }
        if let Failure::Aborted(reason) = failure {
            self.learn_from(*reason);
        }
        self.end(txn, None, Status::Aborted, None, cx);
        if *failure != Failure::Aborted(Abort::Rollback) {
            self.failed.remember(txn, failure);
        }
        if !self.operations.is_empty() {
            self.fail_operations(txn, failure, cx);
        }
    }

    /// Whatever the transaction still waits for has failed.
    #[cold]
    pub(super) fn fail_operations(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_, V>) {
        let waiting: Vec<_> = self
            .operations
            .iter()
            .filter(|(_, operation)| operation.txn == txn)
            .map(|(op, _)| OpId(op))
            .collect();
        for op in waiting {
            self.operations.remove(op.0);
            self.requests.retain(|request| request.op != op);
            cx.complete(op, Err(failure.clone()));
        }
    }

    /// What a stale read teaches: later snapshots are to be at least what was heard of since.
    pub(super) fn learn_from(&mut self, reason: Abort) {
        match reason {
            Abort::StaleRead
            | Abort::Phantom
            | Abort::ActionsInThePast
            | Abort::SnapshotTooOld
            | Abort::Forgotten => {
                self.fresh = self.heard.clone();
            }
            Abort::Locked | Abort::Abandoned | Abort::Overloaded => {}
            Abort::KeyTooLarge | Abort::ValueTooLarge | Abort::TransactionTooLarge => {}
            Abort::Rollback | Abort::Strayed | Abort::Superseded | Abort::OutOfMemory => {}
        }
    }

    pub(super) fn set_sweep_timer(&mut self, cx: &mut Context<'_, V>) {
        if !self.sweep_timer_set {
            self.sweep_timer_set = true;
            cx.set_timer(SWEEP_TIMER, Nanos(cx.settings.retry_after.0 / 2));
        }
    }

    fn on_sweep_timeout(&mut self, cx: &mut Context<'_, V>) {
        self.sweep_timer_set = false;
        self.retry_requests(cx);
        self.retry_commits(cx);
        if !self.requests.is_empty() || !self.committing.is_empty() {
            self.set_sweep_timer(cx);
        }
    }
}

impl<V: Variant> Coordinator<V> {
    #[inline(always)]
    fn on_begin(&mut self, options: TxnOptions, cx: &Context<'_, V>) -> Txn {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.slots.push(Slot::empty());
                (self.slots.len() - 1) as u32
            }
        };
        let mut base = V::Snapshot::from_floor(options.floor);
        base.join(&self.bound);
        base.join(&self.fresh);
        if V::NODES_REMEMBER {
            base.join(&self.seen);
        }
        let slot = &mut self.slots[place as usize];
        slot.occupy(options, base, cx.effects.now);
        self.begun_since_gossip = true;
        Txn { slot: place, generation: slot.generation }
    }

    /// Buffers a write, and asks for the key's lock where these are taken as keys are written.
    #[inline(always)]
    fn on_put(&mut self, txn: Txn, write: Put, cx: &mut Context<'_, V>) -> Step<()> {
        let locks = V::MAY_LOCK_AT_WRITES && self.locks_at_writes && write.may_wait;
        let lock = locks.then(|| (write.space, write.key.clone()));
        if let Err(failure) = self.buffer(txn, write, cx) {
            return Step::Done(Err(failure));
        }
        match lock.and_then(|lock| self.ask_lock(txn, lock, cx)) {
            Some(op) => Step::Wait(op),
            None => Step::Done(Ok(())),
        }
    }

    #[inline(always)]
    fn buffer(&mut self, txn: Txn, write: Put, cx: &mut Context<'_, V>) -> Result<(), Failure> {
        let Put { space, key, value, may_wait: _ } = write;
        let slot = self.open(txn)?;
        if slot.options.read_only {
            return Err(Failure::ReadOnly);
        }
        if !slot.delays.is_empty() && slot.delays.sees(space, &key) {
            return Err(self.stray(txn, cx));
        }
        let limits = &cx.settings.limits;
        match cx.effects.recorder {
            Some(_) => slot.write_recorded(space, key, value, limits),
            None => slot.sets.write(space, key, value, limits),
        }
    }
}

/// A one-round transaction was asked for.
fn no_procedures<V: Variant>() -> Failure {
    Failure::Procedure(format!(
        "protocol `{}` runs no procedures; allowed are `granola`, `granola-locking`, `sinfonia`",
        TwoPhase::<V>::NAME
    ))
}

impl<V: Variant> muesli_core::Coordinator<TwoPhase<V>> for Coordinator<V> {
    fn new(node: NodeId, incarnation: u32, rules: &V::Rules) -> Coordinator<V> {
        Coordinator {
            id: node,
            incarnation,
            tolerates_stale_reads: V::tolerates_stale_reads(rules),
            locks_at_writes: V::locks_at_writes(rules),
            rules: rules.clone(),
            sequence: 0,
            slots: Vec::new(),
            free: Vec::new(),
            failed: Failed::default(),
            next_op: 0,
            operations: Window::default(),
            requests: Window::default(),
            // An answer to an earlier life's request must not be taken for one of this life's.
            next_request: u64::from(incarnation) << 40,
            pages: VecDeque::new(),
            committing: Window::default(),
            unanswered: BTreeMap::new(),
            sweep_timer_set: false,
            heard: V::Snapshot::default(),
            fresh: V::Snapshot::default(),
            seen: V::Snapshot::default(),
            bound: V::Snapshot::default(),
            watermark: Watermark::default(),
            aged: Nanos(0),
            started: None,
            told_all: Nanos(0),
            took_part: BTreeSet::new(),
            ended_since_told: 0,
            begun_since_gossip: false,
            idle_factor: 1,
        }
    }

    #[inline(always)]
    fn operate(
        &mut self,
        operation: Operation,
        mut here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> Step {
        match operation {
            Operation::Begin(options) => {
                std::mem::forget(operation); // Nothing in it to drop: spares the hot path the look.
                Step::Done(Ok(Answer::Begun(self.on_begin(options, cx))))
            }
            Operation::Get(txn, space, key) => {
                self.on_get(txn, space, &key, here, cx).map(Answer::Value)
            }
            Operation::GetMany(txn, space, keys) => {
                self.on_get_many(txn, space, keys, here, cx).map(Answer::Values)
            }
            Operation::Scan(txn, scan) => {
                self.on_client_scan(txn, scan, here, cx).map(Answer::Rows)
            }
            Operation::Put(txn, write) => self.on_put(txn, write, cx).map(|()| Answer::Written),
            Operation::Delay(txn, delay, answered) => {
                Step::Done(self.on_later(txn, &delay, answered, cx).map(Answer::Delayed))
            }
            Operation::Commit(txn) => {
                std::mem::forget(operation);
                let step = self.on_commit(txn, here.reborrow(), cx);
                self.count_ended(&mut here, cx);
                step.map(Answer::Committed)
            }
            Operation::Abort(txn, why) => {
                if self.open(txn).is_ok() {
                    self.abort(txn, &why, cx);
                }
                Step::Done(Ok(Answer::Ended))
            }
            Operation::Invoke(..) => Step::Done(Err(no_procedures::<V>())),
        }
    }

    #[inline]
    fn peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        self.on_peek(txn, space, keys, here, cx, out)
    }

    fn judge(
        &self,
        _from: Address,
        _sender: Sender,
        message: &Message<V>,
        _view: View<'_>,
    ) -> Result<(), Rejection> {
        self.judge_state(message)
    }

    fn issued(&self) -> Timestamp {
        self.heard.reach()
    }

    fn open_transactions(&self) -> Vec<Txn> {
        let is_open = |slot: &Slot<V>| slot.running && slot.committing.is_none();
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| is_open(slot));
        slots.map(|(place, slot)| Txn { slot: place as u32, generation: slot.generation }).collect()
    }

    fn receive(
        &mut self,
        from: Address,
        message: Message<V>,
        mut here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        match message {
            Message::ReadReply(reply) => self.on_read_reply(reply, here, cx),
            Message::ScanReply(reply) => self.on_scan_reply(*reply, here, cx),
            Message::Vote { txn, repository, vote, committed, about, tag } => {
                self.heard.join(&committed);
                if txn.incarnation == self.incarnation {
                    self.on_vote(txn, Ballot { repository, vote, about, tag }, cx);
                }
            }
            Message::Acknowledge { repository, txns } => {
                for txn in txns {
                    self.on_acknowledge(txn, repository);
                }
            }
            Message::Ran { txn, answers, strayed } => self.on_ran(txn, answers, strayed, cx),
            Message::Bound { bound, newest } => {
                self.on_bound(from.node, bound, &newest, &mut here, cx);
            }
            Message::Watermark { low, newest } => self.on_watermark(&low, &newest, &mut here, cx),
            Message::Locked { request, refused } => self.on_locked(request, refused, cx),
            Message::Read(_)
            | Message::Scan(_)
            | Message::Lock(_)
            | Message::Unlock { .. }
            | Message::Prepare(_)
            | Message::Decide { .. }
            | Message::Settled { .. }
            | Message::AskDoubts { .. }
            | Message::NoDoubts { .. }
            | Message::Ask { .. } => {} // For participants: whoever sent it here is mistaken.
        }
    }

    fn timer(&mut self, timer: u32, mut here: Here<'_, TwoPhase<V>>, cx: &mut Context<'_, V>) {
        match timer {
            GOSSIP_TIMER => self.on_gossip_timeout(&mut here, cx),
            SWEEP_TIMER => self.on_sweep_timeout(cx),
            PAGES_TIMER => self.ask_for_page(cx),
            other => unreachable!("no timer {other}"),
        }
    }

    fn linked(&mut self, node: NodeId, cx: &mut Context<'_, V>) {
        // What was sent to it before may be lost: its patience is over.
        for request in self.requests.values_mut() {
            if cx.catalog.home(request.to) == node {
                request.quiet = Nanos(0);
            }
        }
        self.committing.values_mut().for_each(Committing::expect_no_answer);
    }

    fn unlinked(&mut self, _node: NodeId) {}

    fn leave(&mut self, cx: &mut Context<'_, V>) {
        self.tell_settled(cx);
    }

    fn record_running(&self, recorder: &mut Recorder) {
        for (place, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.running) {
            let (sequence, status) = match slot.committing {
                Some(sequence) => (sequence, Status::Unknown),
                None => (u64::MAX - place as u64, Status::Running),
            };
            let id = TxnId { node: self.id, incarnation: self.incarnation, sequence };
            recorder.transaction(&slot.record(id, None, status, None), &slot.sets.operations);
        }
    }

    fn unfinished(&self) -> usize {
        self.running().count() + self.committing.len()
    }

    /// The oldest transaction here; without one, whose bound is the least of those that were told.
    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        let here = self.running().map(|slot| slot.begun).min();
        let held_by = || self.watermark.holder().map(|node| (node, None));
        here.map(|begun| (self.id, Some(begun))).or_else(held_by)
    }

    fn past(&self) -> Option<SmallBytes> {
        if !V::NODES_REMEMBER {
            return None;
        }
        let mut bytes = Vec::new();
        self.seen.encode(&mut bytes);
        Some(bytes.into())
    }

    fn adopt(&mut self, past: &SmallBytes) {
        if V::NODES_REMEMBER
            && V::rules(&self.rules).sessions_bring_pasts
            && let Ok(seen) = V::Snapshot::decode_all(past.as_slice())
        {
            self.seen.join(&seen);
        }
    }

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.outcome_of(txn)
    }
}
