//! A member takes the state of the group from another one: it has no memory, or the group has left
//! its epoch behind and nobody remembers that.

use std::collections::BTreeMap;

use muesli_core::Nanos;

use super::list::{GroupEpoch, MemberList, MemberName};
use super::message::{
    EpochEffect, EpochEffectsOf, EpochMessage, EpochRecord, SnapshotHead, SnapshotPiece,
};
use super::{EpochMember, MemberState};
use crate::broadcast::Broadcast;
use crate::command::CommandId;

/// So many pieces are asked for at once.
pub const PIECES_AHEAD: u32 = 16;

/// A snapshot that is on its way here.
///
/// Invariants: pieces before `next` are written down, and pieces before `asked_to` were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SnapshotTransfer {
    giver: MemberName,
    snapshot: u64,
    next: u32,
    asked_to: u32,
    /// Those that came before the ones in front of them.
    ahead: BTreeMap<u32, SnapshotPiece>,
    /// When pieces were asked for last.
    asked: Nanos,
    /// When one came last.
    progress: Nanos,
}

/// Whom to ask for the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct StateGivers {
    pub peers: Vec<MemberName>,
    next: usize,
    asked: Option<Nanos>,
}

impl StateGivers {
    pub fn new(peers: Vec<MemberName>) -> StateGivers {
        StateGivers { peers, next: 0, asked: None }
    }

    /// Somebody is in a later epoch: those that were heard of last are asked.
    fn note(&mut self, from: MemberName, most: usize) {
        if !self.peers.contains(&from) {
            self.peers.push(from);
            let over = self.peers.len().saturating_sub(most);
            self.peers.drain(..over);
        }
    }
}

impl<B: Broadcast> EpochMember<B> {
    fn wants_state(&self) -> bool {
        match self.state {
            MemberState::Empty => true,
            MemberState::Member => self.behind.is_some(),
            MemberState::Replaced => false,
        }
    }

    /// Another member is in a later epoch, and remembers nothing of this one.
    pub(super) fn on_running(&mut self, list: MemberList, out: &mut EpochEffectsOf<B>) {
        if list.epoch <= self.list.epoch || self.state == MemberState::Replaced {
            return;
        }
        let is_listed = list.place_of(self.me).is_some();
        if !is_listed && (self.state == MemberState::Member || list.gone.contains(&self.me)) {
            return self.store(EpochRecord::Replaced(list), out);
        }
        if is_listed && self.behind.is_none_or(|behind| behind < list.epoch) {
            self.givers.peers = list.names().collect();
            self.behind = Some(list.epoch);
        }
        self.seek_state(out);
    }

    /// Others are in a later epoch. Mostly this one comes there by itself.
    pub(super) fn note_ahead(&mut self, from: MemberName, epoch: GroupEpoch, now: Nanos) {
        if self.state == MemberState::Replaced {
            return;
        }
        // All whom a new member was to ask may be gone by now.
        self.givers.note(from, self.members);
        if self.state == MemberState::Member && self.behind.is_none() {
            let (ahead, since) = self.ahead.unwrap_or((epoch, now));
            self.ahead = Some((ahead.max(epoch), since));
        }
    }

    /// Nobody may be left with whom it could come to the end of its own epoch.
    pub(super) fn fall_behind(&mut self, now: Nanos) {
        let patience = self.settings.suspect_after;
        let is_late = |(_, since): &(GroupEpoch, Nanos)| *since + patience <= now;
        if let Some((epoch, _)) = self.ahead.take_if(|ahead| is_late(ahead)) {
            self.behind = Some(epoch);
        }
    }

    /// Asks for the state, or for pieces of it that have not come, if it is time.
    pub(super) fn seek_state(&mut self, out: &mut EpochEffectsOf<B>) {
        if !self.wants_state() {
            return;
        }
        let (retry, patience) = (self.settings.retry_after, self.settings.suspect_after);
        match &mut self.transfer {
            Some(transfer) if transfer.progress + patience <= out.now => self.abandon(out),
            Some(transfer) if transfer.asked + retry <= out.now => {
                transfer.asked_to = transfer.next;
                self.ask_for_pieces(out);
            }
            Some(_) => {}
            None if self.givers.asked.is_none_or(|asked| asked + retry <= out.now) => {
                self.ask_next_giver(out);
            }
            None => {}
        }
    }

    /// Nothing comes from who gives it: another one is asked, from the beginning.
    fn abandon(&mut self, out: &mut EpochEffectsOf<B>) {
        self.transfer = None;
        self.taking = None;
        self.ask_next_giver(out);
    }

    fn ask_next_giver(&mut self, out: &mut EpochEffectsOf<B>) {
        let me = self.me;
        let others: Vec<MemberName> =
            self.givers.peers.iter().copied().filter(|peer| *peer != me).collect();
        if others.is_empty() {
            return;
        }
        let to = others[self.givers.next % others.len()];
        self.givers.next = (self.givers.next + 1) % others.len();
        self.givers.asked = Some(out.now);
        out.send(to, EpochMessage::AskState { from: self.list.epoch });
    }

    pub(super) fn on_state(
        &mut self,
        from: MemberName,
        snapshot: u64,
        head: SnapshotHead,
        out: &mut EpochEffectsOf<B>,
    ) {
        let is_newer = head.list.epoch > self.list.epoch;
        let is_listed = head.list.place_of(self.me).is_some();
        if !self.wants_state() || self.transfer.is_some() || !is_newer || !is_listed {
            return;
        }
        self.store(EpochRecord::TakingBegan(head), out);
        self.transfer = Some(SnapshotTransfer {
            giver: from,
            snapshot,
            next: 0,
            asked_to: 0,
            ahead: BTreeMap::new(),
            asked: out.now,
            progress: out.now,
        });
        self.ask_for_pieces(out);
    }

    fn ask_for_pieces(&mut self, out: &mut EpochEffectsOf<B>) {
        let Some(transfer) = &mut self.transfer else { return };
        let SnapshotTransfer { giver, snapshot, next, asked_to: first, .. } = *transfer;
        let upto = next.saturating_add(PIECES_AHEAD);
        if upto > first {
            transfer.asked_to = upto;
            transfer.asked = out.now;
            let count = upto - first;
            out.send(giver, EpochMessage::AskPieces { snapshot, first, count });
        }
    }

    pub(super) fn on_piece(
        &mut self,
        from: MemberName,
        (snapshot, number): (u64, u32),
        piece: SnapshotPiece,
        out: &mut EpochEffectsOf<B>,
    ) {
        let is_it = |it: &&mut SnapshotTransfer| (it.giver, it.snapshot) == (from, snapshot);
        let Some(transfer) = self.transfer.as_mut().filter(is_it) else { return };
        if (transfer.next..transfer.asked_to).contains(&number) {
            transfer.ahead.insert(number, piece);
        }
        while let Some(transfer) = &mut self.transfer
            && let Some(piece) = transfer.ahead.remove(&transfer.next)
        {
            transfer.next += 1;
            transfer.progress = out.now;
            self.store(EpochRecord::PieceTaken(piece.bytes), out);
            if piece.is_last {
                self.store(EpochRecord::AllTaken, out);
                return out.send(from, EpochMessage::Taken { snapshot });
            }
        }
        self.ask_for_pieces(out);
    }

    pub(super) fn on_not_given(
        &mut self,
        from: MemberName,
        snapshot: u64,
        out: &mut EpochEffectsOf<B>,
    ) {
        let is_it = |it: &SnapshotTransfer| (it.giver, it.snapshot) == (from, snapshot);
        if self.transfer.as_ref().is_some_and(is_it) {
            self.abandon(out);
        }
    }

    /// All of a state is written down: this is a member of its epoch, as if it had always been.
    pub(super) fn install(&mut self, out: &mut EpochEffectsOf<B>) {
        let SnapshotHead { list, delivered } = self.taking.take().expect("a state was taken");
        out.add(EpochEffect::Install);
        self.transfer = None;
        self.givers.asked = None;
        self.giving.end_all(out);
        self.previous = None;
        let place = list.place_of(self.me).expect("it is a member in what it has taken");
        let is_delivered =
            |sequence: u64| delivered.contains(CommandId { leader: place, sequence });
        for sequence in self.own.end_all(is_delivered) {
            let request = self.request(sequence);
            out.add(EpochEffect::TakenAsDelivered(request));
        }
        self.list = list;
        self.delivered = delivered;
        self.begin_epoch(out);
    }
}
