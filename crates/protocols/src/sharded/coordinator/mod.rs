//! The coordinator: it reads at one timestamp at the nearest member of each shard, buffers writes,
//! and says at the end to each shard what was read there and what is written there.

mod calls;
mod clocks;
mod commit;
mod keys;
mod levels;
mod nearest;
mod operations;
mod ranges;
mod retry;
mod running;
mod watching;

use std::collections::{BTreeMap, VecDeque};

use muesli_core::contract::at_once;
use muesli_core::recorder::{Recorder, Status};
use muesli_core::{
    Abort, Address, Answer, Doubt, Failure, Here, Nanos, NodeId, OpId, Operation, Outcome, Put,
    RepositoryId, Staleness, Step, Timestamp, Txn, TxnId, TxnOptions, timers,
};

use super::locator::ShardId;
use super::message::Message;
use super::{Context, Sharded, Switches};
use crate::certified::message::ReaderNumber;
use crate::unknown_outcomes::UnknownOutcomes;
use commit::ShardedCommit;
use nearest::NearMembers;
use operations::ShardedOperation;
use running::ShardedTransaction;
use watching::WaitingShardReader;

timers! {
    /// The timers of a coordinator.
    pub enum ShardedTimer {
        /// Repeats what was not answered, and says who still reads.
        Repeat = 0,
    }
}

/// So many transactions that failed before their end are remembered, with the reason.
const FAILED_MOST: usize = 256;

/// The coordinator.
///
/// Invariants:
/// * an operation that waits is of a transaction that runs, and each of its requests is its own;
/// * commits have numbers that were given out, and so have transactions that run.
#[derive(Clone, Debug)]
pub struct ShardedCoordinator {
    node: NodeId,
    incarnation: u32,
    /// Numbers of operations and of requests.
    numbers: u64,
    /// Numbers of transactions whose commit was asked for.
    sequence: u64,
    /// How many ended without that: histories number them from where no commit comes to.
    unasked: u64,
    /// Numbers of transactions that were begun.
    begun: u32,
    running: BTreeMap<u32, ShardedTransaction>,
    failed: VecDeque<(Txn, Failure)>,
    /// Operations that wait, and the requests that they wait for.
    operations: BTreeMap<OpId, ShardedOperation>,
    requests: BTreeMap<u64, (OpId, ShardId)>,
    commits: BTreeMap<u64, ShardedCommit>,
    /// Clients that wait for a change, by the request for it.
    waiting: BTreeMap<u64, WaitingShardReader>,
    unknown: UnknownOutcomes,
    /// Who reads no more, which a member does not know yet.
    released: BTreeMap<RepositoryId, Vec<ReaderNumber>>,
    nearest: NearMembers,
    /// The largest timestamp that members have told of.
    issued: Timestamp,
    /// Transactions read at this counter or beyond: others have read too early.
    reads_from: u64,
    /// When members heard last of those who still read.
    renewed: Nanos,
}

impl ShardedCoordinator {
    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn id(&self, sequence: u64) -> TxnId {
        TxnId { node: self.node, incarnation: self.incarnation, sequence }
    }

    /// A name, for histories, of a transaction whose commit nobody is asked for.
    fn unasked_id(&mut self) -> TxnId {
        self.unasked += 1;
        self.id(TxnId::SEQUENCE_MAX + self.unasked)
    }

    fn reader(&self, txn: Txn) -> ReaderNumber {
        ReaderNumber { incarnation: self.incarnation, number: txn.slot }
    }

    /// A transaction that takes operations.
    fn open(&mut self, txn: Txn) -> Result<&mut ShardedTransaction, Failure> {
        if self.running.contains_key(&txn.slot) {
            return Ok(self.running.get_mut(&txn.slot).expect("just seen"));
        }
        let known = self.failed.iter().rev().find(|(it, _)| *it == txn);
        Err(known.map_or(Failure::Ended, |(_, failure)| failure.clone()))
    }

    fn begin(&mut self, options: TxnOptions, cx: &Context<'_>) -> Txn {
        self.begun = self.begun.wrapping_add(1);
        let options = match options.staleness {
            None => options,
            // Nothing is as fresh as that already: it waits.
            Some(Staleness { most: Nanos(0), .. }) => {
                TxnOptions { strict: true, staleness: Some(Staleness::NONE), ..options }
            }
            // Versions are not kept for longer than the age of a snapshot.
            Some(it) => {
                let most = it.most.min(cx.settings.snapshot_age_max);
                TxnOptions { staleness: Some(Staleness { most, ..it }), ..options }
            }
        };
        let transaction = ShardedTransaction::new(options, cx.now());
        let before = self.running.insert(self.begun, transaction);
        assert!(before.is_none(), "number {} is of a transaction that runs", self.begun);
        Txn { slot: self.begun, generation: 0 }
    }

    fn put(&mut self, txn: Txn, put: Put, cx: &mut Context<'_>) -> Result<(), Failure> {
        let Put { space, key, value, may_wait: _ } = put;
        let running = self.open(txn)?;
        if running.options.read_only {
            return Err(Failure::ReadOnly);
        }
        if cx.catalog.space(space).is_none() {
            return Err(Failure::Space(format!("there is no space {}", space.0)));
        }
        let limits = &cx.settings.limits;
        match cx.effects.recorder {
            Some(_) => running.sets.write_recorded((space, key, value), limits),
            None => running.sets.write(space, key, value, limits),
        }
    }

    /// Ends a transaction that failed before its commit, and everything that waits for it.
    fn fail(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_>) {
        let Some(running) = self.running.remove(&txn.slot) else { return };
        self.fail_operations(txn, failure, cx);
        if let Some(ends) = &running.ends {
            cx.complete(ends.op, Err(failure.clone()));
        }
        let id = self.unasked_id();
        running.record(id, Status::Aborted, (Some(cx.now()), None), cx);
        self.release(txn, &running);
        if *failure != Failure::Aborted(Abort::Rollback) {
            if self.failed.len() == FAILED_MOST {
                self.failed.pop_front();
            }
            self.failed.push_back((txn, failure.clone()));
            assert!(self.failed.len() <= FAILED_MOST, "failures that are remembered have a bound");
        }
    }

    /// Members need not keep anything for a transaction any more.
    fn release(&mut self, txn: Txn, running: &ShardedTransaction) {
        let reader = self.reader(txn);
        for member in &running.asked {
            self.released.entry(*member).or_default().push(reader);
        }
    }

    /// Says who reads no more.
    fn send_released(&mut self, cx: &mut Context<'_>) {
        for (member, readers) in std::mem::take(&mut self.released) {
            cx.send_to_repository(member, Message::Release { readers });
        }
    }
}

impl muesli_core::StateMachine<Sharded> for ShardedCoordinator {
    type Timer = ShardedTimer;

    fn judge(&self, _: &Message, _: muesli_core::View<'_>) -> Result<(), muesli_core::Rejection> {
        Ok(())
    }

    fn issued(&self) -> Timestamp {
        self.issued
    }

    fn linked(&mut self, node: NodeId, cx: &mut Context<'_>) {
        self.nearest.on_linked(node, cx.catalog);
    }

    fn unlinked(&mut self, node: NodeId, cx: &mut Context<'_>) {
        self.nearest.on_unlinked(node, (self.node, cx.catalog), (cx.now(), cx.settings));
        self.wake_watchers_of(node, cx);
    }

    fn unfinished(&self) -> usize {
        self.running.len() + self.commits.len()
    }

    fn assert_invariants(&self) {
        let mut requests = BTreeMap::new();
        for (op, operation) in &self.operations {
            assert!(self.running.contains_key(&operation.txn.slot), "{op:?} waits for nothing");
            let of_op = operation.asked.iter().map(|(shard, it)| (it.request, (*op, *shard)));
            requests.extend(of_op);
        }
        assert_eq!(requests, self.requests, "requests of operations");
        let last = self.commits.keys().next_back();
        assert!(last.is_none_or(|last| *last <= self.sequence), "{last:?} commits");
        assert!(self.requests.keys().all(|number| *number <= self.numbers), "unknown requests");
        self.unknown.assert_invariants(self.sequence);
        self.assert_waiting();
        assert!(self.released.values().all(|it| !it.is_empty()), "nobody is released");
        let mut running = self.running.values();
        let waits = running.all(|it| it.ends.is_none() || !it.is_beyond_clocks);
        assert!(waits, "an end that waits for nothing");
        assert!(self.reads_from <= self.issued.counter(), "reads begin at a time nobody told of");
    }
}

impl muesli_core::Coordinator<Sharded> for ShardedCoordinator {
    muesli_core::coordinator_without_peeks!(Sharded);

    fn new(node: NodeId, incarnation: u32, _: &Switches) -> ShardedCoordinator {
        ShardedCoordinator {
            node,
            incarnation,
            // What was asked in an earlier incarnation has other numbers, and may be answered now.
            numbers: u64::from(incarnation) << 32,
            sequence: 0,
            unasked: 0,
            begun: 0,
            running: BTreeMap::new(),
            failed: VecDeque::new(),
            operations: BTreeMap::new(),
            requests: BTreeMap::new(),
            commits: BTreeMap::new(),
            waiting: BTreeMap::new(),
            unknown: UnknownOutcomes::default(),
            released: BTreeMap::new(),
            nearest: NearMembers::default(),
            issued: Timestamp::ZERO,
            reads_from: 0,
            renewed: Nanos(0),
        }
    }

    fn start(&mut self, _: Here<'_, Sharded>, cx: &mut Context<'_>) {
        cx.set_timer(ShardedTimer::Repeat, cx.settings.retry_after);
    }

    fn operate(
        &mut self,
        operation: Operation,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) -> Step {
        match operation {
            Operation::Begin(options) => Step::Done(Ok(Answer::Begun(self.begin(options, cx)))),
            Operation::Get(txn, space, key) => self.get(txn, space, (vec![key], true), here, cx),
            Operation::GetMany(txn, space, keys) => self.get(txn, space, (keys, false), here, cx),
            Operation::Scan(txn, scan) => self.scan(txn, scan, here, cx),
            Operation::Put(txn, put) => {
                Step::Done(self.put(txn, put, cx).map(|()| Answer::Written))
            }
            Operation::Delay(_, delay, _) => {
                Step::Done(at_once(&delay, cx.settings).map(Answer::Delayed))
            }
            Operation::Nest(txn, level) => {
                Step::Done(self.nest(txn, level, cx).map(Answer::Nested))
            }
            Operation::Merge(txn, level) => {
                Step::Done(self.end_level(txn, (level, true), cx).map(|()| Answer::Ended))
            }
            Operation::Unnest(txn, level) => {
                Step::Done(self.end_level(txn, (level, false), cx).map(|()| Answer::Ended))
            }
            Operation::Commit(txn) => self.commit(txn, here, cx),
            Operation::Watch(txn) => self.watch(txn, cx),
            Operation::Abort(txn, failure) => {
                self.stop_watching(txn, &failure, cx);
                self.fail(txn, &failure, cx);
                Step::Done(Ok(Answer::Ended))
            }
            Operation::Invoke(options, call) => self.invoke((options, call), here, cx),
        }
    }

    fn receive(
        &mut self,
        from: Address,
        message: Message,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) {
        match message {
            Message::KeysReply(reply) => self.on_keys(reply, here, cx),
            Message::PageReply(reply) => self.on_page(reply, here, cx),
            Message::Ended { txn, decision, calls } => {
                self.on_ended(from, txn, (decision, calls), cx);
            }
            Message::NotKnown { txn } => self.on_not_known(txn, cx),
            Message::ClockReply { request, clock } => self.on_clock(request, clock, here, cx),
            Message::NotFresh { request } => self.on_not_fresh(request, cx),
            Message::Changed { request, clock } => self.on_changed(from, (request, clock), cx),
            // For members.
            Message::Keys(_)
            | Message::Page(_)
            | Message::Commit { .. }
            | Message::Release { .. }
            | Message::Renew { .. }
            | Message::Broadcast { .. }
            | Message::Answer { .. }
            | Message::Ask { .. }
            | Message::AskClock { .. }
            | Message::Watch { .. }
            | Message::Unwatch { .. } => {}
        }
    }

    fn timer(&mut self, timer: ShardedTimer, _: Here<'_, Sharded>, cx: &mut Context<'_>) {
        match timer {
            ShardedTimer::Repeat => {
                self.repeat(cx);
                cx.set_timer(ShardedTimer::Repeat, cx.settings.retry_after);
            }
        }
    }

    fn open_transactions(&self) -> Vec<Txn> {
        self.running.keys().map(|&slot| Txn { slot, generation: 0 }).collect()
    }

    fn record_running(&self, recorder: &mut Recorder) {
        for (sequence, commit) in &self.commits {
            commit.record_unanswered(self.id(*sequence), recorder);
        }
        for (number, running) in &self.running {
            let id = self.id(u64::MAX - u64::from(*number));
            running.record_at(id, Status::Running, recorder);
        }
    }

    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        None
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        self.send_released(cx);
    }

    fn session_token(&self) -> Option<muesli_core::SmallBytes> {
        None
    }

    fn adopt(&mut self, _: &muesli_core::SmallBytes) {}

    fn outcome(&self, txn: TxnId) -> Outcome {
        match txn.incarnation == self.incarnation {
            true => self.unknown.of(txn.sequence),
            false => Outcome::NotKnown(Doubt::Elsewhere),
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Coordinator as _, StateMachine as _};

    use super::running::DeferredEnd;
    use super::*;

    fn coordinator() -> ShardedCoordinator {
        ShardedCoordinator::new(NodeId(0), 1, &Switches::default())
    }

    #[test]
    fn answers_to_an_earlier_incarnation_are_to_nobody() {
        let numbers = |incarnation| {
            let new = ShardedCoordinator::new(NodeId(0), incarnation, &Switches::default());
            let mut coordinator = new;
            [coordinator.next_number(), coordinator.next_number()]
        };
        let (first, second) = (numbers(1), numbers(2));
        assert!(first.iter().all(|number| !second.contains(number)), "{first:?}, {second:?}");
    }

    #[test]
    #[should_panic(expected = "an end that waits for nothing")]
    fn an_end_waits_for_clocks() {
        let mut coordinator = coordinator();
        coordinator.assert_invariants();
        let mut transaction = ShardedTransaction::new(TxnOptions::default(), Nanos(0));
        transaction.ends = Some(DeferredEnd { op: OpId(1), calls: None });
        coordinator.running.insert(1, transaction);
        coordinator.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "reads begin at a time nobody told of")]
    fn reads_begin_at_a_clock_that_a_member_has_told_of() {
        let mut coordinator = coordinator();
        coordinator.reads_from = 1;
        coordinator.assert_invariants();
    }
}
