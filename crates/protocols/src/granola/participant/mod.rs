//! A repository: its keys, the transactions that wait for votes or for their turn, and its answers.

mod accesses;
pub(super) mod clock;
pub mod copies;
pub(super) mod execution;
pub mod failures;
mod invariants;
mod judge;
mod limits;
pub mod migration;
pub mod modes;
mod outcomes;
pub mod votes;
mod watches;

use std::collections::{BTreeSet, VecDeque};

use muesli_core::parts::footprint_locks::FootprintLocks;
use muesli_core::parts::spaces::Spaces;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::parts::watches::Watches;
use muesli_core::recorder::partition_sizes::{PartitionSizes, SizeCursor};
use muesli_core::wire::WireError;
use muesli_core::{
    Address, Catalog, Cursor, EVERYWHERE, Nanos, NodeId, Readiness, Rejection, RepositoryId,
    Settings, SmallBytes, SpaceId, Timestamp, TxnId, View, timers,
};

use crate::acknowledgements::Acknowledgements;
use crate::doubts::Asking;
use crate::granola::message::{Agreement, Message, Record, Request};
use crate::granola::{Granola, Switches};
use clock::Clock;
use copies::feed::Feeds;
use limits::ReportedMemory;
use migration::Moves;
use modes::active::{Active, Actives};
use modes::locking::Deferred;
use modes::queue::Queue;
use outcomes::EndedTransactions;
use votes::early_votes::EarlyVotes;
use votes::implicit::VoteSequences;

pub(super) type Context<'a> = muesli_core::Context<'a, Granola>;

timers! {
    /// The timers of a participant.
    pub enum GranolaParticipantTimer {
        /// Looks after votes that do not come and sends acknowledgements that wait for company.
        Sweep = 1,
        /// Looks after coordinated transactions that wait for locking mode.
        Lock = 2,
        /// Tells those who keep copies what has changed.
        Feed = 3,
        /// Does what is ready.
        Ready = 4,
        /// Removes loose keys.
        Loose = 5,
        /// Looks after what is being loaded and nobody asks for any more.
        Staged = 6,
        /// Looks for clients that were silent for long.
        Silent = 7,
    }
}

/// The participant.
///
/// Invariants (`invariants`), beside those of its parts:
/// * what is under way stands in the queue, where it is not prepared; what is prepared has claims,
///   and nobody has claims who is not under way;
/// * in timestamp mode only who is prepared has claims, and no coordinated transaction is;
/// * who waits for locking mode is not under way, and the repository is not in that mode;
/// * the sets of an execution are empty between two, and a timer is set while somebody waits, for a
///   change of what was read, too.
#[derive(Clone, Debug)]
pub struct Participant {
    id: RepositoryId,
    switches: Switches,
    spaces: Spaces,
    clock: Clock,
    active: Actives,
    /// Transactions in timestamp order, by their bounds.
    queue: Queue,
    /// Which votes this repository has cast for whom, and has heard of whom.
    vote_sequences: VoteSequences,
    /// Votes on transactions whose requests have not come.
    early_votes: EarlyVotes,
    memory: EndedTransactions,
    /// Whether it is in locking mode.
    locking: bool,
    /// What is touched by what was prepared.
    footprint_locks: FootprintLocks<TxnId>,
    /// Coordinated transactions that wait for locking mode, in the order they came.
    deferred: Vec<Deferred>,
    lock_timer_set: bool,
    /// What waited for too long as the repository went into locking mode because of it.
    blocked: BTreeSet<TxnId>,
    /// The sets of the execution under way; empty between two.
    sets: TransactionSets,
    /// Who keeps a copy, and has to be told what changes.
    feeds: Feeds,
    /// Partitions that came and went, come and go.
    moves: Moves,
    /// When copies were last told how far it has come.
    reached: Option<Nanos>,
    /// What it has told the process of its memory.
    reported: ReportedMemory,
    /// About whom the others were asked.
    asking: Option<Asking>,
    silent_timer_set: bool,
    acknowledgements: Acknowledgements,
    /// Who waits for a change of what was read here.
    watches: Watches,
    sweep_timer_set: bool,
    ready_timer_set: bool,
}

impl Participant {
    /// How many transactions wait for votes or for their turn.
    pub fn waiting(&self) -> usize {
        self.active.len()
    }

    /// How many ends are remembered for those who may ask.
    pub fn remembered(&self) -> usize {
        self.memory.len()
    }

    /// How many coordinators are known here.
    pub fn known_coordinators(&self) -> usize {
        self.memory.known_coordinators()
    }

    /// The highest timestamp at which anything was done here.
    pub fn done(&self) -> Timestamp {
        self.clock.done
    }

    /// Whether it is in locking mode.
    pub fn is_locking(&self) -> bool {
        self.locking
    }

    /// The spaces with their keys.
    pub fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// Everyone in a transaction but this repository.
    pub(super) fn others(&self, request: &Request) -> impl Iterator<Item = RepositoryId> + use<> {
        let (me, all) = (self.id, request.participants.clone());
        all.into_iter().filter(move |&other| other != me)
    }

    /// The end of a transaction is stable soon: its coordinator is to hear of it.
    pub(super) fn acknowledge(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        match self.acknowledgements.add(txn) {
            Some(txns) => self.send_acknowledgement(txn.node, txns, cx),
            None => self.set_sweep_timer(cx),
        }
    }

    fn send_acknowledgement(&self, node: NodeId, txns: Vec<TxnId>, cx: &mut Context<'_>) {
        assert!(!txns.is_empty(), "{node:?} is told of the end of nothing");
        let message = Message::Acknowledge { repository: self.id, txns };
        cx.send_when_logged(Address::coordinator(node), message);
    }

    pub(super) fn set_sweep_timer(&mut self, cx: &mut Context<'_>) {
        if !self.sweep_timer_set {
            self.sweep_timer_set = true;
            cx.set_timer(GranolaParticipantTimer::Sweep, Nanos(cx.settings.retry_after.0 / 4));
        }
    }

    pub(super) fn set_lock_timer(&mut self, cx: &mut Context<'_>) {
        if !self.lock_timer_set {
            self.lock_timer_set = true;
            cx.set_timer(GranolaParticipantTimer::Lock, Nanos(cx.settings.lock_wait.0 / 2 + 1));
        }
    }

    /// Something is ready: it is done once what was said has left.
    pub(super) fn set_ready_timer(&mut self, cx: &mut Context<'_>) {
        if !self.ready_timer_set {
            self.ready_timer_set = true;
            cx.defer(GranolaParticipantTimer::Ready);
        }
    }

    fn on_ready(&mut self, cx: &mut Context<'_>) {
        self.ready_timer_set = false;
        self.perform_next(cx);
        self.go_on(cx);
    }

    fn on_sweep_timeout(&mut self, cx: &mut Context<'_>) {
        self.sweep_timer_set = false;
        for (node, txns) in self.acknowledgements.take_all() {
            self.send_acknowledgement(node, txns, cx);
        }
        self.drop_early(cx);
        self.ask_for_votes(cx);
        self.look_for_blocked(cx);
        self.drop_watches(cx);
        let several = |active: &Active| active.request.agreement != Agreement::Alone;
        let keeps = self.early_votes.len() > 0 || !self.watches.is_empty();
        if keeps || self.active.values().any(several) {
            self.set_sweep_timer(cx);
        }
    }
}

impl muesli_core::StateMachine<Granola> for Participant {
    type Timer = GranolaParticipantTimer;

    muesli_core::role_without_links!(Granola);

    fn judge(&self, message: &Message, view: View<'_>) -> Result<(), Rejection> {
        self.judge_capacity(message, view)?;
        self.judge_state(message, view)
    }

    fn issued(&self) -> Timestamp {
        self.issued_here()
    }

    fn unfinished(&self) -> usize {
        self.active.len()
    }

    fn assert_invariants(&self) {
        self.check_invariants();
    }
}

impl muesli_core::LoggedRole<Granola> for Participant {
    fn start(&mut self, cx: &mut Context<'_>) {
        let catalog = cx.catalog;
        self.memory.receive_all(cx.now(), |node| catalog.is_client(node));
        self.set_silent_timer(cx);
        let coordinated = |active: &Active| active.request.agreement == Agreement::Coordinated;
        if self.switches.always_locks() || self.active.values().any(coordinated) {
            // What was voted on when the log broke off was prepared at one time, or claimed by
            // force.
            if !self.enter_locking(cx) {
                self.force_locking(cx);
            }
            self.blocked = self.active.keys().copied().collect();
        }
        if !self.active.is_empty() {
            self.set_sweep_timer(cx);
        }
        self.set_loose_timer(cx);
    }

    muesli_core::role_that_stays!(Granola);

    fn receive(&mut self, from: Address, message: Message, cx: &mut Context<'_>) {
        self.set_time(cx);
        match message {
            Message::Request(request) => self.on_request(request, cx),
            Message::Vote { txn, repository, ballot, about, order, .. } => {
                self.note_order(repository, &ballot, order, cx);
                self.on_vote(txn, repository, (ballot, about), cx);
                // Of who waits for this repository it may be known now that they come later; and
                // who waited for it may wait for another one now, behind more.
                if self.next_ready().is_some() {
                    self.go_on(cx);
                }
            }
            Message::Tell { txn, shared } => self.on_tell(txn, shared, cx),
            Message::WhichPosition { repository } => self.on_which_position(repository, cx),
            Message::Position { repository, order, at, voted } => {
                self.on_position(repository, order, at, voted, cx);
            }
            Message::Decide { txn, ballot, .. } => self.on_decide(txn, ballot, cx),
            Message::Ask { request, repository, ballot } => {
                self.on_ask(request, repository, ballot, cx);
            }
            Message::AskDoubts { asked, clients } => self.on_ask_doubts(from, asked, &clients, cx),
            Message::NoDoubts { repository, asked, clients } => {
                self.on_no_doubts(repository, asked, &clients, cx);
            }
            Message::Follow { has } => self.on_follow(from.node, has, cx),
            Message::Fetch { repository, partition, has } => {
                self.on_fetch(repository, partition, has, cx);
            }
            Message::Load { repository, partition, stream, source, load } => {
                self.on_load((repository, partition), (stream, source), load, cx);
            }
            Message::Watch { request, reads } => self.on_watch(from, request, *reads, cx),
            Message::Unwatch { request } => self.watches.remove(&(from, request)),
            // For coordinators: whoever sent it here is mistaken.
            Message::Reply { .. }
            | Message::Acknowledge { .. }
            | Message::News { .. }
            | Message::Changed { .. } => {}
        }
    }

    fn timer(&mut self, timer: GranolaParticipantTimer, cx: &mut Context<'_>) {
        self.set_time(cx);
        match timer {
            GranolaParticipantTimer::Sweep => self.on_sweep_timeout(cx),
            GranolaParticipantTimer::Lock => self.on_lock_timeout(cx),
            GranolaParticipantTimer::Feed => self.on_feed_timeout(cx),
            GranolaParticipantTimer::Ready => self.on_ready(cx),
            GranolaParticipantTimer::Loose => self.on_loose_timeout(cx),
            GranolaParticipantTimer::Staged => self.on_staged_timeout(cx),
            GranolaParticipantTimer::Silent => self.on_silent_timeout(cx),
        }
    }

    fn replay(&mut self, record: Record, cx: &mut Context<'_>) {
        self.replay_record(record, cx);
    }

    fn begin_checkpoint(&self) -> Option<Cursor> {
        Some(self.checkpoint_of_now())
    }

    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        self.next_piece(cursor, bytes, out)
    }

    fn checkpoint_readiness(&self, _cursor: &Cursor) -> Readiness {
        Readiness::Ready
    }

    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_>) -> Result<(), WireError> {
        self.restore_piece(piece, cx)
    }
}

impl muesli_core::Participant<Granola> for Participant {
    fn new(id: RepositoryId, settings: &Settings, switches: &Switches) -> Participant {
        Participant {
            id,
            switches: *switches,
            spaces: Spaces::new(settings.hash_seed).recording_collected(settings.record_collected),
            clock: Clock::new(id),
            active: Actives::default(),
            queue: Queue::new(switches.is_out_of_order()),
            vote_sequences: VoteSequences::default(),
            early_votes: EarlyVotes::default(),
            memory: EndedTransactions::default(),
            locking: switches.always_locks(),
            footprint_locks: FootprintLocks::default(),
            deferred: Vec::new(),
            lock_timer_set: false,
            blocked: BTreeSet::new(),
            sets: TransactionSets::default(),
            feeds: Feeds::default(),
            moves: Moves::default(),
            reached: None,
            reported: ReportedMemory::default(),
            asking: None,
            silent_timer_set: false,
            acknowledgements: Acknowledgements::default(),
            watches: Watches::default(),
            sweep_timer_set: false,
            ready_timer_set: false,
        }
    }

    muesli_core::participant_kept_by_one_node!();

    fn judge_record(&self, record: &Record, catalog: &Catalog) -> Result<(), Rejection> {
        self.judge_logged(record, catalog)
    }

    fn mark(&mut self) -> Option<VecDeque<Vec<u8>>> {
        Some(self.mark_now())
    }

    fn forget_mark(&mut self) {
        self.spaces.forget_mark();
    }

    fn go_back(
        &mut self,
        other: &mut Participant,
        marked: VecDeque<Vec<u8>>,
        cx: &mut Context<'_>,
    ) -> bool {
        self.return_to_mark(other, &marked, cx)
    }

    fn answer_behind(&mut self, message: &Message, cx: &mut Context<'_>) -> bool {
        self.answer_as_copy(message, cx)
    }

    fn end(&mut self, settings: &Settings) {
        self.take_back_report(settings);
    }

    fn add_sizes(
        &self,
        cursor: &mut SizeCursor,
        sizes: &mut PartitionSizes,
        catalog: &Catalog,
    ) -> bool {
        self.spaces.add_sizes(cursor, sizes, |space, key| {
            let partition = catalog.partition(space, key);
            (partition != EVERYWHERE && self.holds(partition, catalog)).then_some(partition)
        })
    }

    fn chains(&self, catalog: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        let mut chains = Vec::new();
        for (space, versions) in self.spaces.iter() {
            for (key, chain) in versions.chains() {
                if self.holds(catalog.partition(space, key), catalog) {
                    chains.push((space, key.clone(), chain));
                }
            }
        }
        chains.sort();
        chains
    }
}
