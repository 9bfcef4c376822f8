//! The broadcast of a shard: what it wants done is done here.

use std::ops::Range;

use muesli_broadcast::{
    Broadcast as _, BroadcastEffect, BroadcastSettings, ChosenBroadcast, ChosenMessage,
    ChosenRecord, CommandId, DeliveredCommand, EffectsOf, MemberId,
};
use muesli_core::judgement::ensure;
use muesli_core::{Address, Nanos, NodeId, Rejection, RepositoryId, Role, View};

use super::{PendingBarrier, ShardMember};
use crate::sharded::Context;
use crate::sharded::locator::{members, shard_of};
use crate::sharded::message::command::ShardCommand;
use crate::sharded::message::{ClockBound, Message, Record};
use crate::sharded::switches::ShardedSwitch;

/// So many barriers of a member are under way at most; further ones are asked for again.
const BARRIERS_MOST: usize = 256;
/// So many wait for barriers at most.
const ASKED_MOST: usize = 1 << 14;

/// The place among the members of a shard of its leader at the start, under broadcasts that have
/// one: the first at the leaders' site, or else the one of that number.
fn leader_of(members: Range<u16>, cx: &Context<'_>) -> u16 {
    let (first, last) = (members.start, members.len() as u16 - 1);
    let (site, sites) = (cx.settings.leader_site, &cx.catalog.sites);
    let there = NodeId(u32::from(site));
    let home = |member: &u16| cx.catalog.home(RepositoryId(*member));
    let is_there = |member: &u16| sites.are_colocated(home(member), there);
    let found = members.into_iter().find(is_there).filter(|_| sites.of(there).is_some());
    found.map_or(site.min(last), |member| member - first)
}

/// What the broadcast wants done.
type Effects = EffectsOf<ChosenBroadcast>;

impl ShardMember {
    /// The member of the broadcast, made when it is first needed.
    pub(super) fn member(&mut self, cx: &Context<'_>) -> &mut ChosenBroadcast {
        let all = members(shard_of(self.id, cx.catalog), cx.catalog);
        assert!(all.contains(&self.id.0), "{:?} is no member of its shard", self.id);
        let (me, count) = (MemberId(self.id.0 - all.start), all.len());
        let leader = MemberId(leader_of(all, cx));
        let choice = &self.switches.broadcast.clone().led_by(leader);
        self.member.get_or_insert_with(|| {
            let settings = cx.settings;
            let settings = BroadcastSettings {
                retry_after: settings.retry_after,
                suspect_after: settings.in_doubt_after,
                report_every: Nanos(settings.gossip_every.0.max(settings.retry_after.0 / 4)),
                fast_within: Nanos(settings.retry_after.0 * 2),
            };
            ChosenBroadcast::new(me, count, &settings, choice)
        })
    }

    /// Has the broadcast do something, and does what it wants done.
    pub(super) fn order<T>(
        &mut self,
        cx: &mut Context<'_>,
        run: impl FnOnce(&mut ChosenBroadcast, &mut Effects) -> T,
    ) -> T {
        let mut out = Effects::at(cx.now());
        let result = run(self.member(cx), &mut out);
        let spaces = cx.catalog.spaces().len() as u16;
        let first = members(shard_of(self.id, cx.catalog), cx.catalog).start;
        for effect in out.effects {
            match effect {
                BroadcastEffect::Send { to, message } => {
                    let message = Message::Broadcast { spaces, message };
                    cx.send_to_repository_when_logged(RepositoryId(first + to.0), message);
                }
                BroadcastEffect::Log(record) => cx.log_lazily(|| Record::Broadcast { record }),
                BroadcastEffect::Deliver(delivered) => self.deliver(delivered, cx),
                BroadcastEffect::GivenUp(id) => self.give_up(id),
            }
        }
        result
    }

    /// Proposes a command that is wanted.
    pub(super) fn propose(&mut self, command: ShardCommand, cx: &mut Context<'_>) {
        let mut out = Effects::at(cx.now());
        let id = self.member(cx).propose(command.encoded(), &mut out);
        if command == ShardCommand::Barrier {
            let asked = std::mem::take(&mut self.clock_requests);
            self.barriers.insert(id, PendingBarrier { since: cx.now(), asked });
        }
        let before = self.proposed.insert(id, command);
        assert!(before.is_none(), "{id} is of two commands");
        self.order(cx, |_, effects| effects.effects = out.effects);
    }

    /// A command of this member was given up by others: it is to be proposed anew.
    fn give_up(&mut self, id: CommandId) {
        self.wanted.extend(self.proposed.remove(&id));
        let barrier = self.barriers.remove(&id);
        self.clock_requests.extend(barrier.into_iter().flat_map(|it| it.asked));
    }

    /// A coordinator asks what the clock says, after all that anybody was answered, or was a while
    /// ago. One that has half of that while left has the next clock looked for.
    pub(super) fn on_ask_clock(
        &mut self,
        from: Address,
        request: u64,
        bound: ClockBound,
        cx: &mut Context<'_>,
    ) {
        let ClockBound { most, waits, seen } = bound;
        let most = most.min(cx.settings.snapshot_age_max);
        let (now, is_stale) = (cx.now(), most > Nanos(0));
        let is_bounded = is_stale && self.switches.keeps(ShardedSwitch::BoundsStaleness);
        let is_young = self.fresh.has(Nanos(most.0 / 2), now);
        if is_stale && !is_young && self.barriers.is_empty() {
            self.want_barrier();
            // Who reads in several shards does so at the largest of their clocks.
            self.advance_to(seen);
        }
        let found = self.fresh.find(most, now).filter(|_| is_stale);
        let found = if is_bounded { found } else { Some(self.forgotten).filter(|_| is_stale) };
        match found {
            Some(clock) => {
                self.fresh.tell(clock, now + cx.settings.in_doubt_after);
                cx.send(from, Message::ClockReply { request, clock });
            }
            _ if waits => {
                let who = (from, request);
                let may_ask = self.asking.len() < ASKED_MOST && self.barriers.len() < BARRIERS_MOST;
                let may_ask = may_ask && self.asking.insert(who);
                let mut under_way = self.barriers.values_mut().rev();
                let is_young = |it: &&mut PendingBarrier| it.since + most >= now;
                match under_way.find(is_young).filter(|_| is_bounded) {
                    Some(barrier) if may_ask => barrier.asked.push(who),
                    Some(_) => {}
                    None if may_ask => {
                        self.clock_requests.push(who);
                        self.want_barrier();
                    }
                    None => {}
                }
            }
            _ => cx.send(from, Message::NotFresh { request }),
        }
    }

    fn want_barrier(&mut self) {
        if !self.wanted.contains(&ShardCommand::Barrier) {
            self.wanted.push_back(ShardCommand::Barrier);
        }
    }

    /// Has the clock come to this counter, if that is not under way.
    pub(super) fn advance_to(&mut self, to: u64) {
        if to > self.clock.max(self.advances_to) {
            self.advances_to = to;
            self.wanted.push_back(ShardCommand::Advance { to });
        }
        assert!(self.clock.max(self.advances_to) >= to, "nobody makes the clock come to {to}");
    }

    pub(super) fn on_broadcast(
        &mut self,
        from: Address,
        message: ChosenMessage,
        cx: &mut Context<'_>,
    ) {
        let Role::Repository(RepositoryId(from)) = from.role else { return };
        let first = members(shard_of(self.id, cx.catalog), cx.catalog).start;
        self.order(cx, |it, out| it.receive(MemberId(from - first), message, out));
    }

    pub(super) fn judge_broadcast(
        &self,
        message: &ChosenMessage,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        view.member()?;
        let Role::Repository(from) = view.from.role else { return Err(Rejection::Role) };
        let all = members(shard_of(self.id, view.catalog), view.catalog);
        ensure(from != self.id && all.contains(&from.0), Rejection::Sender)?;
        let member = self.member.as_ref().ok_or(Rejection::State)?;
        member.judge(MemberId(from.0 - all.start), message)
    }

    /// A record of an earlier incarnation: what was delivered then is known again. What was given
    /// up then is asked for again by whoever wanted it.
    pub(super) fn replay_broadcast(&mut self, record: ChosenRecord, cx: &mut Context<'_>) {
        let mut out = Effects::at(cx.now());
        self.member(cx).replay(record, &mut out);
        for effect in out.effects {
            match effect {
                BroadcastEffect::Deliver(delivered) => self.deliver(delivered, cx),
                BroadcastEffect::GivenUp(_) => {}
                BroadcastEffect::Send { .. } | BroadcastEffect::Log(_) => {
                    unreachable!("a replay says nothing")
                }
            }
        }
    }

    /// A command's turn has come.
    fn deliver(&mut self, delivered: DeliveredCommand, cx: &mut Context<'_>) {
        let DeliveredCommand { id, command, .. } = delivered;
        self.proposed.remove(&id);
        // Nobody may hear of it before: a leader that has decided at once, and has forgotten that,
        // would have others decide otherwise.
        if !self.is_replaying {
            cx.wait_for_log();
        }
        let first = members(shard_of(self.id, cx.catalog), cx.catalog).start;
        let is_own = first + id.leader.0 == self.id.0;
        // What no member can have proposed has no effect at any.
        let Ok(command) = ShardCommand::decoded(&command) else { return };
        self.take(command, is_own, cx);
        let Some(PendingBarrier { since, asked }) = self.barriers.remove(&id) else { return };
        assert!(since <= cx.now(), "a barrier of the future");
        self.fresh.observe(since, self.clock);
        self.fresh.tell(self.clock, cx.now() + cx.settings.in_doubt_after);
        for (to, request) in asked {
            self.asking.remove(&(to, request));
            cx.send(to, Message::ClockReply { request, clock: self.clock });
        }
    }
}
