//! A member on a thread of its own, with its clients.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use muesli_broadcast::{
    BroadcastEffect, ChosenMessage, Command, CommandId, DeliveredCommand, MemberId,
};
use muesli_core::Nanos;
use muesli_sim::random::{Random, Seed};

use super::chunks::Chunks;
use super::link::MemberLink;
use super::{SharedRun, phase};
use crate::failure::RunError;
use crate::load::CommandPlan;
use crate::member::{Effects, OrderingMember};
use crate::order::CommandDigest;

/// Members look at the time so often.
const TICK_EVERY: Nanos = Nanos::from_millis(5);
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// What a member did.
#[derive(Debug, Default)]
pub(super) struct MemberResult {
    pub proposed: Chunks<(CommandId, Command)>,
    pub given_up: Vec<CommandId>,
    pub delivered: Chunks<(CommandId, CommandDigest)>,
    /// Of what was measured, in nanoseconds.
    pub latencies: Chunks<u64>,
    pub skipped: u64,
    pub messages: u64,
    pub packets: u64,
    pub bytes: u64,
}

/// A member, with all that its thread needs.
pub(super) struct MemberThread<'a> {
    plan: &'a CommandPlan,
    me: MemberId,
    shared: &'a SharedRun,
    member: OrderingMember,
    links: Vec<Option<MemberLink>>,
    poll: Poll,
    /// When each client issues its next command.
    clients: BinaryHeap<Reverse<u64>>,
    in_flight: usize,
    /// Commands of clients that are not delivered here, by when they were issued.
    open: BTreeMap<CommandId, Nanos>,
    phase: u8,
    ticked: Nanos,
    random: Random,
    result: MemberResult,
}

impl<'a> MemberThread<'a> {
    pub fn new(
        plan: &'a CommandPlan,
        me: usize,
        mut links: Vec<Option<MemberLink>>,
        shared: &'a SharedRun,
    ) -> std::io::Result<MemberThread<'a>> {
        let poll = Poll::new()?;
        for (place, link) in links.iter_mut().enumerate() {
            let Some(link) = link else { continue };
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut link.stream, Token(place), interest)?;
        }
        let id = MemberId(me as u16);
        Ok(MemberThread {
            plan,
            me: id,
            shared,
            member: OrderingMember::new(id, plan),
            links,
            poll,
            clients: BinaryHeap::new(),
            in_flight: 0,
            open: BTreeMap::new(),
            phase: 0,
            ticked: Nanos(0),
            random: Seed::new(plan.seed).split("member").nth(me as u64).stream(),
            result: MemberResult::default(),
        })
    }

    /// Until the run is over.
    pub fn run(mut self) -> Result<MemberResult, RunError> {
        match self.go() {
            // Others may have ended first.
            Err(RunError::System(_))
                if self.shared.phase.load(Ordering::Acquire) == phase::OVER => {}
            done => done?,
        }
        Ok(self.result)
    }

    fn go(&mut self) -> Result<(), RunError> {
        let (mut events, mut scratch) = (Events::with_capacity(64), vec![0; READ_BYTES]);
        let system = |error: std::io::Error| RunError::System(error.to_string());
        loop {
            let mut out = Effects::at(self.shared.now());
            if self.look_at_phase(&mut out) {
                return Ok(());
            }
            for place in events.iter().map(|event| event.token().0) {
                let Some(link) = &mut self.links[place] else { continue };
                let messages = link.read(&mut scratch).map_err(system)?;
                self.receive(MemberId(place as u16), messages, &mut out)?;
            }
            self.issue(&mut out);
            if out.now - self.ticked >= TICK_EVERY {
                self.ticked = out.now;
                self.member.tick(&mut out);
            }
            self.member.flush(&mut out);
            self.perform(out);
            self.write().map_err(system)?;
            let waits = self.waits();
            match self.poll.poll(&mut events, Some(waits)) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    return Err(system(error));
                }
                _ => {}
            }
        }
    }

    /// How long there is nothing to do unless something comes.
    fn waits(&self) -> Duration {
        let next = self.clients.peek().map_or(u64::MAX, |Reverse(next)| *next);
        let left = next.saturating_sub(self.shared.now().0);
        Duration::from_nanos(left).min(Duration::from_millis(1))
    }

    /// Takes over how far the run is; true: it is over.
    fn look_at_phase(&mut self, out: &mut Effects) -> bool {
        let now = self.shared.phase.load(Ordering::Acquire);
        if now == self.phase {
            return false;
        }
        if self.phase == 0 {
            for command in self.plan.load.preparation(self.me.place()) {
                self.propose(command, None, out);
            }
        }
        if now == phase::WARMING_UP && self.plan.load.think > Nanos(0) {
            let think = self.plan.load.think.0;
            for _ in 0..self.plan.load.clients {
                self.clients.push(Reverse(out.now.0 + self.random.below(think)));
            }
        }
        self.phase = now;
        self.shared.seen[self.me.place()].store(now, Ordering::Release);
        now == phase::OVER
    }

    fn receive(
        &mut self,
        from: MemberId,
        messages: Vec<ChosenMessage>,
        out: &mut Effects,
    ) -> Result<(), RunError> {
        for message in messages {
            let refused =
                |why| RunError::Refused { from: from.0, to: self.me.0, why: format!("{why:?}") };
            self.member.judge(from, &message).map_err(refused)?;
            self.member.receive(from, message, out);
        }
        Ok(())
    }

    fn propose(&mut self, command: Command, issued: Option<Nanos>, out: &mut Effects) {
        // Counted before others can deliver it.
        self.shared.proposed.fetch_add(1, Ordering::AcqRel);
        let id = self.member.propose(command.clone(), out);
        self.result.proposed.push((id, command));
        if let Some(issued) = issued {
            self.open.insert(id, issued);
        }
    }

    fn is_running(&self) -> bool {
        self.phase == phase::WARMING_UP || self.phase == phase::MEASURING
    }

    /// Clients issue what is due.
    fn issue(&mut self, out: &mut Effects) {
        if !self.is_running() {
            self.clients.clear();
            return;
        }
        let load = &self.plan.load;
        let at_once = load.think == Nanos(0);
        while at_once && self.in_flight < load.limit {
            self.issue_one(out);
        }
        while self.clients.peek().is_some_and(|Reverse(due)| *due <= out.now.0) {
            let Some(Reverse(due)) = self.clients.pop() else { return };
            self.clients.push(Reverse((due + load.think.0).max(out.now.0)));
            if self.in_flight < load.limit {
                self.issue_one(out);
            } else if self.phase == phase::MEASURING {
                self.result.skipped += 1;
            }
        }
    }

    fn issue_one(&mut self, out: &mut Effects) {
        self.in_flight += 1;
        let command = self.plan.load.draw(self.me.place(), &mut self.random);
        self.propose(command, Some(out.now), out);
    }

    fn perform(&mut self, out: Effects) {
        let mut again = Vec::new();
        for effect in out.effects {
            match effect {
                BroadcastEffect::Send { to, message } => {
                    let link = self.links[to.place()].as_mut().expect("one to each other member");
                    link.send(&message);
                    self.result.messages += u64::from(self.phase == phase::MEASURING);
                }
                BroadcastEffect::Log(_) => {}
                BroadcastEffect::Deliver(it) => self.on_delivered(it),
                BroadcastEffect::GivenUp(id) => {
                    self.shared.proposed.fetch_sub(1, Ordering::AcqRel);
                    self.result.given_up.push(id);
                    let issued = self.open.remove(&id);
                    let found = self.result.proposed.iter().find(|(known, _)| *known == id);
                    let (_, command) = found.expect("it was proposed here");
                    again.push((command.clone(), issued));
                }
            }
        }
        if !again.is_empty() {
            let mut out = Effects::at(self.shared.now());
            for (command, issued) in again {
                self.propose(command, issued, &mut out);
            }
            self.member.flush(&mut out);
            self.perform(out);
        }
    }

    fn on_delivered(&mut self, it: DeliveredCommand) {
        if let Some(issued) = self.open.remove(&it.id) {
            self.in_flight -= 1;
            if self.phase == phase::MEASURING {
                self.result.latencies.push((self.shared.now() - issued).0);
                self.shared.measured.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.result.delivered.push((it.id, CommandDigest::of(&it.command)));
        self.shared.delivered[self.me.place()].fetch_add(1, Ordering::AcqRel);
    }

    fn write(&mut self) -> std::io::Result<()> {
        let is_measured = self.phase == phase::MEASURING;
        for link in self.links.iter_mut().flatten() {
            let written = link.write()?;
            if is_measured {
                self.result.packets += written.calls;
                self.result.bytes += written.bytes;
            }
        }
        Ok(())
    }
}
