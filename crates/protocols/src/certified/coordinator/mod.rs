//! The coordinator: it runs transactions at one site, buffers their writes, and says at the end
//! what they have read and write.

mod calls;
mod commit;
mod elsewhere;
mod keys;
mod levels;
mod operations;
mod ranges;
mod retry;
mod running;
mod sites;
mod watching;

use std::collections::{BTreeMap, VecDeque};

use muesli_core::contract::at_once;
use muesli_core::recorder::{Recorder, Status};
use muesli_core::{
    Abort, Address, Answer, Doubt, Failure, Here, Nanos, NodeId, OpId, Operation, Outcome, Put,
    RepositoryId, Staleness, Step, Timestamp, Txn, TxnId, TxnOptions, timers,
};

use crate::certified::message::{Message, ReaderNumber, SiteSnapshot};
use crate::certified::switches::{CertifiedSwitch, LocalReads};
use crate::certified::{Certified, Context, Switches};
use crate::unknown_outcomes::UnknownOutcomes;
use commit::PendingCommit;
use operations::PendingOperation;
use running::RunningTransaction;
use sites::NearSites;
use watching::WaitingReader;

timers! {
    /// The timers of a coordinator.
    pub enum CertifiedCoordinatorTimer {
        /// Repeats what was not answered, and says who still reads.
        Repeat = 0,
    }
}

/// So many transactions that failed before their end are remembered, with the reason.
const FAILED_MAX: usize = 256;

/// The coordinator.
///
/// Invariants:
/// * an operation that waits is of a transaction that runs, and each of its requests is its own;
/// * commits have numbers that were given out, and so have transactions that run.
#[derive(Clone, Debug)]
pub struct CertifiedCoordinator {
    node: NodeId,
    incarnation: u32,
    switches: Switches,
    /// Numbers of operations and of requests.
    numbers: u64,
    /// Numbers of transactions whose commit was asked for.
    sequence: u64,
    /// How many ended without that: histories number them from where no commit comes to.
    unasked: u64,
    /// Numbers of transactions that were begun.
    begun: u32,
    running: BTreeMap<u32, RunningTransaction>,
    failed: VecDeque<(Txn, Failure)>,
    /// Operations that wait, and the requests that they wait for.
    operations: BTreeMap<OpId, PendingOperation>,
    requests: BTreeMap<u64, OpId>,
    commits: BTreeMap<u64, PendingCommit>,
    /// Who waits for a change, by request.
    waiting: BTreeMap<u64, WaitingReader>,
    unknown: UnknownOutcomes,
    /// Who reads no more, which its site does not know yet.
    released: BTreeMap<RepositoryId, Vec<ReaderNumber>>,
    sites: NearSites,
    /// When the site heard last of those who still read.
    renewed: Nanos,
}

impl CertifiedCoordinator {
    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn id(&self, sequence: u64) -> TxnId {
        TxnId { node: self.node, incarnation: self.incarnation, sequence }
    }

    fn next_id(&mut self) -> TxnId {
        self.sequence += 1;
        self.id(self.sequence)
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
    fn open(&mut self, txn: Txn) -> Result<&mut RunningTransaction, Failure> {
        if self.running.contains_key(&txn.slot) {
            return Ok(self.running.get_mut(&txn.slot).expect("just seen"));
        }
        let known = self.failed.iter().rev().find(|(it, _)| *it == txn);
        Err(known.map_or(Failure::Ended, |(_, failure)| failure.clone()))
    }

    fn begin(&mut self, options: TxnOptions, cx: &Context<'_>) -> Txn {
        self.begun = self.begun.wrapping_add(1);
        let site = self.site_of_next(cx);
        let options = self.guarded(options, cx);
        let transaction = RunningTransaction::new(options, site, cx.now());
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
        let limits = &cx.settings.limits;
        match cx.effects.recorder {
            Some(_) => running.sets.write_recorded((space, key, value), limits),
            None => running.sets.write(space, key, value, limits),
        }
    }

    /// How a transaction is run that begins. Where its site reads the present, and may not have
    /// applied what its session has seen, one that only reads does so at a cut that is proposed
    /// now, and others are certified. One that may be stale has a cut in any case, where there are
    /// any, and is certified else.
    fn guarded(&self, options: TxnOptions, cx: &Context<'_>) -> TxnOptions {
        let is_behind = self.has_local_reads() && !self.sites.is_caught_up();
        let age_max = cx.settings.snapshot_age_max;
        match options.staleness {
            Some(_) if options.strict || !self.switches.has_cuts() => {
                TxnOptions { strict: true, staleness: Some(Staleness::NONE), ..options }
            }
            Some(Staleness { most, waits }) => {
                let staleness = Some(Staleness { most: most.min(age_max), waits });
                TxnOptions { staleness, ..options }
            }
            None if is_behind && options.read_only && !options.strict => {
                TxnOptions { staleness: Some(Staleness::NONE), ..options }
            }
            None => TxnOptions { strict: options.strict || is_behind, ..options },
        }
    }

    /// Notes at what a transaction reads.
    ///
    /// # Errors
    /// It is over, or its site does not know that moment any more.
    fn take_snapshot(
        &mut self,
        txn: Txn,
        read: Option<SiteSnapshot>,
        cut: Timestamp,
    ) -> Result<(), Failure> {
        let running = self.open(txn)?;
        running.take_snapshot(read, cut)?;
        if running.catches_up() {
            let (site, begin) = (running.site, running.begin);
            self.sites.has_read_cut(site, begin);
        }
        Ok(())
    }

    fn has_local_reads(&self) -> bool {
        self.switches.local_reads != LocalReads::None
    }

    /// Whether a transaction that only reads ends where it has read.
    fn ends_locally(&self, options: &TxnOptions) -> bool {
        let may_be_local = self.has_local_reads() || options.staleness.is_some();
        may_be_local && !options.strict || !self.switches.keeps(CertifiedSwitch::BroadcastsReads)
    }

    /// Ends a transaction that failed before its commit, and everything that waits for it.
    fn fail(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_>) {
        let Some(running) = self.running.remove(&txn.slot) else { return };
        self.fail_operations(txn, failure, cx);
        let id = self.unasked_id();
        running.record(id, Status::Aborted, (Some(cx.now()), None), cx);
        self.release(txn, &running);
        if *failure != Failure::Aborted(Abort::Rollback) {
            if self.failed.len() == FAILED_MAX {
                self.failed.pop_front();
            }
            self.failed.push_back((txn, failure.clone()));
            assert!(self.failed.len() <= FAILED_MAX, "failures that are remembered have a bound");
        }
    }

    /// The site need not keep anything for a transaction any more.
    fn release(&mut self, txn: Txn, running: &RunningTransaction) {
        if running.has_asked {
            let reader = self.reader(txn);
            self.released.entry(running.site).or_default().push(reader);
        }
    }

    /// Says who reads no more.
    fn send_released(&mut self, cx: &mut Context<'_>) {
        for (site, readers) in std::mem::take(&mut self.released) {
            cx.send_to_repository(site, Message::Release { readers });
        }
    }
}

impl muesli_core::StateMachine<Certified> for CertifiedCoordinator {
    type Timer = CertifiedCoordinatorTimer;

    muesli_core::role_without_judgement!(Certified);

    fn linked(&mut self, node: NodeId, cx: &mut Context<'_>) {
        self.on_linked(node, cx);
    }

    fn unlinked(&mut self, node: NodeId, cx: &mut Context<'_>) {
        self.on_unlinked(node, cx);
    }

    fn unfinished(&self) -> usize {
        self.running.len() + self.commits.len()
    }

    fn assert_invariants(&self) {
        for (op, operation) in &self.operations {
            assert!(self.running.contains_key(&operation.txn.slot), "{op:?} waits for nothing");
            let of_request = self.requests.get(&operation.request);
            assert_eq!(of_request, Some(op), "the request of {op:?}");
        }
        assert_eq!(self.requests.len(), self.operations.len(), "requests that nobody waits for");
        let last = self.commits.keys().next_back();
        assert!(last.is_none_or(|last| *last <= self.sequence), "{last:?} commits");
        let mut requests = self.requests.keys().chain(self.waiting.keys());
        assert!(requests.all(|number| *number <= self.numbers), "unknown requests");
        self.unknown.assert_invariants(self.sequence);
        self.sites.assert_invariants();
        self.assert_waiting();
        assert!(self.released.values().all(|it| !it.is_empty()), "nobody is released at a site");
    }
}

impl muesli_core::Coordinator<Certified> for CertifiedCoordinator {
    muesli_core::coordinator_without_peeks!(Certified);

    fn new(node: NodeId, incarnation: u32, switches: &Switches) -> CertifiedCoordinator {
        CertifiedCoordinator {
            node,
            incarnation,
            switches: switches.clone(),
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
            sites: NearSites::default(),
            renewed: Nanos(0),
        }
    }

    fn start(&mut self, _: Here<'_, Certified>, cx: &mut Context<'_>) {
        cx.set_timer(CertifiedCoordinatorTimer::Repeat, cx.settings.retry_after);
    }

    fn operate(
        &mut self,
        operation: Operation,
        here: Here<'_, Certified>,
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
            Operation::Invoke(options, call) => self.invoke(options, call, cx),
        }
    }

    fn receive(
        &mut self,
        from: Address,
        message: Message,
        here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) {
        match message {
            Message::KeysReply(reply) => self.on_keys(reply, here, cx),
            Message::PageReply(reply) => self.on_page(reply, here, cx),
            Message::Ended { txn, decision, calls, member } => {
                let Some(site) = self.answers_as(from, member) else { return };
                self.on_ended(site, txn, (decision, calls), cx);
            }
            Message::NotKnown { txn, member } => self.on_not_known(from, (txn, member), cx),
            Message::Changed { request } => self.on_changed(request, cx),
            Message::Waits { request } => self.on_waits(request, cx),
            Message::NotFresh { request } => self.on_not_fresh(request, cx),
            // For sites.
            Message::Keys(_)
            | Message::Page(_)
            | Message::Commit { .. }
            | Message::Ask { .. }
            | Message::Release { .. }
            | Message::Renew { .. }
            | Message::Watch { .. }
            | Message::Unwatch { .. }
            | Message::Broadcast { .. }
            | Message::Join { .. } => {}
        }
    }

    fn timer(
        &mut self,
        timer: CertifiedCoordinatorTimer,
        _: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) {
        match timer {
            CertifiedCoordinatorTimer::Repeat => {
                self.repeat(cx);
                cx.set_timer(CertifiedCoordinatorTimer::Repeat, cx.settings.retry_after);
            }
        }
    }

    fn open_transactions(&self) -> Vec<Txn> {
        self.running.keys().map(|&slot| Txn { slot, generation: 0 }).collect()
    }

    fn record_running(&self, recorder: &mut Recorder) {
        for commit in self.commits.values() {
            commit.record_unanswered(recorder);
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

    use super::*;

    #[test]
    #[should_panic(expected = "requests that nobody waits for")]
    fn a_request_of_no_operation_is_noticed() {
        let mut coordinator = CertifiedCoordinator::new(NodeId(0), 1, &Switches::default());
        coordinator.assert_invariants();
        coordinator.requests.insert(0, OpId(1));
        coordinator.assert_invariants();
    }
}
