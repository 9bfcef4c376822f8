//! The participant: a site, which has all keys, is a member of the broadcast, and applies commits
//! as they are delivered.

mod certify;
mod checkpoint;
mod collect;
mod commit;
mod deliver;
mod ends;
mod execute;
mod ordering;
mod questions;
mod reads;
mod recent;
mod watches;

use std::collections::{BTreeMap, VecDeque};

use muesli_broadcast::epochs::{MemberName, RequestId};
use muesli_broadcast::{Command, CommandId};
use muesli_core::memory::Held;
use muesli_core::parts::spaces::Spaces;
use muesli_core::parts::versions::Versions;
use muesli_core::parts::watches::Watches;
use muesli_core::{
    Address, Catalog, Cursor, Lag, LoggedRole, Nanos, NodeId, Readiness, Rejection, Rejections,
    ReplicaRole, RepositoryId, Settings, SmallBytes, SpaceId, StateMachine, Timestamp, TxnId, View,
    WireError, timers,
};

use crate::certified::message::command::BroadcastCommit;
use crate::certified::message::{Message, ReaderNumber, Record};
use crate::certified::state::claimed::ClaimTable;
use crate::certified::state::cuts::SiteCuts;
use crate::certified::state::objects::CertifiedObjects;
use crate::certified::state::readers::SiteReaders;
use crate::certified::{Certified, Context, Switches};
use ends::SiteEnds;
pub(in crate::certified) use ordering::site_of;
use ordering::{GivenState, SiteMember, TakenState};
use reads::cuts::ReadForCut;
use recent::RecentCommits;

timers! {
    /// The timers of a site.
    pub enum SiteTimer {
        /// Time passes for the broadcast, and versions are collected.
        Tick = 0,
    }
}

/// A commit of this site that is not delivered yet.
#[derive(Clone, Debug)]
struct ProposedCommit {
    txn: TxnId,
    command: Command,
}

/// A command whose place in the order has come.
#[derive(Clone, Debug)]
enum UndecidedCommand {
    Commit(BroadcastCommit),
    Cut,
}

/// A site.
///
/// Invariants, beside those of its parts:
/// * `proposed` and `proposed_ids` name the same commits, of which none is known to have ended;
/// * no snapshot that is served is older than what is forgotten, and none is of the future.
#[derive(Clone, Debug)]
pub struct CertifiedSite {
    id: RepositoryId,
    switches: Switches,
    /// Known once the catalog is.
    member: Option<SiteMember>,
    /// The name of the member that this is, if its disk was lost.
    renamed: Option<MemberName>,
    /// Something is known of earlier incarnations.
    has_begun: bool,
    /// Which site it has asked last to be exchanged.
    asked_to_join: u16,
    /// What other sites take, piece by piece.
    given: BTreeMap<u64, GivenState>,
    /// What this one takes, as far as it has come.
    taken: Option<TakenState>,
    spaces: Spaces,
    objects: CertifiedObjects,
    /// Objects that are held for transactions that keep losing.
    claimed: ClaimTable,
    /// How many commits are applied.
    clock: u64,
    /// The largest counter of a version, and the largest that this site has proposed.
    counter: u64,
    proposed_counter: u64,
    /// Which incarnation of the site this is, or was the last one that somebody knows of.
    incarnation: u64,
    is_incarnation_known: bool,
    /// Snapshots below this clock are too old.
    forgotten: u64,
    recent: RecentCommits,
    readers: SiteReaders,
    cuts: SiteCuts,
    /// Reads that wait for a cut, by who asked, and its number for the answer.
    waiting_reads: BTreeMap<(Address, u64), ReadForCut>,
    /// How transactions ended, whichever site proposed them.
    ends: SiteEnds,
    /// What this site has proposed, and what became of it is not known.
    proposed: BTreeMap<RequestId, ProposedCommit>,
    proposed_ids: BTreeMap<TxnId, RequestId>,
    /// Who waits for the end of a transaction.
    waiting: BTreeMap<TxnId, Address>,
    /// Who waits for a change.
    watches: Watches,
    /// The state is that of a checkpoint, and its log is not replayed to the end yet.
    is_restored: bool,
    /// In a replay: what was delivered, and of which it is not known what became of it.
    undecided: VecDeque<(CommandId, UndecidedCommand)>,
    /// What was reported of its memory.
    reported: Held,
    /// Commits since versions were collected.
    uncollected: u32,
}

impl CertifiedSite {
    /// How many commits are applied.
    pub fn applied(&self) -> u64 {
        self.clock
    }

    /// How many commits of this site are not delivered.
    pub fn proposed(&self) -> usize {
        self.proposed.len()
    }

    /// The keys of a space.
    pub fn versions(&self, space: SpaceId) -> Option<&Versions> {
        self.spaces.get(space)
    }

    /// A transaction reads no more.
    pub(in crate::certified) fn release(&mut self, node: NodeId, reader: ReaderNumber) {
        self.readers.remove(node, reader);
        self.stop_waiting(node, reader);
    }
}

impl StateMachine<Certified> for CertifiedSite {
    type Timer = SiteTimer;

    muesli_core::role_without_links!(Certified);

    fn judge(&self, message: &Message, view: View<'_>) -> Result<(), Rejection> {
        match message {
            Message::Broadcast { member, message, .. } => {
                self.judge_broadcast(*member, message, view)
            }
            Message::Join { member } => self.judge_site(*member, view),
            Message::Keys(_)
            | Message::KeysReply(_)
            | Message::Page(_)
            | Message::PageReply(_)
            | Message::Commit { .. }
            | Message::Ended { .. }
            | Message::NotKnown { .. }
            | Message::Ask { .. }
            | Message::Release { .. }
            | Message::Renew { .. }
            | Message::Watch { .. }
            | Message::Unwatch { .. }
            | Message::Changed { .. }
            | Message::Waits { .. }
            | Message::NotFresh { .. } => Ok(()),
        }
    }

    fn issued(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn unfinished(&self) -> usize {
        let is_behind = self.member.as_ref().is_some_and(SiteMember::is_behind);
        let is_to_join = self.renamed.is_some() && !self.is_member();
        self.proposed.len() + usize::from(is_behind) + usize::from(is_to_join)
    }

    fn assert_invariants(&self) {
        self.spaces.assert_invariants();
        self.recent.assert_invariants();
        self.ends.assert_invariants();
        self.readers.assert_invariants();
        self.watches.assert_invariants();
        self.claimed.assert_invariants();
        self.cuts.assert_invariants(self.clock);
        let cut = self.kept_cut();
        assert!(cut.is_none_or(|it| it >= self.forgotten), "{cut:?} of {}", self.forgotten);
        self.member.iter().for_each(SiteMember::assert_invariants);
        assert!(self.forgotten <= self.clock, "{} of {} forgotten", self.forgotten, self.clock);
        let oldest = self.readers.oldest();
        assert!(oldest.is_none_or(|it| it >= self.forgotten), "{oldest:?} is served");
        let ids = self.proposed.iter().map(|(id, commit)| (commit.txn, *id));
        assert_eq!(ids.collect::<BTreeMap<_, _>>(), self.proposed_ids, "what is proposed");
    }
}

impl LoggedRole<Certified> for CertifiedSite {
    muesli_core::role_that_stays!(Certified);

    fn start(&mut self, cx: &mut Context<'_>) {
        self.begin_incarnation(cx);
        cx.set_timer(SiteTimer::Tick, tick_every(cx.settings));
    }

    fn receive(&mut self, from: Address, message: Message, cx: &mut Context<'_>) {
        let has_data = self.is_member();
        match message {
            // A site that has no data yet answers nothing: it is asked again, or passed over.
            Message::Keys(_)
            | Message::Page(_)
            | Message::Commit { .. }
            | Message::Ask { .. }
            | Message::Watch { .. }
                if !has_data => {}
            Message::Keys(_) | Message::Page(_) => self.on_read(from, message, cx),
            Message::Commit { settled_below, reader, again, member, tried_since, command } => {
                reader.into_iter().for_each(|reader| self.release(from.node, reader));
                let txn = command.txn;
                let is_forgotten = again && !self.knows(txn) && self.is_forgotten(txn, cx);
                if self.is_of_another(member) {
                    self.on_commit_of_another(from, (txn, settled_below), member, cx);
                } else if is_forgotten {
                    let member = self.name();
                    cx.send(from, Message::NotKnown { txn, member });
                } else {
                    let commit = BroadcastCommit { settled_below, tried_since, command };
                    self.on_commit(from, commit, cx);
                }
            }
            Message::Ask { txn, settled_below, member } => {
                self.on_question(from, (txn, settled_below), member, cx);
            }
            Message::Release { readers } => {
                readers.into_iter().for_each(|reader| self.release(from.node, reader));
            }
            Message::Renew { readers } => {
                for reader in readers {
                    let _ = self.readers.snapshot(from.node, reader, cx.now());
                }
            }
            Message::Watch { request, reads, ranges } => {
                self.on_watch(from, request, (reads, ranges), cx);
            }
            Message::Unwatch { request } => self.watches.remove(&(from, request)),
            Message::Broadcast { member, message, .. } => self.on_broadcast(member, message, cx),
            Message::Join { member } => self.on_join(member, cx),
            // For coordinators.
            Message::KeysReply(_)
            | Message::PageReply(_)
            | Message::Ended { .. }
            | Message::NotKnown { .. }
            | Message::Changed { .. }
            | Message::Waits { .. }
            | Message::NotFresh { .. } => {}
        }
    }

    fn timer(&mut self, timer: SiteTimer, cx: &mut Context<'_>) {
        match timer {
            SiteTimer::Tick => {
                self.order(cx, |member, out| member.tick(out));
                self.ask_to_join(cx);
                self.tend_cuts(cx);
                self.collect(cx);
                self.forget_silent(cx);
                self.drop_watches(cx);
                cx.set_timer(SiteTimer::Tick, tick_every(cx.settings));
            }
        }
    }

    fn replay(&mut self, record: Record, cx: &mut Context<'_>) {
        self.has_begun = true;
        match record {
            Record::Named { member } => self.rename(member),
            Record::Incarnation { incarnation } => {
                self.incarnation = self.incarnation.max(incarnation)
            }
            Record::Broadcast { record } => self.replay_broadcast(record, cx),
            Record::Certified { id, decision } => self.replay_decision(id, decision, None, cx),
            Record::Ran { id, decision, writes, calls } => {
                self.replay_decision(id, decision, Some((writes, calls)), cx);
            }
            Record::Refused { txn, reason, calls } => self.refuse(txn, reason, calls, cx),
            Record::Forgotten { client } => self.ends.forget(client, cx.now()),
            Record::Cut { id, counter } => self.replay_cut(id, counter),
        }
    }

    fn begin_checkpoint(&self) -> Option<Cursor> {
        let is_taking = self.member.as_ref().is_some_and(SiteMember::is_taking);
        (!is_taking).then(|| self.checkpoint_of_now())
    }

    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        self.next_piece(cursor, bytes, out)
    }

    fn checkpoint_readiness(&self, _: &Cursor) -> Readiness {
        Readiness::Ready
    }

    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_>) -> Result<(), WireError> {
        self.has_begun = true;
        self.restore_piece(piece, cx)
    }
}

impl muesli_core::Participant<Certified> for CertifiedSite {
    muesli_core::participant_without_marks!(Certified);
    muesli_core::participant_without_sizes!();

    fn rejections(&self) -> Option<&Rejections> {
        None
    }

    fn lag(&self) -> Option<Lag> {
        None
    }

    fn replica_role(&self) -> ReplicaRole {
        if self.is_member() { ReplicaRole::Alone } else { ReplicaRole::Joins }
    }

    fn new(id: RepositoryId, settings: &Settings, switches: &Switches) -> CertifiedSite {
        let spaces = Spaces::new(settings.hash_seed).recording_collected(settings.record_collected);
        CertifiedSite {
            id,
            switches: switches.clone(),
            member: None,
            renamed: None,
            has_begun: false,
            asked_to_join: 0,
            given: BTreeMap::new(),
            taken: None,
            spaces,
            objects: CertifiedObjects::default(),
            claimed: ClaimTable::default(),
            clock: 0,
            counter: 0,
            proposed_counter: 0,
            incarnation: 0,
            is_incarnation_known: false,
            forgotten: 0,
            recent: RecentCommits::default(),
            readers: SiteReaders::default(),
            cuts: SiteCuts::default(),
            waiting_reads: BTreeMap::new(),
            ends: SiteEnds::default(),
            proposed: BTreeMap::new(),
            proposed_ids: BTreeMap::new(),
            waiting: BTreeMap::new(),
            watches: Watches::default(),
            is_restored: false,
            undecided: VecDeque::new(),
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
