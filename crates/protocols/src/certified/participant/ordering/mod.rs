//! The broadcast of a site: what it wants done is done here.

mod given;
mod membership;
mod taken;

use std::collections::VecDeque;

use muesli_broadcast::epochs::{
    DeliveredRequest, EpochEffect, EpochEffectsOf, EpochMember, EpochMessage, EpochRecord,
    EpochSettings, EpochSwitches, MemberName, MemberState, RequestId,
};
use muesli_broadcast::{
    BatchLimits, BroadcastSettings, ChosenBroadcast, ChosenMessage, ChosenRecord, Command,
    CommandId, MemberId,
};
use muesli_core::judgement::ensure;
use muesli_core::parts::single_repository::NewValues;
use muesli_core::{Decision, Nanos, Rejection, RepositoryId, Role, Settings, View, Wire as _};

use super::{CertifiedSite, ProposedCommit, UndecidedCommand};
pub(super) use given::GivenState;
pub(in crate::certified) use membership::{founder, site_of};
pub(super) use taken::TakenState;
use taken::judge_piece;

use crate::certified::Context;
use crate::certified::message::command::{BroadcastCommit, CallsEnd, CertifiedCommand};
use crate::certified::message::objects::{EVERYTHING, cut, is_cut};
use crate::certified::message::{Message, Record};

/// Where commits are ordered several at a time, so many commands of a site are under way: where
/// messages take long, a commit waits for a part of that time alone.
const OPEN_COMMANDS: usize = 4;

/// What the broadcast wants done.
type Effects = EpochEffectsOf<ChosenBroadcast>;

/// One thing of that.
pub(super) type SiteEffect = EpochEffect<ChosenMessage, ChosenRecord>;

/// A member of the broadcast, which may be exchanged.
pub(super) type SiteMember = EpochMember<ChosenBroadcast>;

impl CertifiedSite {
    /// The member, made when it is first needed.
    pub(super) fn member(&mut self, cx: &Context<'_>) -> &mut SiteMember {
        let sites = cx.catalog.repositories();
        let leader = MemberId(cx.settings.leader_site.min(sites as u16 - 1));
        let (id, choice) = (self.id, &self.switches.broadcast.clone().led_by(leader));
        assert!(usize::from(id.0) < sites, "site {} of {sites}", id.0);
        let renamed = self.renamed;
        self.member.get_or_insert_with(|| {
            let settings = cx.settings;
            let broadcast = BroadcastSettings {
                retry_after: settings.retry_after,
                suspect_after: settings.in_doubt_after,
                report_every: Nanos(settings.gossip_every.0.max(settings.retry_after.0 / 4)),
                fast_within: Nanos(settings.retry_after.0 * 2),
            };
            let most = settings.batching.commits.most();
            let batches = most.map(|commands| batch_limits(commands, settings));
            let (choice, switches) = (choice.clone(), EpochSwitches::default());
            let settings = EpochSettings { broadcast, choice, batches, switches };
            let founders = (0..sites as u16).map(|site| founder(RepositoryId(site)));
            match renamed {
                Some(name) => EpochMember::empty(name, sites, founders, &settings),
                None => EpochMember::founded(founder(id), founders, &settings),
            }
        })
    }

    /// Whether this site takes part, and may be read.
    pub(in crate::certified) fn is_member(&self) -> bool {
        let state = self.member.as_ref().map(SiteMember::state);
        state.map_or(self.renamed.is_none(), |state| state == MemberState::Member)
    }

    /// Has the broadcast do something, and does what it wants done.
    pub(super) fn order<T>(
        &mut self,
        cx: &mut Context<'_>,
        run: impl FnOnce(&mut SiteMember, &mut Effects) -> T,
    ) -> T {
        let mut out = Effects::at(cx.now());
        let result = run(self.member(cx), &mut out);
        self.perform(out, cx);
        result
    }

    fn perform(&mut self, out: Effects, cx: &mut Context<'_>) {
        let spaces = cx.catalog.spaces().len() as u16;
        let mut effects = VecDeque::from(out.effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                EpochEffect::Send { to, message } => {
                    let member = self.member(cx).name();
                    let message = Message::Broadcast { spaces, member, message };
                    if site_of(to) != self.id {
                        cx.send_to_repository_when_logged(site_of(to), message);
                    }
                }
                EpochEffect::Log(record) => cx.log_lazily(|| Record::Broadcast { record }),
                EpochEffect::Deliver(delivered) => {
                    let batch = self.batch(delivered, &mut effects, cx);
                    self.deliver(batch, cx);
                }
                EpochEffect::TakenAsDelivered(request) => self.end_taken(request, cx),
                EpochEffect::KeepSnapshot { snapshot } => self.keep_snapshot(snapshot),
                EpochEffect::FreeSnapshot { snapshot } => self.free_snapshot(snapshot),
                EpochEffect::ReadPiece { to, snapshot, number } => {
                    let Some(piece) = self.snapshot_piece(snapshot, number) else { continue };
                    let mut more = Effects::at(cx.now());
                    self.member(cx).give(to, (snapshot, number), piece, &mut more);
                    effects.extend(more.effects);
                }
                EpochEffect::BeginTaking => self.begin_taking(cx),
                EpochEffect::TakePiece(bytes) => self.take_piece(&bytes, cx),
                EpochEffect::Install => self.install(cx),
                // Who leads a change may be the only one that knows of it: nobody is to hear that a
                // member has gone before that is stable.
                EpochEffect::EpochBegan(_) | EpochEffect::Replaced => cx.wait_for_log(),
                EpochEffect::ChangeVoid(_) | EpochEffect::Refused => {}
            }
        }
        self.propose_for_waiting(cx);
    }

    /// Proposes a commit; it is known as proposed from now on.
    pub(super) fn propose(&mut self, commit: ProposedCommit, cx: &mut Context<'_>) {
        let mut out = Effects::at(cx.now());
        let id = self.member(cx).propose(commit.command.clone(), &mut out);
        let id = id.expect("a site that is no member takes no commits");
        let before = self.proposed_ids.insert(commit.txn, id);
        assert!(before.is_none(), "{} is proposed twice", commit.txn);
        let before = self.proposed.insert(id, commit);
        assert!(before.is_none(), "{id} is of two commits");
        self.perform(out, cx);
    }

    /// Proposes a cut, unless one of this site is under way.
    pub(super) fn propose_cut(&mut self, cx: &mut Context<'_>) {
        if self.cuts.is_under_way() || !self.is_member() {
            return;
        }
        let mut out = Effects::at(cx.now());
        let Some(request) = self.member(cx).propose(cut(), &mut out) else { return };
        self.cuts.propose(request, cx.now());
        self.perform(out, cx);
    }

    pub(super) fn on_broadcast(
        &mut self,
        member: MemberName,
        message: EpochMessage<ChosenMessage>,
        cx: &mut Context<'_>,
    ) {
        self.order(cx, |it, out| it.receive(member, message, out));
    }

    pub(super) fn judge_broadcast(
        &self,
        member: MemberName,
        message: &EpochMessage<ChosenMessage>,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        self.judge_site(member, view)?;
        let own = self.member.as_ref().ok_or(Rejection::State)?;
        own.judge(member, message)?;
        match message {
            EpochMessage::Piece { piece, .. } => judge_piece(&piece.bytes, view.catalog),
            _ => Ok(()),
        }
    }

    /// Whether a member of that name may speak from there.
    pub(super) fn judge_site(&self, member: MemberName, view: View<'_>) -> Result<(), Rejection> {
        view.member()?;
        let Role::Repository(from) = view.from.role else { return Err(Rejection::Role) };
        let is_other = from != self.id && usize::from(from.0) < view.catalog.repositories();
        ensure(is_other && site_of(member) == from, Rejection::Sender)
    }

    /// A record of an earlier incarnation: what was delivered then is applied again.
    pub(super) fn replay_broadcast(
        &mut self,
        record: EpochRecord<ChosenRecord>,
        cx: &mut Context<'_>,
    ) {
        let mut out = Effects::at(cx.now());
        self.member(cx).replay(record, &mut out);
        for effect in out.effects {
            match effect {
                EpochEffect::Deliver(DeliveredRequest { id, command, .. }) => {
                    let command = match is_cut(&command) {
                        true => Some(UndecidedCommand::Cut),
                        false => decoded(&command).ok().map(UndecidedCommand::Commit),
                    };
                    self.undecided.extend(command.map(|command| (id, command)));
                }
                EpochEffect::BeginTaking => self.begin_taking(cx),
                EpochEffect::TakePiece(bytes) => self.take_piece(&bytes, cx),
                EpochEffect::Install => self.install(cx),
                EpochEffect::TakenAsDelivered(_)
                | EpochEffect::ChangeVoid(_)
                | EpochEffect::EpochBegan(_)
                | EpochEffect::Replaced
                | EpochEffect::Refused
                | EpochEffect::FreeSnapshot { .. } => {}
                EpochEffect::Send { .. }
                | EpochEffect::Log(_)
                | EpochEffect::KeepSnapshot { .. }
                | EpochEffect::ReadPiece { .. } => unreachable!("a replay says nothing"),
            }
        }
    }

    /// A record of an earlier incarnation: what became of a command that was delivered.
    pub(super) fn replay_decision(
        &mut self,
        id: CommandId,
        decision: Decision,
        ran: Option<(NewValues, Option<CallsEnd>)>,
        cx: &mut Context<'_>,
    ) {
        let (delivered, command) = self.undecided.pop_front().expect("a command was delivered");
        assert_eq!(delivered, id, "decisions follow the order of deliveries");
        let UndecidedCommand::Commit(mut commit) = command else {
            unreachable!("{id} is a cut, and was decided")
        };
        let mut end = None;
        if let Some((writes, calls)) = ran {
            (commit.command.writes, end) = (writes, calls);
        }
        self.finish(id, commit, (decision, end), cx);
        self.recent.forget(self.clock); // Nobody reads yet.
    }

    /// A record of an earlier incarnation: a cut was delivered.
    pub(super) fn replay_cut(&mut self, id: CommandId, counter: u64) {
        let (delivered, _) = self.undecided.pop_front().expect("a command was delivered");
        assert_eq!(delivered, id, "cuts follow the order of deliveries");
        self.cuts.order.replay(counter);
    }

    /// After the records of earlier incarnations: what was proposed in these may still be
    /// delivered, and what was read may not be found again as it was.
    pub(super) fn begin_incarnation(&mut self, cx: &mut Context<'_>) {
        // Their decisions were not stable. All that was, is applied, and nothing else.
        for (id, command) in std::mem::take(&mut self.undecided) {
            match command {
                UndecidedCommand::Cut => self.order_cut(id, cx),
                UndecidedCommand::Commit(commit) => {
                    let (commit, end) = self.decide(id, commit, cx);
                    self.finish(id, commit, end, cx);
                }
            }
        }
        cx.wait_for_log();
        assert!(self.waiting.is_empty(), "somebody waits for an earlier incarnation");
        assert_eq!(self.readers.oldest(), None, "somebody reads in an earlier incarnation");
        self.is_restored = false;
        self.recent.forget(self.clock);
        self.forgotten = self.clock;
        assert_eq!(self.recent.len(), 0, "commits that a snapshot does not see");
        self.ends.begin_incarnation(cx.now());
        self.begin_member(cx);
        let member = self.member(cx);
        let proposed: Vec<(RequestId, Command)> =
            member.proposed().map(|(id, it)| (id, it.clone())).collect();
        for (id, command) in proposed {
            if let Ok(BroadcastCommit { command: CertifiedCommand { txn, .. }, .. }) =
                decoded(&command)
            {
                self.ends.observe_asked(txn, cx.now());
                self.proposed_ids.insert(txn, id);
                self.proposed.insert(id, ProposedCommit { txn, command });
            }
        }
    }

    /// The number of this incarnation, which is remembered before anybody hears of it.
    pub(super) fn incarnation(&mut self, cx: &mut Context<'_>) -> u64 {
        if !self.is_incarnation_known {
            self.is_incarnation_known = true;
            self.incarnation += 1;
            let incarnation = self.incarnation;
            cx.log(|| Record::Incarnation { incarnation });
        }
        self.incarnation
    }
}

/// How commits are ordered as one. What writes everything leaves alone: all others would conflict.
fn batch_limits(commands: usize, settings: &Settings) -> BatchLimits {
    let limits = BatchLimits::default();
    let bytes = limits.bytes.min(settings.limits.transaction_bytes);
    BatchLimits { commands, open: OPEN_COMMANDS, bytes, alone: Some(EVERYTHING), ..limits }
}

/// What a command says that was delivered, or is to be.
///
/// # Errors
/// It is no commit, or one that no site can have proposed.
pub(super) fn decoded(command: &Command) -> Result<BroadcastCommit, Rejection> {
    let decoded = BroadcastCommit::decode_all(command.payload.as_slice());
    let decoded = decoded.map_err(|_| Rejection::Range)?;
    decoded.judge().map(|()| decoded)
}
