//! A deposed leader whose entries turn out to be decided keeps its state.
//!
//! Its participant has run entries that may never be decided, and has in memory what only a leader
//! has. Where not all entries are there to be replayed, it would have to fetch the state; and where
//! it was elected anew itself, after its links were gone for a while, there may be nobody to
//! fetch it from. So the participant is set aside until it is known what became of its entries. If
//! they are decided as it ran them, its state is carried over into a new participant, by the pieces
//! of a checkpoint, as it would be by a restart. If one of them is not, it is dropped.

use muesli_core::{Cursor, Participant, Protocol};

use super::Replica;
use crate::inside::Context;
use crate::ledger::Entry;

/// A participant that was set aside.
#[derive(Debug)]
pub(super) struct Retired<I> {
    inner: I,
    /// How many entries it has run.
    upto: u64,
    /// The last of these, from this number on: they were not decided.
    from: u64,
    ran: Vec<Entry>,
    /// Once they are decided: how far its state was carried over.
    cursor: Option<Cursor>,
}

impl<P: Protocol> Replica<P> {
    /// The participant of a leader that does not lead any more is set aside, or forgotten where all
    /// entries are there to be replayed.
    pub(super) fn retire(&mut self) {
        let upto = self.applied;
        let (from, base, mut ran) = self.ledger.look(|it| {
            let ran: Vec<Entry> = it.log.range(it.decided, it.length()).cloned().collect();
            (it.decided, it.log.base(), ran)
        });
        ran.append(&mut self.lazy);
        let new = self.new_participant();
        let inner = std::mem::replace(&mut self.inner, new);
        self.start_over();
        let is_of_use = base > 0 && from + ran.len() as u64 == upto;
        self.retired = Some(Retired { inner, upto, from, ran, cursor: None });
        if !is_of_use {
            self.forget_retired();
        }
    }

    /// A participant that was set aside is of no use any more.
    pub(super) fn forget_retired(&mut self) {
        if let Some(mut retired) = self.retired.take() {
            retired.inner.end(&self.settings);
        }
    }

    /// Looks what became of the entries of a participant that was set aside, and carries its state
    /// over a little further.
    pub(super) fn go_on_retired(&mut self, cx: &mut Context<'_, P>) {
        let Some(mut retired) = self.retired.take() else { return };
        // It may have been replaced, or have run what nobody decides.
        let is_of_use = self.is_void && self.may_come_true(&mut retired);
        let is_decided = self.ledger.look(|it| it.decided) >= retired.upto;
        let carried = match is_of_use && is_decided {
            true => self.carry_over(&mut retired, cx),
            false => Some(false),
        };
        if carried == Some(true) {
            (self.applied, self.is_void) = (retired.upto, false);
        }
        self.retired = Some(retired);
        // Where it was in the middle of something, the state is fetched.
        if !is_of_use || carried != Some(false) {
            self.forget_retired();
        }
    }

    /// Whether the entries that it ran are in the log as it ran them, or may still be appended:
    /// then they are.
    fn may_come_true(&mut self, retired: &mut Retired<P::Participant>) -> bool {
        let Some(consensus) = &mut self.consensus else { return false };
        let (length, matches) = self.ledger.look(|it| {
            let known = it.log.range(retired.from, retired.upto.min(it.length()));
            let is_there = it.log.base() <= retired.from && it.length() >= retired.from;
            (it.length(), is_there && known.zip(&retired.ran).all(|(one, other)| one == other))
        });
        if !matches || length >= retired.upto {
            return matches;
        }
        let me = u64::from(self.place) + 1;
        if consensus.ballot().member != me {
            return false; // Another one leads, without them.
        }
        if consensus.leading().is_some() && self.ledger.look(|it| it.next().is_none()) {
            let missing = (length - retired.from) as usize;
            for entry in &retired.ran[missing..] {
                consensus.append(entry.clone());
            }
        }
        true
    }

    /// Carries the next pieces over; true once that was all. `None`: it was in the middle of
    /// something that has no pieces.
    fn carry_over(
        &mut self,
        retired: &mut Retired<P::Participant>,
        cx: &mut Context<'_, P>,
    ) -> Option<bool> {
        let role = self.role();
        if retired.cursor.is_none() {
            retired.cursor = retired.inner.begin_checkpoint();
        }
        let cursor = retired.cursor.as_mut()?;
        let limits = self.rules.limits;
        let mut left = limits.window_bytes;
        while left > 0 {
            let mut piece = Vec::new();
            if !retired.inner.checkpoint_piece(cursor, limits.piece_bytes as usize, &mut piece) {
                return Some(true);
            }
            left = left.saturating_sub(piece.len() as u64);
            let inner = &mut self.inner;
            let (restored, _) = self.inside.run(role, cx, |cx| inner.restore(&piece, cx));
            restored.expect("pieces of a checkpoint");
        }
        Some(false)
    }
}
