//! The coordinator: the client proxy (section 4.2). It gives transactions their ids, sends them to
//! their participants, and gathers the answers; it decides nothing.

pub mod calls;
pub mod copies;
pub mod interactive;
mod invariants;
mod leaving;
mod local_call;
pub mod master;
pub mod migration;
pub mod pending;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muesli_core::contract::at_once;
use muesli_core::parts::locator::OwnerDirectory;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::parts::window::Window;
use muesli_core::recorder::{RecordedOperations, Status};
use muesli_core::{
    Abort, Address, Answer, Failure, Here, Nanos, Nesting, NodeId, OpId, Operation, Outcome, Put,
    Recorder, RepositoryId, SmallBytes, SpaceId, Step, Timestamp, Txn, TxnId, TxnOptions, timers,
};

use crate::granola::message::{Few, FoundVersion, Message, PartAnswer, Refusal, SeenRange, Shown};
use crate::granola::{Granola, Switches};
use crate::unknown_outcomes::UnknownOutcomes;
use calls::{Holders, Invocation};
use copies::Copies;
use interactive::pages::Look;
use interactive::reads::InteractiveOperation;
use interactive::watching::InteractiveWatch;
use master::delegated::Cases;
use migration::Moving;
use pending::{Again, Pending};

pub(super) type Context<'a> = muesli_core::Context<'a, Granola>;

timers! {
    /// The timers of a coordinator.
    pub enum GranolaCoordinatorTimer {
        /// Looks after requests that were not answered.
        Sweep = 1,
        /// Begins another attempt of transactions that met a conflict.
        Retry = 2,
        /// Looks after what copies were asked and have not answered.
        Copies = 3,
        /// Drops cases of which nothing is heard any more.
        Cases = 4,
        /// Asks for the next pages of large reads.
        Pages = 5,
    }
}

/// So many transactions that failed before their end are remembered, with the reason.
const FAILED_MAX: usize = 256;

/// The coordinator.
///
/// Invariants (`invariants`), beside those of its parts:
/// * a slot is free or its transaction runs, and each slot is free once;
/// * an operation waits for as many answers as requests of it are under way, about to be sent, or
///   to be tried again; and every operation is one of a transaction that runs;
/// * a transaction whose end is under way has a request for that, or one that is to be tried again;
/// * who waits for a change runs no more, and repositories were asked to tell of it;
/// * no number is in use that was not given out, and a timer is set while somebody waits.
#[derive(Clone, Debug)]
pub struct Coordinator {
    id: NodeId,
    switches: Switches,
    incarnation: u32,
    sequence: u64,
    slots: Vec<InteractiveSlot>,
    free: Vec<u32>,
    failed: VecDeque<(Txn, Failure)>,
    next_op: u64,
    /// Operations of interactive transactions that wait for answers.
    operations: Window<InteractiveOperation>,
    /// Requests that are not settled, by sequence number.
    pending: Window<Pending>,
    /// When to try again, and what.
    again: BTreeMap<(Nanos, u64), Again>,
    /// Transactions whose clients were told that nobody knows, and what came of them since.
    unknown: UnknownOutcomes,
    /// Where partitions are, as far as this coordinator has heard.
    names: OwnerDirectory<u16>,
    /// It has asked, and was not answered.
    learning: bool,
    /// What it decides for other coordinators.
    cases: Cases,
    /// Copies of repositories that readers are answered from.
    copies: Copies,
    sweep_timer_set: bool,
    /// Of a client: who may keep ends of its transactions.
    took_part: BTreeSet<RepositoryId>,
    /// What is to be asked next for operations under way, in order.
    pages: VecDeque<(OpId, Look)>,
    /// Who waits for a change of what was read.
    watching: BTreeMap<u64, InteractiveWatch>,
}

/// What a request is for.
#[derive(Clone, Debug)]
enum Purpose {
    /// An interactive transaction reads.
    Read(OpId),
    /// It ends.
    Commit(Txn, OpId),
    /// A one-round transaction.
    Invoke(Invocation),
    /// The coordinator wants to know where partitions are.
    Names,
    /// A client wants to.
    Partitions(OpId),
    /// A client wants a repository to issue a timestamp.
    Issue(OpId),
    /// A partition is to move.
    Move(Box<Moving>),
}

/// How a transaction ended, by the answers of its participants.
#[derive(Clone, Debug)]
enum RequestVerdict {
    Done(Timestamp, Few<(u16, PartAnswer)>),
    Conflict,
    /// A partition is elsewhere, which is known at this timestamp or later.
    Moved(Timestamp),
    /// A participant may have done and forgotten what lies at or below this timestamp.
    Forgotten(Timestamp),
    Refused(Refusal),
}

impl RequestVerdict {
    /// Whether a participant knows nothing of the transaction, and has refused it for that.
    fn knows_nothing(&self) -> bool {
        let superseded = Refusal::Aborted(Abort::Superseded);
        match self {
            RequestVerdict::Forgotten(_) => true,
            RequestVerdict::Refused(refusal) => *refusal == superseded,
            RequestVerdict::Done(..) | RequestVerdict::Conflict | RequestVerdict::Moved(_) => false,
        }
    }
}

/// The place of an interactive transaction; reused, with its memory, by the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct InteractiveSlot {
    generation: u32,
    running: bool,
    /// Its end is under way: no further operations.
    pub ending: Option<u64>,
    pub options: TxnOptions,
    begun: Nanos,
    pub sets: TransactionSets,
    /// What was read: it is what is read again.
    pub seen: BTreeMap<(SpaceId, SmallBytes), FoundVersion>,
    /// Ranges that were read, by partition.
    pub scans: Vec<(u16, SeenRange)>,
    /// How many requests have read for it, and when the last of them did.
    pub looks: u32,
    pub read_at: Timestamp,
}

impl Coordinator {
    /// The slot of a transaction that takes operations.
    pub(super) fn open(&mut self, txn: Txn) -> Result<&mut InteractiveSlot, Failure> {
        let found = self.slots.get_mut(txn.slot as usize);
        let open = found.filter(|slot| {
            slot.running && slot.generation == txn.generation && slot.ending.is_none()
        });
        match open {
            Some(slot) => Ok(slot),
            None => {
                let known = self.failed.iter().rev().find(|(it, _)| *it == txn);
                Err(known.map_or(Failure::Ended, |(_, failure)| failure.clone()))
            }
        }
    }

    /// The slot of a transaction that has not ended, its end perhaps under way.
    pub(super) fn slot(&mut self, txn: Txn) -> Option<&mut InteractiveSlot> {
        let slot = self.slots.get_mut(txn.slot as usize)?;
        (slot.running && slot.generation == txn.generation).then_some(slot)
    }

    pub(super) fn next_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    pub(super) fn next_txn_id(&mut self) -> TxnId {
        self.sequence += 1;
        TxnId { node: self.id, incarnation: self.incarnation, sequence: self.sequence }
    }

    /// Who reads the next partition that several repositories hold.
    fn reader(&self) -> Holders {
        Holders::One { near: self.id, rotation: self.sequence }
    }

    /// All transactions with smaller numbers are settled everywhere.
    pub(super) fn settled_below(&self) -> u64 {
        self.pending.first().unwrap_or(self.sequence + 1)
    }

    /// Ends an interactive transaction: into the history, and its slot is free.
    pub(super) fn end(
        &mut self,
        txn: Txn,
        id: Option<TxnId>,
        status: Status,
        at: Option<Timestamp>,
        cx: &mut Context<'_>,
    ) {
        let environment = &mut cx.effects.environment;
        if let Some(recorder) = &mut environment.recorder {
            let id = id.unwrap_or_else(|| self.next_txn_id());
            let slot = &self.slots[txn.slot as usize];
            let end = (status != Status::Unknown).then_some(environment.now);
            slot.sets.record(id, (slot.begun, &slot.options), status, (end, at), recorder);
        }
        let slot = &mut self.slots[txn.slot as usize];
        assert!(slot.running && slot.generation == txn.generation, "a transaction ends twice");
        slot.running = false;
        slot.generation = slot.generation.wrapping_add(1);
        slot.sets.clear();
        slot.seen.clear();
        slot.scans.clear();
        self.free.push(txn.slot);
    }

    /// Ends an interactive transaction that failed before its commit, and everything that waits
    /// for it.
    pub(super) fn abort(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_>) {
        if self.slot(txn).is_none() {
            return;
        }
        self.end(txn, None, Status::Aborted, None, cx);
        if *failure != Failure::Aborted(Abort::Rollback) {
            if self.failed.len() == FAILED_MAX {
                self.failed.pop_front();
            }
            self.failed.push_back((txn, failure.clone()));
            assert!(self.failed.len() <= FAILED_MAX, "failures that are remembered have a bound");
        }
        self.fail_operations(txn, failure, cx);
    }

    pub(super) fn set_sweep_timer(&mut self, cx: &mut Context<'_>) {
        if !self.sweep_timer_set {
            self.sweep_timer_set = true;
            cx.set_timer(GranolaCoordinatorTimer::Sweep, Nanos(cx.settings.retry_after.0 / 2));
        }
    }

    fn on_sweep_timeout(&mut self, cx: &mut Context<'_>) {
        self.sweep_timer_set = false;
        self.send_again(cx);
        self.watch_again(cx);
        if !self.pending.is_empty() || !self.watching.is_empty() {
            self.set_sweep_timer(cx);
        }
    }
}

impl Coordinator {
    fn on_begin(&mut self, options: TxnOptions, cx: &Context<'_>) -> Txn {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(InteractiveSlot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[place as usize];
        assert!(!slot.running, "slot {place} was free, and its transaction runs");
        (slot.running, slot.ending, slot.options) = (true, None, options);
        (slot.begun, slot.looks, slot.read_at) = (cx.effects.now, 0, Timestamp::ZERO);
        Txn { slot: place, generation: slot.generation }
    }

    /// Buffers a write.
    fn on_put(&mut self, txn: Txn, write: Put, cx: &mut Context<'_>) -> Result<(), Failure> {
        let Put { space, key, value, may_wait: _ } = write;
        let slot = self.open(txn)?;
        if slot.options.read_only {
            return Err(Failure::ReadOnly);
        }
        let limits = &cx.settings.limits;
        match cx.effects.recorder {
            Some(_) => slot.sets.write_recorded((space, key, value), limits),
            None => slot.sets.write(space, key, value, limits),
        }
    }
}

impl muesli_core::StateMachine<Granola> for Coordinator {
    type Timer = GranolaCoordinatorTimer;

    muesli_core::role_without_judgement!(Granola);

    fn linked(&mut self, _: NodeId, _: &mut Context<'_>) {
        self.watching.values_mut().for_each(InteractiveWatch::ask_soon);
    }

    fn unlinked(&mut self, _: NodeId, _: &mut Context<'_>) {}

    fn unfinished(&self) -> usize {
        let running = self.slots.len() - self.free.len();
        running + self.pending.len() + self.again.len()
    }

    fn assert_invariants(&self) {
        self.check_invariants();
    }
}

impl muesli_core::Coordinator<Granola> for Coordinator {
    fn new(node: NodeId, incarnation: u32, switches: &Switches) -> Coordinator {
        Coordinator {
            id: node,
            switches: *switches,
            incarnation,
            sequence: 0,
            slots: Vec::new(),
            free: Vec::new(),
            failed: VecDeque::new(),
            next_op: 0,
            operations: Window::default(),
            pending: Window::default(),
            again: BTreeMap::new(),
            unknown: UnknownOutcomes::default(),
            names: OwnerDirectory::default(),
            learning: false,
            cases: Cases::default(),
            copies: Copies::default(),
            pages: VecDeque::new(),
            watching: BTreeMap::new(),
            sweep_timer_set: false,
            took_part: BTreeSet::new(),
        }
    }

    fn operate(
        &mut self,
        operation: Operation,
        here: Here<'_, Granola>,
        cx: &mut Context<'_>,
    ) -> Step {
        match operation {
            Operation::Begin(options) => Step::Done(Ok(Answer::Begun(self.on_begin(options, cx)))),
            Operation::Get(txn, space, key) => self.on_get(txn, space, &key, cx).map(Answer::Value),
            Operation::GetMany(txn, space, keys) => {
                self.on_get_many(txn, space, keys, cx).map(Answer::Values)
            }
            Operation::Scan(txn, scan) => self.on_scan(txn, scan, cx).map(Answer::Rows),
            Operation::Put(txn, write) => {
                Step::Done(self.on_put(txn, write, cx).map(|()| Answer::Written))
            }
            Operation::Delay(_, delay, _) => {
                Step::Done(at_once(&delay, cx.settings).map(Answer::Delayed))
            }
            Operation::Nest(txn, _) => {
                Step::Done(self.open(txn).map(|_| Answer::Nested(Nesting::Flat)))
            }
            Operation::Merge(..) | Operation::Unnest(..) => Step::Done(Ok(Answer::Ended)),
            Operation::Commit(txn) => self.on_commit(txn, cx).map(Answer::Committed),
            Operation::Watch(txn) => self.on_watch(txn, cx),
            Operation::Abort(txn, why) => {
                if self.open(txn).is_ok() {
                    self.abort(txn, &why, cx);
                }
                self.stop_watching(txn, &why, cx);
                Step::Done(Ok(Answer::Ended))
            }
            Operation::Invoke(options, call) => {
                self.on_invoke(options, call, here, cx).map(Answer::Invoked)
            }
        }
    }

    muesli_core::coordinator_without_peeks!(Granola);

    fn open_transactions(&self) -> Vec<Txn> {
        let is_open = |slot: &InteractiveSlot| slot.running && slot.ending.is_none();
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| is_open(slot));
        let named = slots.map(|(at, slot)| Txn { slot: at as u32, generation: slot.generation });
        named.chain(self.watching.values().map(|waiting| waiting.txn)).collect()
    }

    fn receive(
        &mut self,
        _from: Address,
        message: Message,
        _here: Here<'_, Granola>,
        cx: &mut Context<'_>,
    ) {
        match message {
            Message::Reply { txn, repository, end, noted } => {
                self.note_data(txn, &end, &noted, cx);
                self.on_reply(txn, repository, end, cx);
            }
            Message::Acknowledge { repository, txns } => {
                for txn in txns {
                    self.on_acknowledge(txn, repository);
                }
            }
            Message::Vote { txn, repository, ballot, about, tag, order: _ } => {
                self.on_ballot(txn, Shown { repository, ballot, about, tag }, cx);
            }
            Message::News { repository, stream, news } => {
                self.on_news(repository, stream, news, cx);
            }
            Message::Request(request) => self.on_case(&request, cx),
            Message::Changed { repository, request } => self.on_changed(repository, request, cx),
            // For participants: whoever sent it here is mistaken.
            Message::Decide { .. }
            | Message::Tell { .. }
            | Message::Follow { .. }
            | Message::Fetch { .. }
            | Message::Load { .. }
            | Message::Ask { .. }
            | Message::WhichPosition { .. }
            | Message::AskDoubts { .. }
            | Message::NoDoubts { .. }
            | Message::Watch { .. }
            | Message::Unwatch { .. }
            | Message::Position { .. } => {}
        }
    }

    fn start(&mut self, _here: Here<'_, Granola>, _cx: &mut Context<'_>) {}

    fn timer(
        &mut self,
        timer: GranolaCoordinatorTimer,
        _: Here<'_, Granola>,
        cx: &mut Context<'_>,
    ) {
        match timer {
            GranolaCoordinatorTimer::Sweep => self.on_sweep_timeout(cx),
            GranolaCoordinatorTimer::Retry => self.on_again_timeout(cx),
            GranolaCoordinatorTimer::Copies => self.on_copies_timeout(cx),
            GranolaCoordinatorTimer::Cases => self.on_cases_timeout(cx),
            GranolaCoordinatorTimer::Pages => self.ask_for_page(cx),
        }
    }

    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        None
    }

    fn session_token(&self) -> Option<SmallBytes> {
        None
    }

    fn adopt(&mut self, _token: &SmallBytes) {}

    fn leave(&mut self, cx: &mut Context<'_>) {
        self.tell_settled(cx);
    }

    fn record_running(&self, recorder: &mut Recorder) {
        for (place, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.running) {
            let (sequence, status) = match slot.ending {
                Some(sequence) => (sequence, Status::Unknown),
                None => (u64::MAX - place as u64, Status::Running),
            };
            let id = TxnId { node: self.id, incarnation: self.incarnation, sequence };
            slot.sets.record(id, (slot.begun, &slot.options), status, (None, None), recorder);
        }
        let sent = self.pending.iter().filter_map(|(_, pending)| pending.record_running());
        let waiting = self.again.values().filter_map(Again::record_running);
        for record in sent.chain(waiting) {
            recorder.transaction(&record, &RecordedOperations::default());
        }
    }

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.outcome_of(txn)
    }
}
