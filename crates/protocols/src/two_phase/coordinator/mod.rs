//! The coordinator: runs transactions for the clients of its node.
//!
//! Each running transaction has a [`slot`], with its read and write sets and what it has deferred
//! (`delays`). [`reads`] and [`scans`] answer from this node where a replica is here; what is
//! elsewhere is asked for by [`remote_requests`] (their state is in `asked`), large answers in
//! [`pages`]. [`commit`] divides a transaction among its repositories and counts their votes;
//! [`owners`] says where keys are, where these move; `awaited` collects the answers of deferred
//! actions. [`watermark`] tells which snapshots are in use; [`ending::failed`] remembers why
//! transactions failed before their commit; `nesting` begins and ends the parts of a transaction
//! that can be undone alone, and moves its snapshot.

use std::collections::{BTreeSet, VecDeque};

use muesli_core::Wire;
use muesli_core::parts::locator::{Hints, ValueCopies};
use muesli_core::parts::watermark::Bound;
use muesli_core::parts::watermark::Watermark;
use muesli_core::parts::window::Window;
use muesli_core::recorder::Status;
use muesli_core::{
    Address, Answer, Failure, Here, Nanos, NodeId, OpId, Operation, Outcome, Protocol, Recorder,
    Rejection, RepositoryId, SmallBytes, SpaceId, Step, Timestamp, Txn, TxnId, TxnOptions, View,
    timers,
};

use crate::two_phase::message::{Message, RepositoryVote, requests};
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::Snapshot;
use crate::two_phase::{Context, ReaderBounds, TwoPhase, Variant};
use crate::unknown_outcomes::UnknownOutcomes;
use asked::{PendingRequest, WaitingOperation};
use commit::Committing;
use commit::unreachable::UnreachableValidators;
use ending::failed::Failed;
use owners::{COPIES_BYTES_MAX, HINTS_MAX, HintedKey};
use slot::{Slot, SlotPhase};
use watching::WaitingClient;

pub(in crate::two_phase) mod asked;
pub(in crate::two_phase) mod commit;
mod delays;
pub(in crate::two_phase) mod ending;
mod invariants;
mod nesting;
pub(in crate::two_phase) mod owners;
pub(in crate::two_phase) mod pages;
pub(in crate::two_phase) mod reads;
pub(in crate::two_phase) mod remote_requests;
pub(in crate::two_phase) mod scans;
pub(in crate::two_phase) mod slot;
pub(in crate::two_phase) mod watching;
pub(in crate::two_phase) mod watermark;
mod writes;

timers! {
    /// The timers of a coordinator.
    pub enum CoordinatorTimer {
        /// Tells the bound of this node's snapshots.
        Gossip = 0,
        /// Looks after requests and commits that were not answered.
        Sweep = 1,
        /// Asks repositories of this node for the next pages.
        Pages = 2,
    }
}

/// The coordinator.
///
/// Invariants (`invariants`), beside those of its parts:
/// * a slot is free or its transaction runs, and each slot is free once;
/// * an operation waits for as many answers as requests of it are open or put aside, and every
///   request is one of an operation, and every operation one of a transaction that runs;
/// * a commit that its client waits for has a slot, and the slot knows it; one that nobody waits
///   for has none;
/// * no running transaction reads below the bound that was told, unless it has run for too long;
/// * no number is in use that was not given out.
#[derive(Clone, Debug)]
pub struct Coordinator<V: Variant> {
    pub(in crate::two_phase) id: NodeId,
    pub(in crate::two_phase) incarnation: u32,
    pub(in crate::two_phase) tolerates_stale_reads: bool,
    /// Whether keys are locked as they are written.
    locks_at_writes: bool,
    pub(in crate::two_phase) switches: V::Switches,
    sequence: u64,
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    failed: Failed,
    next_op: u64,
    /// Operations that wait for answers, by number.
    pub(in crate::two_phase) operations: Window<WaitingOperation>,
    /// Requests that wait for answers, or for the snapshot to be known.
    pub(in crate::two_phase) requests: Window<PendingRequest>,
    pub(in crate::two_phase) next_request: u64,
    /// Requests for further pages of repositories here, in order.
    pub(in crate::two_phase) pages: VecDeque<u64>,
    /// Commits under way, by sequence number; they stay until everybody has acknowledged.
    pub(in crate::two_phase) committing: Window<Committing<V>>,
    /// Commits whose clients were told that nobody knows, by sequence number, and what came of
    /// them since.
    pub(in crate::two_phase) unknown: UnknownOutcomes,
    pub(in crate::two_phase) unreachable: UnreachableValidators,
    /// Where keys are that have moved.
    hints: Hints<HintedKey>,
    /// What was read of them.
    copies: ValueCopies<HintedKey>,
    /// Clients that wait for a change, by the numbers of their requests.
    watching: Window<WaitingClient<V>>,
    sweep_timer_set: bool,
    /// The largest timestamp heard of.
    pub(in crate::two_phase) observed: V::Snapshot,
    /// A transaction was aborted because its snapshot was behind this: the next ones are not, or
    /// a node that is told of nothing new would read the same stale versions for ever.
    pub(in crate::two_phase) fresh: V::Snapshot,
    /// What transactions of this node have seen, where nodes remember.
    pub(in crate::two_phase) seen: V::Snapshot,
    /// No transaction of this node reads below it: told to others, so it never falls.
    pub(in crate::two_phase) bound: V::Snapshot,
    pub(in crate::two_phase) watermark: Watermark<V::Snapshot>,
    /// Transactions begun before this are too old to hold versions back.
    pub(in crate::two_phase) aged: Nanos,
    /// When this life began.
    pub(in crate::two_phase) started: Option<Nanos>,
    pub(in crate::two_phase) sent_all_at: Nanos,
    /// Of a client: who took part in its commits since it said that these are settled.
    pub(in crate::two_phase) took_part: BTreeSet<RepositoryId>,
    pub(in crate::two_phase) ended_since_sent: u32,
    pub(in crate::two_phase) begun_since_gossip: bool,
    pub(in crate::two_phase) idle_factor: u64,
}

impl<V: Variant> Coordinator<V> {
    /// Whether no transaction but one runs in the whole database.
    #[inline]
    pub(in crate::two_phase) fn runs_alone(&self, cx: &Context<'_, V>) -> bool {
        self.slots.len() == self.free.len() + 1 && cx.catalog.is_only_coordinator(self.id)
    }

    /// The running transactions.
    pub(in crate::two_phase) fn running(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().filter(|slot| slot.running)
    }

    /// Who reads for a transaction.
    #[inline]
    pub(in crate::two_phase) fn reader(&self, txn: Txn) -> V::Reader {
        let slot = self.slots.get(txn.slot as usize);
        let tried_since = slot.map_or(Nanos(0), |slot| slot.options.tried_since);
        V::Reader::new(self.id, self.incarnation, txn, tried_since)
    }

    /// The slot of a transaction that takes operations.
    #[inline]
    pub(in crate::two_phase) fn open(&mut self, txn: Txn) -> Result<&mut Slot<V>, Failure> {
        match self.slots.get_mut(txn.slot as usize) {
            Some(slot)
                if slot.running
                    && slot.generation == txn.generation
                    && slot.phase == SlotPhase::Open =>
            {
                Ok(slot)
            }
            Some(slot) => Err(slot.refusal(txn, &self.failed)),
            None => Err(self.failed.reason(txn)),
        }
    }

    /// The slot of a transaction that has not ended, its commit perhaps under way.
    pub(in crate::two_phase) fn slot(&mut self, txn: Txn) -> Option<&mut Slot<V>> {
        let slot = self.slots.get_mut(txn.slot as usize)?;
        (slot.running && slot.generation == txn.generation).then_some(slot)
    }

    pub(in crate::two_phase) fn next_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    #[inline]
    pub(in crate::two_phase) fn next_txn_id(&mut self) -> TxnId {
        self.sequence += 1;
        TxnId { node: self.id, incarnation: self.incarnation, sequence: self.sequence }
    }

    /// All commits with smaller numbers are settled everywhere.
    pub(in crate::two_phase) fn settled_below(&self) -> u64 {
        self.committing.first().unwrap_or(self.sequence)
    }

    pub(in crate::two_phase) fn set_sweep_timer(&mut self, cx: &mut Context<'_, V>) {
        if !self.sweep_timer_set {
            self.sweep_timer_set = true;
            cx.set_timer(CoordinatorTimer::Sweep, Nanos(cx.settings.retry_after.0 / 2));
        }
    }

    fn on_sweep_timeout(&mut self, cx: &mut Context<'_, V>) {
        self.sweep_timer_set = false;
        self.retry_requests(cx);
        self.retry_commits(cx);
        self.watch_again(cx);
        let waits = !self.requests.is_empty() || !self.watching.is_empty();
        if waits || !self.committing.is_empty() {
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
        let mut base = V::Snapshot::from_lower_bound(options.lower_bound);
        base.join(&self.bound);
        base.join(&self.fresh);
        if V::has_intervals(&self.switches) {
            // Votes are intervals above the clocks of their repositories: these must not differ.
            base.join(&self.observed);
        }
        if V::POLICIES.reading.nodes_remember() {
            base.join(&self.seen);
        }
        let slot = &mut self.slots[place as usize];
        assert!(!slot.running, "slot {place} was free, and its transaction runs");
        slot.occupy(options, base, cx.effects.now);
        self.begun_since_gossip = true;
        Txn { slot: place, generation: slot.generation }
    }
}

/// A one-round transaction was asked for.
fn no_procedures<V: Variant>() -> Failure {
    Failure::Procedure(format!(
        "protocol `{}` runs no procedures; allowed are `granola`, `granola-locking`, `sinfonia`",
        TwoPhase::<V>::NAME
    ))
}

impl<V: Variant> muesli_core::StateMachine<TwoPhase<V>> for Coordinator<V> {
    type Timer = CoordinatorTimer;

    fn judge(&self, message: &Message<V>, _view: View<'_>) -> Result<(), Rejection> {
        self.judge_state(message)
    }

    fn issued(&self) -> Timestamp {
        self.observed.reach()
    }

    fn linked(&mut self, node: NodeId, cx: &mut Context<'_, V>) {
        // What was sent to it before may be lost: its patience is over.
        for request in self.requests.values_mut() {
            if cx.catalog.home(request.to) == node {
                request.quiet = Nanos(0);
            }
        }
        self.committing.values_mut().for_each(Committing::expect_no_answer);
        self.watching.values_mut().for_each(WaitingClient::ask_soon);
        self.regain_validators(node);
    }

    fn unlinked(&mut self, node: NodeId, cx: &mut Context<'_, V>) {
        self.lose_validators(node, cx);
    }

    fn unfinished(&self) -> usize {
        self.running().count() + self.committing.len()
    }

    fn assert_invariants(&self) {
        self.check_invariants();
    }
}

impl<V: Variant> muesli_core::Coordinator<TwoPhase<V>> for Coordinator<V> {
    fn new(node: NodeId, incarnation: u32, switches: &V::Switches) -> Coordinator<V> {
        Coordinator {
            id: node,
            incarnation,
            tolerates_stale_reads: V::tolerates_stale_reads(switches),
            locks_at_writes: V::locks_at_writes(switches),
            switches: switches.clone(),
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
            unknown: UnknownOutcomes::default(),
            unreachable: UnreachableValidators::default(),
            hints: Hints::new(HINTS_MAX),
            copies: ValueCopies::new(COPIES_BYTES_MAX),
            watching: Window::default(),
            sweep_timer_set: false,
            observed: V::Snapshot::default(),
            fresh: V::Snapshot::default(),
            seen: V::Snapshot::default(),
            bound: V::Snapshot::default(),
            watermark: Watermark::default(),
            aged: Nanos(0),
            started: None,
            sent_all_at: Nanos(0),
            took_part: BTreeSet::new(),
            ended_since_sent: 0,
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
                Step::Done(self.on_deferral(txn, &delay, answered, cx).map(Answer::Delayed))
            }
            Operation::Nest(txn, level) => {
                Step::Done(self.on_nest(txn, level, cx).map(Answer::Nested))
            }
            Operation::Merge(txn, level) => {
                self.on_merge(txn, level, &here, cx).map(|()| Answer::Ended)
            }
            Operation::Unnest(txn, level) => {
                Step::Done(self.on_unnest(txn, level, cx).map(|()| Answer::Ended))
            }
            Operation::Commit(txn) => {
                std::mem::forget(operation);
                let step = self.on_commit(txn, here.reborrow(), cx);
                self.count_ended(&mut here, cx);
                step.map(Answer::Committed)
            }
            Operation::Abort(txn, why) => {
                if self.slot(txn).is_some_and(|slot| slot.committing().is_none()) {
                    self.abort(txn, &why, cx);
                }
                self.stop_watching(txn, &why, cx);
                Step::Done(Ok(Answer::Ended))
            }
            Operation::Watch(txn) => self.on_watch(txn, cx),
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

    fn open_transactions(&self) -> Vec<Txn> {
        let is_open = |slot: &Slot<V>| slot.running && slot.committing().is_none();
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| is_open(slot));
        let waits = self.watching.iter().map(|(_, watching)| watching.txn);
        let named = slots.map(|(at, slot)| Txn { slot: at as u32, generation: slot.generation });
        named.chain(waits).collect()
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
                self.observed.join(&committed);
                if txn.incarnation == self.incarnation {
                    self.on_vote(txn, RepositoryVote { repository, vote, about, tag }, cx);
                }
            }
            Message::Acknowledge { repository, txns } => {
                for txn in txns {
                    self.on_acknowledge(txn, repository);
                }
            }
            Message::Ran { txn, answers, violation } => self.on_ran(txn, answers, violation, cx),
            Message::Bound { bound, newest } => {
                self.on_bound(from.node, bound, &newest, &mut here, cx);
            }
            Message::Watermark { low, newest } => self.on_watermark(&low, &newest, &mut here, cx),
            Message::Locked { request, refused } => self.on_locked(request, refused, cx),
            Message::Changed { request } => self.on_changed(request, cx),
            Message::Waiting { txn, waiting } => self.on_waiting(txn, waiting),
            Message::NewOwners { moved } => {
                for it in moved {
                    self.learn_owner((it.space, it.key), (it.to, it.at));
                }
            }
            Message::Ended { txn, decision, newest, tag } => {
                self.observed.join(&newest);
                if txn.incarnation == self.incarnation {
                    self.on_ended(txn, decision, tag, cx);
                }
            }
            // For participants and validators: whoever sent it here is mistaken.
            requests!() | Message::MergedVote(_) | Message::MergedDecision(_) => {}
        }
    }

    fn start(&mut self, mut here: Here<'_, TwoPhase<V>>, cx: &mut Context<'_, V>) {
        self.on_gossip_timeout(&mut here, cx);
    }

    fn timer(
        &mut self,
        timer: CoordinatorTimer,
        mut here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        match timer {
            CoordinatorTimer::Gossip => self.on_gossip_timeout(&mut here, cx),
            CoordinatorTimer::Sweep => self.on_sweep_timeout(cx),
            CoordinatorTimer::Pages => self.ask_for_page(cx),
        }
    }

    fn leave(&mut self, cx: &mut Context<'_, V>) {
        self.tell_settled(cx);
    }

    fn record_running(&self, recorder: &mut Recorder) {
        for (place, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.running) {
            let (sequence, status) = match slot.committing() {
                Some(sequence) => (sequence, Status::Unknown),
                None => (u64::MAX - place as u64, Status::Running),
            };
            let id = TxnId { node: self.id, incarnation: self.incarnation, sequence };
            slot.sets.record(id, (slot.begun, &slot.options), status, (None, None), recorder);
        }
    }

    /// The oldest transaction here; without one, whose bound is the least of those that were told.
    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        let here = self.running().map(|slot| slot.begun).min();
        let held_by = || self.watermark.holder().map(|node| (node, None));
        here.map(|begun| (self.id, Some(begun))).or_else(held_by)
    }

    fn session_token(&self) -> Option<SmallBytes> {
        if !V::POLICIES.reading.nodes_remember() {
            return None;
        }
        let mut bytes = Vec::new();
        self.seen.encode(&mut bytes);
        Some(bytes.into())
    }

    fn adopt(&mut self, session_token: &SmallBytes) {
        if V::POLICIES.reading.nodes_remember()
            && V::switches(&self.switches).keeps(FamilySwitch::SessionsBringTokens)
            && let Ok(seen) = V::Snapshot::decode_all(session_token.as_slice())
        {
            self.seen.join(&seen);
        }
    }

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.outcome_of(txn)
    }
}
