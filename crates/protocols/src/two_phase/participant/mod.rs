//! The participant: a repository with its versions, clock, locks and commit queue.
//!
//! [`reads`] serves reads, and [`waits::reads`] keeps those that wait for a lock or for the clock.
//! [`prepare`] is the first phase: locks, validation, vote; [`waits`] says which prepares may wait
//! for which, and [`waits::prepares`] keeps them. `apply` is the second phase: decided
//! transactions in commit order. [`one_phase`] does both at once where one repository is all of a
//! transaction; [`encounter_locks`] are taken while it runs. [`termination`] finds the outcome of a
//! transaction whose coordinator died. [`checkpoint`] writes and restores the state, [`memory`]
//! bounds it.

use std::collections::{BTreeMap, VecDeque};

use muesli_core::parts::locks::{Owner, RangeLocks};
use muesli_core::parts::spaces::Spaces;
use muesli_core::parts::versions::{Handle, Versions};
use muesli_core::parts::watches::Watches;
use muesli_core::timers;
use muesli_core::wire::WireError;
use muesli_core::{
    Abort, Address, Catalog, Cursor, Decision, Nanos, NodeId, Pace, Readiness, Rejection,
    RepositoryId, Settings, SmallBytes, SpaceId, Timestamp, TxnId, View,
};

use crate::acknowledgements::Acknowledgements;
use crate::doubts::Asking;
use crate::two_phase::VariantState;
use crate::two_phase::message::{Message, Record, Vote};
use crate::two_phase::policy::{FamilySwitch, TreeSwitch};
use crate::two_phase::table::Table;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Switches, TwoPhase, Variant};
use as_printed::AsPrinted;
use encounter_locks::EncounterLocks;
use memory::Reported;
use termination::Finishing;
use waits::prepares::WaitingPrepares;
use waits::reads::WaitingReads;
use whereabouts::Whereabouts;

mod apply;
mod as_printed;
mod casting;
pub(in crate::two_phase) mod checkpoint;
mod collection;
pub(in crate::two_phase) mod encounter_locks;
mod invariants;
pub(in crate::two_phase) mod memory;
pub(in crate::two_phase) mod one_phase;
pub(in crate::two_phase) mod prepare;
pub(in crate::two_phase) mod reads;
pub(in crate::two_phase) mod termination;
pub(in crate::two_phase) mod waits;
pub(in crate::two_phase) mod whereabouts;

timers! {
    /// The timers of a participant.
    pub enum ParticipantTimer {
        /// Looks after prepares that wait for locks.
        Lock = 1,
        /// Looks after transactions in doubt and sends acknowledgements that wait for company.
        Sweep = 2,
    }
}

/// The participant.
///
/// Invariants (`invariants`), beside those of its parts:
/// * whoever holds the lock of a key for writing is prepared and writes it, delays an action on it,
///   or runs and has asked for it; as many share a lock as read the key and are prepared;
/// * what is prepared stands in the commit queue, ready where it is decided, and nothing else does;
/// * whose votes are gathered is prepared and in doubt; who waits for locks is neither;
/// * a timer is set while somebody waits.
#[derive(Clone, Debug)]
pub struct Participant<V: Variant> {
    pub(in crate::two_phase) id: RepositoryId,
    pub(in crate::two_phase) switches: Switches,
    pub(in crate::two_phase) protocol_switches: V::Switches,
    pub(in crate::two_phase) protocol_state: V::ProtocolState,
    pace: Pace,
    pub(in crate::two_phase) spaces: Spaces,
    /// Where keys went that were here.
    pub(in crate::two_phase) whereabouts: Whereabouts,
    pub(in crate::two_phase) time: V::Time,
    /// No version is needed that was replaced at or below this.
    pub(in crate::two_phase) unneeded: Timestamp,
    pub(in crate::two_phase) table: Table<V>,
    pub(in crate::two_phase) ranges: RangeLocks,
    pub(in crate::two_phase) waiting_reads: WaitingReads<V>,
    /// Who waits for a change of what was read.
    watches: Watches,
    /// Room for what a vote vouches for.
    pub(in crate::two_phase) vouched_bytes: Vec<u8>,
    /// Who has delayed actions on a key.
    pub(in crate::two_phase) delayers: BTreeMap<(SpaceId, Handle), Vec<Owner>>,
    /// Locks of transactions that have not prepared.
    pub(in crate::two_phase) encounters: EncounterLocks<V>,
    pub(in crate::two_phase) waiting_prepares: WaitingPrepares<V>,
    pub(in crate::two_phase) lock_timer_set: bool,
    pub(in crate::two_phase) finishing: BTreeMap<TxnId, Finishing<V>>,
    /// What it has is of a checkpoint or of the log: it is another moment's in parts, and what came
    /// of delayed procedures is in the log.
    pub(in crate::two_phase) replaying: bool,
    /// Whose turn has come in a replay, which has not come to what its procedures did.
    stalled: Option<Owner>,
    as_printed: AsPrinted,
    acknowledgements: Acknowledgements,
    sweep_timer_set: bool,
    steps_since_collect: u32,
    steps_since_low: u32,
    pub(in crate::two_phase) reported: Reported<V::Snapshot>,
    /// When to look for clients that were silent for long.
    pub(in crate::two_phase) forgets_at: Nanos,
    /// Whom the others were asked about.
    pub(in crate::two_phase) asking: Option<Asking>,
    /// Counts what may have changed a version or a lock.
    pub(in crate::two_phase) changes: u64,
}

impl<V: Variant> Participant<V> {
    /// The versions of `space`, made at its first use.
    #[inline]
    pub(in crate::two_phase) fn space(
        &mut self,
        space: SpaceId,
        cx: &Context<'_, V>,
    ) -> &mut Versions {
        self.spaces.get_or_make(space, cx.catalog)
    }

    /// Whether a rule of validation by a tree holds.
    #[inline]
    pub(in crate::two_phase) fn keeps(&self, switch: TreeSwitch) -> bool {
        V::keeps(&self.protocol_switches, switch)
    }

    /// Whether votes here tell intervals, and nothing is locked.
    #[inline]
    pub(in crate::two_phase) fn has_intervals(&self) -> bool {
        V::has_intervals(&self.protocol_switches)
    }

    /// Up to where transactions were applied here.
    pub fn committed(&self) -> V::Snapshot {
        self.time.committed()
    }

    /// No snapshot below this is served.
    pub fn low(&self) -> V::Snapshot {
        self.time.low()
    }

    /// The largest that this repository served, proposed or decided.
    pub fn newest(&self) -> V::Snapshot {
        self.time.newest()
    }

    /// The keys of a space with their versions.
    pub fn versions(&self, space: SpaceId) -> Option<&Versions> {
        self.spaces.get(space)
    }

    /// How many votes and decisions are kept for those who may ask.
    pub fn remembered(&self) -> usize {
        self.table.remembered()
    }

    /// Whether the end of a transaction is known everywhere, as its coordinator says.
    pub fn has_settled(&self, txn: TxnId) -> bool {
        self.table.is_settled(txn)
    }

    /// Somebody knows of a newer one than may be known here.
    pub(in crate::two_phase) fn observe(&mut self, newest: &V::Snapshot, cx: &mut Context<'_, V>) {
        self.time.observe(newest, cx);
    }

    /// The end of a transaction, from its coordinator or from whoever finished it.
    pub(in crate::two_phase) fn on_decide(
        &mut self,
        txn: TxnId,
        decision: Decision<V::Place>,
        cx: &mut Context<'_, V>,
    ) {
        let is_over = self.table.has_answers(txn);
        self.decide(txn, decision, cx);
        if is_over {
            self.tell_again(txn, cx);
        }
        self.acknowledge(txn, cx);
    }

    pub(in crate::two_phase) fn decide(
        &mut self,
        txn: TxnId,
        decision: Decision<V::Place>,
        cx: &mut Context<'_, V>,
    ) {
        self.finishing.remove(&txn);
        self.forget_waiting(txn);
        let Some(owner) = self.table.owner(txn) else {
            if self.table.known_vote(txn).is_none() && matches!(decision, Decision::Abort(_)) {
                cx.log(|| Record::Decided { txn, decision: decision.clone() });
                self.remember(txn, Vote::Decided(decision), cx);
            }
            return;
        };
        if self.table.get(owner).decided.is_some() {
            return;
        }
        // Votes of liars may come to what cannot be; then the end is waited for.
        if self.judge_end(txn, &decision, cx.catalog.repositories()).is_err() {
            return;
        }
        if self.switches.keeps(FamilySwitch::LogsDecisions) {
            cx.log_lazily(|| Record::Decided { txn, decision: decision.clone() });
        }
        self.settle(owner, decision, cx);
    }

    fn acknowledge(&mut self, txn: TxnId, cx: &mut Context<'_, V>) {
        match self.acknowledgements.add(txn) {
            Some(txns) => self.send_acknowledgement(txn.node, txns, cx),
            None => self.set_sweep_timer(cx),
        }
    }

    fn send_acknowledgement(&self, node: NodeId, txns: Vec<TxnId>, cx: &mut Context<'_, V>) {
        assert!(!txns.is_empty(), "{node:?} is told of the end of nothing");
        let message = Message::Acknowledge { repository: self.id, txns };
        cx.send_when_logged(Address::coordinator(node), message);
    }

    pub(in crate::two_phase) fn set_sweep_timer(&mut self, cx: &mut Context<'_, V>) {
        if !self.sweep_timer_set {
            self.sweep_timer_set = true;
            cx.set_timer(ParticipantTimer::Sweep, Nanos(cx.settings.retry_after.0 / 4));
        }
    }

    fn on_sweep_timeout(&mut self, cx: &mut Context<'_, V>) {
        self.sweep_timer_set = false;
        for (node, txns) in self.acknowledgements.take_all() {
            self.send_acknowledgement(node, txns, cx);
        }
        self.ask_about_doubtful(cx);
        self.drop_waiting_reads(cx);
        if !self.encounters.is_empty() {
            self.release_silent(cx);
        }
        if self.whereabouts.has_news() {
            self.tell_new_owners(cx);
            self.ask_owned_again(cx);
        }
        self.drop_watches(cx);
        let waits = !self.waiting_reads.is_empty()
            || !self.watches.is_empty()
            || !self.encounters.is_empty()
            || self.whereabouts.has_news();
        if self.table.in_doubt().next().is_some() || waits {
            self.set_sweep_timer(cx);
        }
    }

    /// Votes no, for good.
    pub(in crate::two_phase) fn refuse(
        &mut self,
        txn: TxnId,
        reason: Abort,
        cx: &mut Context<'_, V>,
    ) {
        cx.log_lazily(|| Record::Refused { txn, reason });
        self.remember(txn, Vote::No(reason), cx);
    }
}

impl<V: Variant> muesli_core::StateMachine<TwoPhase<V>> for Participant<V> {
    type Timer = ParticipantTimer;

    muesli_core::role_without_links!(TwoPhase<V>);

    fn judge(&self, message: &Message<V>, view: View<'_>) -> Result<(), Rejection> {
        self.judge_capacity(message, view)?;
        self.judge_state(message, view)
    }

    fn issued(&self) -> Timestamp {
        self.issued_here()
    }

    fn unfinished(&self) -> usize {
        self.table.in_doubt().count()
    }

    fn assert_invariants(&self) {
        self.check_invariants();
    }
}

impl<V: Variant> muesli_core::LoggedRole<TwoPhase<V>> for Participant<V> {
    fn start(&mut self, cx: &mut Context<'_, V>) {
        let is_empty = !std::mem::take(&mut self.replaying) && self.keeps_nothing();
        if let Some(owner) = self.stalled.take() {
            self.apply(owner, None, cx);
            self.apply_ready(cx);
        }
        if cx.catalog.visiting_coordinators {
            let catalog = cx.catalog;
            self.table.receive_all(cx.now(), |node| catalog.is_client(node));
        }
        self.protocol_state.restarted(&self.time.newest());
        if self.table.in_doubt().next().is_some() {
            self.set_sweep_timer(cx);
        }
        if V::POLICIES.moving.may_move() {
            self.find_untold(cx);
            self.begin_rebuild(is_empty, cx);
        }
    }

    muesli_core::role_that_stays!(TwoPhase<V>);

    fn receive(&mut self, from: Address, message: Message<V>, cx: &mut Context<'_, V>) {
        self.changes += 1;
        self.tell_time(cx);
        match message {
            Message::Read(request) => self.on_read(from, request, cx),
            Message::Scan(request) => self.on_scan(from, request, cx),
            Message::Prepare(prepare) => self.on_prepare(from, prepare, cx),
            Message::Decide { txn, decision, .. } => self.on_decide(txn, decision, cx),
            // What it carries is here already.
            Message::MergedDecision(ended) => self.on_decide(ended.txn, ended.decision, cx),
            Message::Ask { txn } => self.on_ask(from, txn, cx),
            Message::Lock(asked) => self.on_lock(from, asked, cx),
            Message::Unlock { reader } => self.on_unlock(reader, cx),
            Message::Settled { txn } => self.table.settle_below(txn),
            Message::Vote { txn, repository, vote, about, .. } => {
                self.on_vote(txn, repository, (vote, about), cx);
            }
            Message::Watermark { low, .. } => self.raise_low(&low, cx),
            Message::AskDoubts { asked, clients } => self.on_ask_doubts(from, asked, &clients, cx),
            Message::NoDoubts { repository, asked, clients } => {
                self.on_no_doubts(repository, asked, &clients, cx);
            }
            Message::Watch(watch) => self.on_watch(from, *watch, cx),
            Message::Unwatch { request } => self.on_unwatch(from, request),
            Message::NewOwners { moved } => self.on_new_owners(from, moved, cx),
            Message::KnownOwners { moved } => self.on_known_owners(moved, cx),
            Message::AskOwned(question) => self.on_ask_owned(from, question, cx),
            Message::Owned(page) => self.on_owned(from, *page, cx),
            Message::ReadReply(_)
            | Message::ScanReply(_)
            | Message::Acknowledge { .. }
            | Message::MergedVote(_)
            | Message::Ended { .. }
            | Message::Ran { .. }
            | Message::Changed { .. }
            | Message::Waiting { .. }
            | Message::Locked { .. }
            | Message::Bound { .. } => {} // For coordinators: whoever sent it here is mistaken.
        }
    }

    fn timer(&mut self, timer: ParticipantTimer, cx: &mut Context<'_, V>) {
        self.changes += 1;
        self.tell_time(cx);
        match timer {
            ParticipantTimer::Lock => self.on_lock_timeout(cx),
            ParticipantTimer::Sweep => self.on_sweep_timeout(cx),
        }
    }

    fn replay(&mut self, record: Record<V>, cx: &mut Context<'_, V>) {
        self.replaying = true;
        match record {
            Record::Ran { txn, writes, answers } => self.replay_ran(txn, writes, answers, cx),
            Record::Prepared { prepare, at } => {
                self.table.is_current(prepare.txn, prepare.settled_below);
                self.enter_prepared(prepare, at, Nanos(0), None, cx);
            }
            Record::Refused { txn, reason } => self.remember_logged(txn, Vote::No(reason)),
            Record::Decided { txn, decision } => match self.table.owner(txn) {
                Some(owner) => self.settle(owner, decision, cx),
                None => self.remember_logged(txn, Vote::Decided(decision)),
            },
            Record::Committed { at, writes } => self.replay_committed(&at, writes, cx),
            Record::UpperBound { at } => self.time.replay_upper_bound(at),
            Record::Low { low } => self.drop_below(&low, cx),
            Record::NewOwners { moved } => self.learn_owners(&moved, cx),
            Record::KnownOwners { moved } => self.forget_owners(&moved, cx.catalog),
            Record::Rebuild { is_over } => self.replay_rebuild(is_over),
        }
    }

    fn begin_checkpoint(&self) -> Option<Cursor> {
        // What has its turn and is about to be run would be restored as not even that.
        self.stalled.is_none().then(|| self.checkpoint_of_now())
    }

    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        self.next_piece(cursor, bytes, out)
    }

    fn checkpoint_readiness(&self, _cursor: &Cursor) -> Readiness {
        Readiness::Ready
    }

    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_, V>) -> Result<(), WireError> {
        self.replaying = true; // Pieces are of several moments, up to the last one's.
        self.restore_piece(piece, cx)
    }
}

impl<V: Variant> muesli_core::Participant<TwoPhase<V>> for Participant<V> {
    fn new(id: RepositoryId, settings: &Settings, switches: &V::Switches) -> Participant<V> {
        Participant {
            id,
            switches: V::switches(switches),
            protocol_switches: switches.clone(),
            protocol_state: V::ProtocolState::new(switches, settings.hash_seed),
            pace: settings.pace,
            spaces: Spaces::new(settings.hash_seed).recording_collected(settings.record_collected),
            whereabouts: Whereabouts::new(settings.hash_seed),
            time: V::Time::new(id, switches),
            unneeded: Timestamp::ZERO,
            table: Table::default(),
            ranges: RangeLocks::default(),
            waiting_reads: WaitingReads::default(),
            watches: Watches::default(),
            vouched_bytes: Vec::new(),
            delayers: BTreeMap::new(),
            encounters: EncounterLocks::default(),
            waiting_prepares: WaitingPrepares::default(),
            lock_timer_set: false,
            finishing: BTreeMap::new(),
            replaying: false,
            stalled: None,
            as_printed: AsPrinted::default(),
            acknowledgements: Acknowledgements::default(),
            sweep_timer_set: false,
            steps_since_collect: 0,
            steps_since_low: 0,
            reported: Reported::new(),
            forgets_at: Nanos(0),
            asking: None,
            changes: 0,
        }
    }

    muesli_core::participant_kept_by_one_node!();
    muesli_core::participant_without_sizes!();

    fn judge_record(&self, record: &Record<V>, catalog: &Catalog) -> Result<(), Rejection> {
        self.judge_logged(record, catalog)
    }

    fn mark(&mut self) -> Option<VecDeque<Vec<u8>>> {
        self.stalled.is_none().then(|| self.mark_now())
    }

    fn forget_mark(&mut self) {
        self.spaces.forget_mark();
        self.whereabouts.pointers.forget_mark();
    }

    fn go_back(
        &mut self,
        other: &mut Participant<V>,
        marked: VecDeque<Vec<u8>>,
        cx: &mut Context<'_, V>,
    ) -> bool {
        self.return_to_mark(other, marked, cx)
    }

    fn answer_behind(&mut self, _message: &Message<V>, _cx: &mut Context<'_, V>) -> bool {
        false
    }

    fn end(&mut self, settings: &Settings) {
        self.take_back_report(settings);
    }

    fn chains(&self, catalog: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        let mut chains = Vec::new();
        for (space, versions) in self.spaces.iter() {
            for (key, mut chain) in versions.chains() {
                if V::keys_move(catalog) {
                    if !self.has_key(space, key, catalog) {
                        continue;
                    }
                    chain.drain(..chain.len() - 1); // It may have been elsewhere between two.
                }
                chains.push((space, key.clone(), chain));
            }
        }
        chains.sort();
        chains
    }
}
