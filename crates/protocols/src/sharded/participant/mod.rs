//! The participant: a member of a shard, which keeps the keys of that, is a member of its
//! broadcast, and takes commands as they are delivered.
//!
//! What follows from the commands alone is the same at all members: the clock, which transactions
//! there are and what they were given, and whether the shard objects to one. When a member gets to
//! know what other shards say is its own affair, and so is when it has applied what.

mod checkpoint;
mod collect;
mod commands;
mod commit;
mod deletions;
mod exchange;
mod execute;
mod fresh_clocks;
mod ordering;
mod reads;
mod repeat;
mod transaction;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muesli_broadcast::{Broadcast as _, ChosenBroadcast, CommandId};
use muesli_core::memory::Held;
use muesli_core::parts::single_repository::KnownOutcomes;
use muesli_core::parts::spaces::Spaces;
use muesli_core::parts::versions::Versions;
use muesli_core::parts::watches::Watches;
use muesli_core::{
    Address, Catalog, Cursor, LoggedRole, Nanos, NodeId, Readiness, Rejection, RepositoryId,
    Settings, SmallBytes, SpaceId, StateMachine, Timestamp, TxnId, View, WireError, timers,
};

use super::locator::ShardId;
use super::message::command::{ShardCommand, end_of};
use super::message::{Message, Record, ShardAnswer};
use super::switches::ShardedSwitch;
use super::{Context, Sharded, Switches};
use crate::certified::message::command::CallsEnd;
use crate::certified::state::objects::CertifiedObjects;
use crate::certified::state::readers::SiteReaders;
use crate::forgotten_clients::ForgottenClients;
use deletions::RecentDeletions;
use fresh_clocks::FreshClocks;
use reads::WaitingShardRead;

pub use reads::{ReadStep, ShardRead};
use transaction::ShardTransactions;

timers! {
    /// The timers of a member.
    pub enum ShardTimer {
        /// Time passes for the broadcast, what is missing is asked for, versions are collected.
        Tick = 0,
    }
}

/// A coordinator whose transactions came to this shard.
#[derive(Clone, Copy, Debug)]
struct ShardClient {
    /// When a command of it was delivered last.
    at: Nanos,
    /// Its first transaction that was: incarnation and number. Of those before nothing is known.
    from: (u32, u64),
    /// Below this are all that were.
    until: (u32, u64),
}

/// A barrier that is under way.
#[derive(Clone, Debug)]
struct PendingBarrier {
    /// When it was proposed.
    since: Nanos,
    /// Who is to be told of the clock.
    asked: Vec<(Address, u64)>,
}

/// What other shards have said of a transaction that is not prepared here yet.
#[derive(Clone, Debug)]
struct EarlyAnswers {
    since: Nanos,
    answers: Vec<(ShardId, ShardAnswer)>,
}

/// A member of a shard.
///
/// Invariants, beside those of its parts:
/// * no timestamp was given that is above the clock;
/// * no snapshot that is served is older than what is forgotten;
/// * what is known of a client begins no later than it ends.
#[derive(Clone, Debug)]
pub struct ShardMember {
    id: RepositoryId,
    switches: Switches,
    /// Known once the catalog is.
    member: Option<ChosenBroadcast>,
    spaces: Spaces,
    objects: CertifiedObjects,
    deletions: RecentDeletions,
    /// The shard's clock.
    clock: u64,
    /// How far this member has proposed that it advance.
    advances_to: u64,
    transactions: ShardTransactions,
    early: BTreeMap<TxnId, EarlyAnswers>,
    /// How transactions ended that came to this shard.
    outcomes: KnownOutcomes,
    /// What came of procedures, for as long as that is remembered.
    calls: BTreeMap<TxnId, CallsEnd>,
    clients: BTreeMap<NodeId, ShardClient>,
    forgotten_clients: ForgottenClients,
    /// What was proposed below this clock may be of a client that was forgotten since.
    horizon: u64,
    /// What this member has proposed, and is not delivered.
    proposed: BTreeMap<CommandId, ShardCommand>,
    /// What is to be proposed.
    wanted: VecDeque<ShardCommand>,
    /// The transactions that this member has proposed, or wants to, to prepare or to refuse.
    proposing: BTreeSet<TxnId>,
    /// Who waits for the end of a transaction.
    waiting: BTreeMap<TxnId, Address>,
    waiting_reads: BTreeMap<(Address, u64), WaitingShardRead>,
    /// Who is to be told of the clock, once a barrier is delivered that is not proposed yet, and
    /// that is.
    clock_requests: Vec<(Address, u64)>,
    /// All who wait to be told of the clock.
    asking: BTreeSet<(Address, u64)>,
    barriers: BTreeMap<CommandId, PendingBarrier>,
    /// What the clock was a while ago.
    fresh: FreshClocks,
    readers: SiteReaders,
    /// Who waits for changes.
    watches: Watches,
    /// Snapshots below this clock are too old.
    forgotten: u64,
    /// The clock as it was a while ago, at several times.
    earlier_clocks: VecDeque<(Nanos, u64)>,
    /// Records of an earlier incarnation are replayed.
    is_replaying: bool,
    /// The state is that of a checkpoint, and its log is not replayed to the end yet.
    is_restored: bool,
    /// What was reported of its memory.
    reported: Held,
    /// Transactions since versions were collected.
    uncollected: u32,
}

impl ShardMember {
    /// The shard's clock, as far as this member has come.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// How many transactions are remembered that some shard may still ask for.
    pub fn remembered(&self) -> usize {
        self.transactions.iter().count()
    }

    /// The keys of a space.
    pub fn versions(&self, space: SpaceId) -> Option<&Versions> {
        self.spaces.get(space)
    }

    /// Does all that can be done now: certifies what is next, proposes what is wanted, and answers
    /// who waits.
    pub(super) fn go_on(&mut self, cx: &mut Context<'_>) {
        assert!(!self.is_replaying, "nothing is done in a replay");
        loop {
            self.certify_next(cx);
            self.answer_reads(cx);
            match self.wanted.pop_front() {
                Some(command) => self.propose(command, cx),
                None => break,
            }
        }
        assert!(self.wanted.is_empty(), "something is wanted, and was not proposed");
    }

    /// After the records of earlier incarnations: what was proposed in these may still be
    /// delivered, and what was prepared goes on.
    fn begin_incarnation(&mut self, cx: &mut Context<'_>) {
        assert!(self.waiting.is_empty(), "somebody waits for an earlier incarnation");
        assert_eq!(self.readers.oldest(), None, "somebody reads in an earlier incarnation");
        self.is_replaying = false;
        self.is_restored = false;
        cx.wait_for_log();
        self.forgotten = self.clock;
        self.deletions.forget(end_of(self.clock));
        // Who was observed in earlier incarnations is remembered for a lease from now on.
        self.clients.values_mut().for_each(|client| client.at = cx.now());
        let member = self.member(cx);
        let proposed: Vec<_> = member.proposed().map(|(id, it)| (id, it.clone())).collect();
        for (id, command) in proposed {
            if let Ok(command) = ShardCommand::decoded(&command) {
                self.proposing.extend(command.transaction());
                self.proposed.insert(id, command);
            }
        }
        let all: Vec<TxnId> = self.transactions.iter().map(|(txn, _)| txn).collect();
        for txn in all {
            self.take_early(txn);
            self.conclude(txn, cx);
            self.transactions.drop_if_over(txn);
        }
        self.go_on(cx);
    }
}

impl StateMachine<Sharded> for ShardMember {
    type Timer = ShardTimer;

    muesli_core::role_without_links!(Sharded);

    fn judge(&self, message: &Message, view: View<'_>) -> Result<(), Rejection> {
        match message {
            Message::Broadcast { message, .. } => self.judge_broadcast(message, view),
            Message::Keys(_)
            | Message::KeysReply(_)
            | Message::Page(_)
            | Message::PageReply(_)
            | Message::Commit { .. }
            | Message::Ended { .. }
            | Message::NotKnown { .. }
            | Message::Release { .. }
            | Message::Renew { .. }
            | Message::Answer { .. }
            | Message::Ask { .. }
            | Message::AskClock { .. }
            | Message::ClockReply { .. }
            | Message::NotFresh { .. }
            | Message::Watch { .. }
            | Message::Unwatch { .. }
            | Message::Changed { .. } => Ok(()),
        }
    }

    fn issued(&self) -> Timestamp {
        end_of(self.clock)
    }

    fn unfinished(&self) -> usize {
        let is_behind = self.member.as_ref().is_some_and(|member| member.is_behind());
        self.transactions.unfinished() + self.proposed.len() + usize::from(is_behind)
    }

    fn assert_invariants(&self) {
        self.spaces.assert_invariants();
        self.deletions.assert_invariants();
        self.readers.assert_invariants();
        self.watches.assert_invariants();
        self.transactions.assert_invariants();
        self.member.iter().for_each(ChosenBroadcast::assert_invariants);
        assert!(self.forgotten <= self.clock, "{} of {} forgotten", self.forgotten, self.clock);
        let oldest = self.readers.oldest();
        assert!(oldest.is_none_or(|it| it >= self.forgotten), "{oldest:?} is served");
        assert!(self.horizon <= self.clock, "a horizon at {}, of {}", self.horizon, self.clock);
        self.fresh.assert_invariants(self.forgotten, self.clock);
        self.forgotten_clients.assert_invariants();
        let mut clients = self.clients.values();
        assert!(clients.all(|it| it.from <= it.until), "a client ends before it begins");
        let asked = self.barriers.values().map(|it| it.asked.len()).sum::<usize>();
        let asked = asked + self.clock_requests.len();
        assert_eq!(asked, self.asking.len(), "who waits for a clock waits once");
        let mut barriers = self.barriers.keys();
        assert!(barriers.all(|id| self.proposed.contains_key(id)), "a barrier, and no command");
        let mut given = self.transactions.iter().map(|(_, it)| it.prepared.proposed.counter());
        assert!(given.all(|counter| counter <= self.clock), "a timestamp above {}", self.clock);
    }
}

impl LoggedRole<Sharded> for ShardMember {
    muesli_core::role_that_stays!(Sharded);

    fn start(&mut self, cx: &mut Context<'_>) {
        self.begin_incarnation(cx);
        cx.set_timer(ShardTimer::Tick, tick_every(cx.settings));
    }

    fn receive(&mut self, from: Address, message: Message, cx: &mut Context<'_>) {
        match message {
            Message::Keys(request) => self.on_keys(from, request, cx),
            Message::Page(request) => self.on_page(from, request, cx),
            Message::Commit { settled_below, again, participants, command } => {
                self.on_commit(from, (settled_below, again), participants, command, cx);
            }
            Message::Release { readers } => {
                readers.into_iter().for_each(|reader| self.readers.remove(from.node, reader));
            }
            Message::Renew { readers } => {
                for reader in readers {
                    let _ = self.readers.snapshot(from.node, reader, cx.now());
                }
            }
            Message::Broadcast { message, .. } => self.on_broadcast(from, message, cx),
            Message::Answer { txn, answer } => self.on_answer(from, txn, answer, cx),
            Message::Ask { txn, participants, in_doubt, has_ended } => {
                self.on_ask(from, (txn, participants), (in_doubt, has_ended), cx);
            }
            Message::AskClock { request, bound } => self.on_ask_clock(from, request, bound, cx),
            Message::Watch { request, reads, ranges } => {
                self.on_watch(from, request, (reads, ranges), cx);
            }
            Message::Unwatch { request } => self.watches.remove(&(from, request)),
            // For coordinators.
            Message::KeysReply(_)
            | Message::PageReply(_)
            | Message::Ended { .. }
            | Message::NotKnown { .. }
            | Message::ClockReply { .. }
            | Message::NotFresh { .. }
            | Message::Changed { .. } => {}
        }
        self.go_on(cx);
    }

    fn timer(&mut self, timer: ShardTimer, cx: &mut Context<'_>) {
        match timer {
            ShardTimer::Tick => {
                self.order(cx, |member, out| member.tick(out));
                self.look_after_transactions(cx);
                self.forget_silent(cx);
                self.expire_waiting(cx);
                self.collect(cx);
                self.drop_watches(cx);
                self.go_on(cx);
                cx.set_timer(ShardTimer::Tick, tick_every(cx.settings));
            }
        }
    }

    fn replay(&mut self, record: Record, cx: &mut Context<'_>) {
        self.is_replaying = true;
        match record {
            Record::Broadcast { record } => self.replay_broadcast(record, cx),
            Record::Voted { txn, at, objection, writes, calls } => {
                self.take_vote(txn, (at, objection), (writes, calls));
            }
            Record::Ended { txn, decision } => self.finish(txn, decision, cx),
        }
    }

    fn begin_checkpoint(&self) -> Option<Cursor> {
        Some(self.checkpoint_of_now())
    }

    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        self.next_piece(cursor, bytes, out)
    }

    fn checkpoint_readiness(&self, _: &Cursor) -> Readiness {
        Readiness::Ready
    }

    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_>) -> Result<(), WireError> {
        self.restore_piece(piece, cx)
    }
}

impl muesli_core::Participant<Sharded> for ShardMember {
    muesli_core::participant_without_marks!(Sharded);
    muesli_core::participant_kept_by_one_node!();
    muesli_core::participant_without_sizes!();

    fn new(id: RepositoryId, settings: &Settings, switches: &Switches) -> ShardMember {
        let spaces = Spaces::new(settings.hash_seed).recording_collected(settings.record_collected);
        let one_timestamp = switches.keeps(ShardedSwitch::OneTimestamp);
        ShardMember {
            id,
            switches: switches.clone(),
            member: None,
            spaces,
            objects: CertifiedObjects::default(),
            deletions: RecentDeletions::default(),
            clock: 0,
            advances_to: 0,
            transactions: ShardTransactions::new(one_timestamp),
            early: BTreeMap::new(),
            outcomes: KnownOutcomes::default(),
            calls: BTreeMap::new(),
            clients: BTreeMap::new(),
            forgotten_clients: ForgottenClients::default(),
            horizon: 0,
            proposed: BTreeMap::new(),
            wanted: VecDeque::new(),
            proposing: BTreeSet::new(),
            waiting: BTreeMap::new(),
            waiting_reads: BTreeMap::new(),
            clock_requests: Vec::new(),
            asking: BTreeSet::new(),
            barriers: BTreeMap::new(),
            fresh: FreshClocks::default(),
            readers: SiteReaders::default(),
            watches: Watches::default(),
            forgotten: 0,
            earlier_clocks: VecDeque::new(),
            is_replaying: false,
            is_restored: false,
            reported: Held::default(),
            uncollected: 0,
        }
    }

    fn judge_record(&self, _: &Record, _: &Catalog) -> Result<(), Rejection> {
        Ok(()) // No group keeps it: its log is its own.
    }

    fn answer_behind(&mut self, _: &Message, _: &mut Context<'_>) -> bool {
        false
    }

    fn end(&mut self, settings: &Settings) {
        settings.memory.report(self.reported, Held::default());
        self.reported = Held::default();
    }

    fn chains(&self, _: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        let stores = self.spaces.iter();
        let chains = stores.flat_map(|(space, store)| {
            store.chains().map(move |(key, chain)| (space, key.clone(), chain))
        });
        chains.collect()
    }
}

/// How often time passes for the broadcast.
fn tick_every(settings: &Settings) -> Nanos {
    Nanos((settings.retry_after.0 / 4).max(1))
}

#[cfg(test)]
mod tests {
    use muesli_core::Participant as _;

    use super::*;

    fn member() -> ShardMember {
        ShardMember::new(RepositoryId(0), &Settings::default(), &Switches::default())
    }

    #[test]
    #[should_panic(expected = "a horizon at 1, of 0")]
    fn no_client_is_forgotten_in_the_future() {
        let mut member = member();
        member.horizon = 1;
        member.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "a barrier, and no command")]
    fn whoever_waits_for_a_barrier_waits_for_a_command() {
        let mut member = member();
        let id = CommandId { leader: muesli_broadcast::MemberId(0), sequence: 1 };
        member.barriers.insert(id, PendingBarrier { since: Nanos(0), asked: Vec::new() });
        member.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "1 of 0 forgotten")]
    fn what_is_forgotten_is_not_of_the_future() {
        let mut member = member();
        member.assert_invariants();
        member.forgotten = 1;
        member.assert_invariants();
    }
}
