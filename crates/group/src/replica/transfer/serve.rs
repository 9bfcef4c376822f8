//! A member that has what another one lacks sends it, a few pieces at a time.
//!
//! Any member may that remembers; of the state, any that has it, leading or not. Where it leads,
//! its participant has run entries that may never be decided; so each piece leaves once all those
//! are whose effects it may hold ([`Sending`]). If it is deposed, it goes on with what is decided;
//! only where it has lost the participant's state the receiver is told that there is none.

use muesli_core::memory::Held;
use muesli_core::{LoggedRole, Protocol, RepositoryId};

use crate::agreement::ledger::ReplicaState;
use crate::agreement::summary::Formed;
use crate::agreement::transfer::{Base, EntryBatch, Fetch, FetchState};
use crate::inside::{Context, send_now};
use crate::protocol::Message;
use crate::replica::Replica;
use crate::replica::transfer::sending::Sending;

/// Messages sent at a time: in between the member does its other work.
const MESSAGES_PER_TICK: usize = 2;
/// After so many ticks without a request what was kept for a receiver is dropped.
const FORGET_TICKS: u64 = 500;

/// What one receiver is sent.
#[derive(Debug, Default)]
pub(in crate::replica) struct Serving {
    /// When it asked last.
    asked: u64,
    /// Entries up to here were sent, and up to here acknowledged.
    sent: u64,
    acknowledged: u64,
    /// Whether it is sent entries that are not decided.
    whole: bool,
    state: Option<Sending>,
}

impl<P: Protocol> Replica<P> {
    fn can_serve(&self) -> bool {
        self.has_state() && self.ledger.look(|it| it.formed == Formed::Begun)
    }

    /// Sends on whatever waits, and forgets receivers that ask for nothing.
    pub(in crate::replica) fn go_on_serving(&mut self, cx: &mut Context<'_, P>) {
        let ticks = self.ticks;
        self.serving.retain(|_, it| it.asked + FORGET_TICKS > ticks);
        let members: Vec<u16> = self.serving.keys().copied().collect();
        for member in members {
            self.send_state(member, cx);
        }
    }

    /// A member asks for entries.
    pub(in crate::replica) fn on_fetch(
        &mut self,
        member: u16,
        fetch: &Fetch,
        cx: &mut Context<'_, P>,
    ) {
        // For entries, no state is needed.
        if self.ledger.look(|it| it.formed != Formed::Begun) || self.fetching.is_some() {
            return;
        }
        // For a log that begins later it is: whoever begins anew there drops the state that it has,
        // which may be the only one. One without memory has none.
        let after = self.ledger.look(|it| {
            let base = it.log.base();
            if fetch.has_up_to(base, &it.summary()) { fetch.after.max(base) } else { fetch.after }
        });
        let is_trimmed = self.ledger.look(|it| after < it.log.base());
        if is_trimmed && !fetch.whole && !self.has_state() {
            return self.send_no_state(member, cx);
        }
        let serving = self.serving.entry(member).or_default();
        serving.asked = self.ticks;
        (serving.acknowledged, serving.whole) = (after, fetch.whole);
        if fetch.again || after > serving.sent {
            serving.sent = after;
        }
        for _ in 0..MESSAGES_PER_TICK {
            if !self.send_entries(member, cx) {
                break;
            }
        }
    }

    fn send_no_state(&self, member: u16, cx: &mut Context<'_, P>) {
        if let Some(to) = self.address_of(member, cx) {
            send_now(to, Message::NoState, cx);
        }
    }

    /// Sends the next entries; false if there is nothing to be sent now.
    fn send_entries(&mut self, member: u16, cx: &mut Context<'_, P>) -> bool {
        let (limits, has_state) = (self.group_settings.limits, self.has_state());
        let Some(serving) = self.serving.get_mut(&member) else { return false };
        let batch = self.ledger.look(|replica_state| {
            let (summary, log) = (replica_state.summary(), &replica_state.log);
            let limit = if serving.whole { replica_state.length() } else { replica_state.decided };
            let mut base = None;
            if serving.sent < log.base() {
                // As new as can be: the state is to be of no earlier moment. Where it comes from
                // somebody else, this member's own log says from where on entries are needed.
                let upto = if has_state { replica_state.decided } else { log.base() };
                base = log.bytes_upto(upto).map(|bytes| Base { upto, bytes });
                (serving.sent, serving.acknowledged) = (upto, upto);
            }
            let from = serving.sent.min(limit.max(serving.acknowledged));
            let ahead = log.bytes_upto(from).zip(log.bytes_upto(serving.acknowledged));
            let is_full = ahead.is_some_and(|(to, from)| to - from.min(to) >= limits.window_bytes);
            let entries = match is_full {
                true => Vec::new(),
                false => log.chunk(from, limit, limits.piece_bytes),
            };
            // That there are no more is the answer to a receiver that has them all.
            let is_end = entries.is_empty() && serving.acknowledged >= limit;
            let is_sent = base.is_some() || !entries.is_empty() || is_end;
            is_sent.then_some(EntryBatch { summary, base, from, entries })
        });
        let Some(batch) = batch else { return false };
        let goes_on = !batch.entries.is_empty();
        serving.sent = batch.from + batch.entries.len() as u64;
        let whole = serving.whole;
        let Some(to) = self.address_of(member, cx) else { return false };
        let message = Message::Entries(Box::new(batch));
        // What is not decided must be on this disk before another member counts as having it.
        if whole {
            cx.send(to, message)
        } else {
            send_now(to, message, cx)
        }
        goes_on
    }

    /// A member asks for the state.
    pub(in crate::replica) fn on_fetch_state(
        &mut self,
        member: u16,
        fetch: &FetchState,
        cx: &mut Context<'_, P>,
    ) {
        let Some(to) = self.address_of(member, cx) else { return };
        if !self.can_serve() {
            return send_now(to, Message::NoState, cx);
        }
        let ticks = self.ticks;
        let serving = self.serving.entry(member).or_default();
        serving.asked = ticks;
        let generation = self.generation;
        let Some((transfer, have)) = fetch.have else {
            let waits = |it: &Sending| it.generation == generation && it.waits();
            if serving.state.as_ref().is_none_or(|it| !waits(it)) {
                self.begin_sending(member);
            }
            return self.send_state(member, cx);
        };
        let known = |it: &&mut Sending| it.is(transfer) && it.generation == generation;
        let Some(sending) = serving.state.as_mut().filter(known) else {
            return send_now(to, Message::NoState, cx);
        };
        sending.acknowledge(have, fetch.again);
        self.send_state(member, cx);
    }

    fn begin_sending(&mut self, member: u16) {
        let Some(cursor) = self.inner.begin_checkpoint() else { return };
        if self.leading.is_some() {
            self.mark(); // Deposed, it returns to no earlier moment, and the transfer goes on.
        }
        // Unlike any other of this member, also of those before it was started.
        let transfer = (self.ticks << 20) ^ (self.generation << 10) ^ self.applied;
        let sending = Sending::new(transfer, self.generation, self.applied, cursor);
        self.serving.entry(member).or_default().state = Some(sending);
    }

    /// Sends the next pieces of a state.
    fn send_state(&mut self, member: u16, cx: &mut Context<'_, P>) {
        let Some(to) = self.address_of(member, cx) else { return };
        let (decided, applied) = (self.surely_decided(), self.applied);
        let (generation, limits) = (self.generation, self.group_settings.limits);
        let Some(sending) = self.serving.get_mut(&member).and_then(|it| it.state.as_mut()) else {
            return;
        };
        if sending.generation != generation {
            self.serving.remove(&member);
            return send_now(to, Message::NoState, cx);
        }
        for _ in 0..MESSAGES_PER_TICK {
            if sending.covers <= decided && sending.takes_next(applied, limits.window_bytes) {
                let (inner, bytes) = (&self.inner, limits.piece_bytes as usize);
                sending.take(applied, |cursor, out| inner.checkpoint_piece(cursor, bytes, out));
            }
            let Some(piece) = sending.send(decided) else { return };
            send_now(to, Message::State(Box::new(piece)), cx);
        }
    }

    /// Sends pieces that have waited for what has been decided since.
    pub(in crate::replica) fn send_decided(&mut self, cx: &mut Context<'_, P>) {
        let decided = self.surely_decided();
        let waits = |it: &Serving| it.state.as_ref().is_some_and(|it| it.may_leave(decided));
        let due = self.serving.iter().filter(|(_, it)| waits(it));
        let due: Vec<u16> = due.map(|(member, _)| *member).collect();
        due.into_iter().for_each(|member| self.send_state(member, cx));
    }

    /// Up to where entries are decided that this member has run, whatever is decided in place of
    /// others while it leads.
    fn surely_decided(&self) -> u64 {
        match self.leading {
            Some(_) if self.group_settings.sends_decided => self.sure,
            Some(_) => u64::MAX,
            None => self.ledger.look(|it| it.decided),
        }
    }

    /// A leader was deposed and has returned to what it was after `upto` entries: states that it
    /// sends go on from there.
    pub(in crate::replica) fn go_on_deposed(&mut self, was: u64, upto: u64, sure: u64) {
        let sure = if self.group_settings.sends_decided { sure } else { u64::MAX };
        let generation = self.generation;
        for sending in self.serving.values_mut().filter_map(|it| it.state.as_mut()) {
            if sending.generation == was && sending.take_back(upto, sure) {
                sending.generation = generation;
            }
        }
    }

    /// Forgets entries that the participant's state stands for, and that no other member lacks, or
    /// that are too many to be kept for it; and counts what it keeps.
    pub(in crate::replica) fn trim(&mut self, cx: &mut Context<'_, P>) {
        if self.has_state() {
            let others = self.others(cx);
            let least = others.iter().map(|it| self.reached.get(it).map_or(0, |it| it.decided));
            let least = least.min().unwrap_or(u64::MAX);
            self.trim_upto(least, self.share_of_entries(cx), cx);
        }
        let now = self.ledger.look(|it| it.log.held_bytes());
        let held = |bytes: u64| Held { all: bytes, old: 0 };
        self.settings.memory.report(held(self.reported), held(now));
        self.reported = now;
    }

    /// The same while a log is replayed, and nothing is known of the others. All members may do so
    /// at once, so they keep less.
    pub(in crate::replica) fn trim_replayed(&mut self, cx: &mut Context<'_, P>) {
        if !self.lacks_state() {
            self.trim_upto(0, self.share_of_entries(cx) / 4, cx);
        }
    }

    fn trim_upto(&mut self, least: u64, most_bytes: u64, cx: &mut Context<'_, P>) {
        let (applied, marked) = (self.applied, self.marked());
        let least_bytes = self.group_settings.limits.log_bytes_min;
        let most_bytes = most_bytes.max(least_bytes);
        let upto = self.ledger.look(|replica_state: &ReplicaState| {
            // The entry that ends a configuration is kept until that has ended.
            let whole = replica_state.length() - u64::from(replica_state.next().is_some());
            let lowest = replica_state.decided.min(applied).min(whole).min(marked);
            let few = replica_state.log.trimmable(lowest, least_bytes);
            let many = replica_state.log.trimmable(lowest, most_bytes);
            few.min(least).max(many)
        });
        let before = self.ledger.look(|replica_state| replica_state.log.base());
        self.ledger.trim(upto);
        let base = self.ledger.look(|replica_state| replica_state.log.base());
        cx.effects.maintenance.trimmed += base - before;
    }

    /// How many bytes of entries this member may keep for others: its share of what its node may,
    /// and nothing where the process's memory is at its limit.
    fn share_of_entries(&self, cx: &Context<'_, P>) -> u64 {
        if self.settings.memory.is_full() {
            return 0;
        }
        self.share_in_any_case(cx)
    }

    /// Its share of what its node may keep, however much memory is used.
    pub(in crate::replica) fn share_in_any_case(&self, cx: &Context<'_, P>) -> u64 {
        let all = (0..cx.catalog.repositories() as u16).map(RepositoryId);
        let here = all.filter(|it| cx.catalog.home(*it) == cx.me.node).count() as u64;
        (self.group_settings.limits.log_bytes_max / here.max(1))
            .max(self.group_settings.limits.log_bytes_min)
    }
}
