//! A member that has what another one lacks sends it, a few pieces at a time.
//!
//! Any member may that remembers; of the state, any that has it, leading or not. Where it leads,
//! its participant has run entries that may never be decided; so the first piece leaves once all
//! entries before the state are decided, and the word that it is whole once all those are whose
//! effects it may hold. If it is deposed before, the state is of no use, and the receiver is told
//! so.

use std::collections::VecDeque;

use muesli_core::memory::Held;
use muesli_core::{Cursor, Participant, Protocol, RepositoryId};

use super::Replica;
use crate::inside::{Context, send_now};
use crate::join::Formed;
use crate::ledger::{Entry, Standing};
use crate::protocol::Message;
use crate::transfer::{Base, Batch, Fetch, FetchState, StatePiece};

/// Messages sent at a time: in between the member does its other work.
const MESSAGES_A_TURN: usize = 2;
/// After so many ticks without a request what was kept for a receiver is dropped.
const FORGET_TICKS: u64 = 500;

/// What one receiver is sent.
#[derive(Debug, Default)]
pub(super) struct Serving {
    /// When it asked last.
    asked: u64,
    /// Entries up to here were sent, and up to here acknowledged.
    sent: u64,
    acknowledged: u64,
    /// Whether it is sent entries that are not decided.
    whole: bool,
    state: Option<Sending>,
}

/// A state under way to a receiver.
#[derive(Debug)]
struct Sending {
    transfer: u64,
    generation: u64,
    covers: u64,
    cursor: Cursor,
    /// The first piece that is not acknowledged, those from there on, and how many were sent.
    first: u64,
    pieces: VecDeque<Entry>,
    sent: u64,
    bytes: u64,
    /// Once all pieces were taken: which entries they may hold effects of.
    needs: Option<u64>,
    is_over: bool,
}

impl<P: Protocol> Replica<P> {
    fn can_serve(&self) -> bool {
        self.has_state() && self.ledger.look(|it| it.formed == Formed::Begun)
    }

    /// Sends on whatever waits, and forgets receivers that ask for nothing.
    pub(super) fn go_on_serving(&mut self, cx: &mut Context<'_, P>) {
        let ticks = self.ticks;
        self.serving.retain(|_, it| it.asked + FORGET_TICKS > ticks);
        let members: Vec<u16> = self.serving.keys().copied().collect();
        for member in members {
            self.send_state(member, cx);
        }
    }

    /// A member asks for entries.
    pub(super) fn on_fetch(&mut self, member: u16, fetch: &Fetch, cx: &mut Context<'_, P>) {
        // For entries, no state is needed.
        if self.ledger.look(|it| it.formed != Formed::Begun) || self.fetching.is_some() {
            return;
        }
        let serving = self.serving.entry(member).or_default();
        serving.asked = self.ticks;
        (serving.acknowledged, serving.whole) = (fetch.after, fetch.whole);
        if fetch.again || fetch.after > serving.sent {
            serving.sent = fetch.after;
        }
        for _ in 0..MESSAGES_A_TURN {
            if !self.send_entries(member, cx) {
                break;
            }
        }
    }

    /// Sends the next entries; false if there is nothing to be sent now.
    fn send_entries(&mut self, member: u16, cx: &mut Context<'_, P>) -> bool {
        let limits = self.rules.limits;
        let Some(serving) = self.serving.get_mut(&member) else { return false };
        let batch = self.ledger.look(|standing| {
            let (summary, log) = (standing.summary(), &standing.log);
            let limit = if serving.whole { standing.length() } else { standing.decided };
            let mut base = None;
            if serving.sent < log.base() {
                // As new as can be: the state is to be of no earlier moment.
                let upto = standing.decided;
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
            let is_said = base.is_some() || !entries.is_empty() || is_end;
            is_said.then_some(Batch { summary, base, from, entries })
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
    pub(super) fn on_fetch_state(
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
            let waits = |it: &Sending| it.generation == generation && it.first == 0 && it.sent == 0;
            if serving.state.as_ref().is_none_or(|it| !waits(it)) {
                self.begin_sending(member);
            }
            return self.send_state(member, cx);
        };
        let known = |it: &&mut Sending| it.transfer == transfer && it.generation == generation;
        let Some(sending) = serving.state.as_mut().filter(known) else {
            return send_now(to, Message::NoState, cx);
        };
        while sending.first < have {
            let Some(piece) = sending.pieces.pop_front() else { break };
            sending.bytes -= piece.0.len() as u64;
            sending.first += 1;
        }
        if fetch.again {
            sending.sent = sending.first;
            sending.is_over = false;
        }
        self.send_state(member, cx);
    }

    fn begin_sending(&mut self, member: u16) {
        let Some(cursor) = self.inner.begin_checkpoint() else { return };
        // Unlike any other of this member, also of those before it was started.
        let transfer = (self.ticks << 20) ^ (self.generation << 10) ^ self.applied;
        let sending = Sending {
            transfer,
            generation: self.generation,
            covers: self.applied,
            cursor,
            first: 0,
            pieces: VecDeque::new(),
            sent: 0,
            bytes: 0,
            needs: None,
            is_over: false,
        };
        self.serving.entry(member).or_default().state = Some(sending);
    }

    /// Sends the next pieces of a state.
    fn send_state(&mut self, member: u16, cx: &mut Context<'_, P>) {
        let Some(to) = self.address_of(member, cx) else { return };
        let (decided, applied) = (self.ledger.look(|it| it.decided), self.applied);
        let (generation, limits) = (self.generation, self.rules.limits);
        let Some(sending) = self.serving.get_mut(&member).and_then(|it| it.state.as_mut()) else {
            return;
        };
        if sending.generation != generation {
            self.serving.remove(&member);
            return send_now(to, Message::NoState, cx);
        }
        if sending.covers > decided {
            return;
        }
        for _ in 0..MESSAGES_A_TURN {
            let next = sending.first + sending.pieces.len() as u64;
            if sending.sent == next && sending.needs.is_none() {
                if sending.bytes >= limits.window_bytes {
                    return;
                }
                let mut piece = Vec::new();
                let bytes = limits.piece_bytes as usize;
                if self.inner.checkpoint_piece(&mut sending.cursor, bytes, &mut piece) {
                    sending.bytes += piece.len() as u64;
                    sending.pieces.push_back(Entry::from(piece));
                } else {
                    sending.needs = Some(applied);
                }
            }
            let number = sending.sent;
            let piece = sending.pieces.get((number - sending.first) as usize).cloned();
            let is_end = piece.is_none();
            let needs = sending.needs.unwrap_or(0);
            if is_end && (sending.is_over || needs > decided) {
                return;
            }
            sending.is_over = is_end;
            sending.sent += u64::from(!is_end);
            let (transfer, covers) = (sending.transfer, sending.covers);
            let percent = sending.cursor.percent;
            let piece = StatePiece { transfer, covers, number, percent, piece, needs };
            send_now(to, Message::State(Box::new(piece)), cx);
        }
    }

    /// Forgets entries that the participant's state stands for, and that no other member lacks, or
    /// that are too many to be kept for it; and counts what it keeps.
    pub(super) fn trim(&mut self, cx: &mut Context<'_, P>) {
        if self.has_state() {
            let others = self.others(cx);
            let least = others.iter().map(|it| self.reached.get(it).map_or(0, |(upto, _)| *upto));
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
    pub(super) fn trim_replayed(&mut self, cx: &mut Context<'_, P>) {
        if !self.lacks_state() {
            self.trim_upto(0, self.share_of_entries(cx) / 4, cx);
        }
    }

    fn trim_upto(&mut self, least: u64, most_bytes: u64, cx: &mut Context<'_, P>) {
        let (applied, marked) = (self.applied, self.marked());
        let least_bytes = self.rules.limits.log_bytes_min;
        let most_bytes = most_bytes.max(least_bytes);
        let upto = self.ledger.look(|standing: &Standing| {
            // The entry that ends a configuration is kept until that has ended.
            let whole = standing.length() - u64::from(standing.next().is_some());
            let past = standing.decided.min(applied).min(whole).min(marked);
            let few = standing.log.trimmable(past, least_bytes);
            let many = standing.log.trimmable(past, most_bytes);
            few.min(least).max(many)
        });
        let before = self.ledger.look(|standing| standing.log.base());
        self.ledger.trim(upto);
        let base = self.ledger.look(|standing| standing.log.base());
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
    pub(super) fn share_in_any_case(&self, cx: &Context<'_, P>) -> u64 {
        let all = (0..cx.catalog.repositories() as u16).map(RepositoryId);
        let here = all.filter(|it| cx.catalog.home(*it) == cx.me.node).count() as u64;
        (self.rules.limits.log_bytes_max / here.max(1)).max(self.rules.limits.log_bytes_min)
    }
}
