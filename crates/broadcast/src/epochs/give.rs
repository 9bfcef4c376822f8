//! A member gives the state of the group to one that has none, or has left it behind.

use std::collections::BTreeMap;

use muesli_core::Nanos;

use super::list::{GroupEpoch, MemberName};
use super::message::{
    EpochEffect, EpochEffects, EpochEffectsOf, EpochMessage, EpochRecord, SnapshotHead,
    SnapshotPiece,
};
use super::take::PIECES_AHEAD;
use super::{EpochMember, EpochSwitch, MemberState};
use crate::broadcast::Broadcast;

/// A snapshot that is kept for another member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GivenSnapshot {
    snapshot: u64,
    head: SnapshotHead,
    /// When it was asked for last.
    asked: Nanos,
}

/// The snapshots that this member gives, one to each that asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct GivenSnapshots {
    /// The number of the last one, also of earlier incarnations: pieces of two never mix.
    pub last: u64,
    open: BTreeMap<MemberName, GivenSnapshot>,
}

impl GivenSnapshots {
    fn get(&mut self, to: MemberName, snapshot: u64) -> Option<&mut GivenSnapshot> {
        self.open.get_mut(&to).filter(|given| given.snapshot == snapshot)
    }

    /// No snapshot is given to somebody any more.
    fn end<M, R>(&mut self, to: MemberName, out: &mut EpochEffects<M, R>) {
        if let Some(GivenSnapshot { snapshot, .. }) = self.open.remove(&to) {
            out.add(EpochEffect::FreeSnapshot { snapshot });
        }
    }

    /// None is given any more.
    pub fn end_all<M, R>(&mut self, out: &mut EpochEffects<M, R>) {
        while let Some(to) = self.open.keys().next().copied() {
            self.end(to, out);
        }
    }

    /// After a crash its user keeps none.
    pub fn forget(&mut self) {
        self.open.clear();
    }
}

impl<B: Broadcast> EpochMember<B> {
    /// A piece of a snapshot that was [asked for](EpochEffect::ReadPiece).
    pub fn give(
        &mut self,
        to: MemberName,
        (snapshot, number): (u64, u32),
        piece: SnapshotPiece,
        out: &mut EpochEffectsOf<B>,
    ) {
        if self.giving.get(to, snapshot).is_some() {
            out.send(to, EpochMessage::Piece { snapshot, number, piece });
        }
    }

    /// Somebody asks for the state. Who has no memory is given it only under a name that has had
    /// none: others may have heard of it in this epoch what it does not know any more.
    pub(super) fn on_ask_state(
        &mut self,
        from: MemberName,
        epoch: GroupEpoch,
        out: &mut EpochEffectsOf<B>,
    ) {
        let is_ahead = epoch >= self.list.epoch;
        if self.state == MemberState::Empty || is_ahead {
            return;
        }
        let is_listed = self.list.place_of(from).is_some();
        if self.state == MemberState::Replaced || !is_listed {
            return out.send(from, EpochMessage::Running(self.list.clone()));
        }
        let has_forgotten = epoch == GroupEpoch::default() && self.list.is_founder(from);
        if has_forgotten && self.switches.keeps(EpochSwitch::FoundersRemember) {
            return out.send(from, EpochMessage::Refused);
        }
        let is_recent = |given: &GivenSnapshot| given.asked + self.settings.retry_after > out.now;
        let again = self.giving.open.get(&from).filter(|given| is_recent(given));
        let (snapshot, head) = match again {
            Some(given) => (given.snapshot, given.head.clone()),
            None => self.keep_snapshot(from, out),
        };
        out.send(from, EpochMessage::State { snapshot, head });
    }

    fn keep_snapshot(
        &mut self,
        to: MemberName,
        out: &mut EpochEffectsOf<B>,
    ) -> (u64, SnapshotHead) {
        self.giving.end(to, out);
        let snapshot = self.giving.last + 1;
        self.store(EpochRecord::Given { snapshot }, out);
        let head = SnapshotHead { list: self.list.clone(), delivered: self.delivered.clone() };
        let given = GivenSnapshot { snapshot, head: head.clone(), asked: out.now };
        self.giving.open.insert(to, given);
        out.add(EpochEffect::KeepSnapshot { snapshot });
        (snapshot, head)
    }

    pub(super) fn on_ask_pieces(
        &mut self,
        from: MemberName,
        snapshot: u64,
        (first, count): (u32, u32),
        out: &mut EpochEffectsOf<B>,
    ) {
        let Some(given) = self.giving.get(from, snapshot) else {
            return out.send(from, EpochMessage::NotGiven { snapshot });
        };
        given.asked = out.now;
        for number in first..first.saturating_add(count.min(PIECES_AHEAD)) {
            out.add(EpochEffect::ReadPiece { to: from, snapshot, number });
        }
    }

    pub(super) fn on_taken(
        &mut self,
        from: MemberName,
        snapshot: u64,
        out: &mut EpochEffectsOf<B>,
    ) {
        if self.giving.get(from, snapshot).is_some() {
            self.giving.end(from, out);
        }
    }

    /// Keeps no snapshot for who has not asked for a long time.
    pub(super) fn free_snapshots(&mut self, out: &mut EpochEffectsOf<B>) {
        let patience = Nanos(self.settings.suspect_after.0.saturating_mul(2));
        let is_silent = |given: &GivenSnapshot| given.asked + patience <= out.now;
        let open = self.giving.open.iter();
        let silent: Vec<MemberName> =
            open.filter(|(_, given)| is_silent(given)).map(|(to, _)| *to).collect();
        silent.into_iter().for_each(|to| self.giving.end(to, out));
    }
}
