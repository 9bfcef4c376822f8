//! What a member knows of an object: the order of its commands, place by place, each as in Paxos,
//! with one promise for all places that are not decided.

mod places;
mod table;

use muesli_core::Nanos;

use super::message::{ObjectEpoch, PromisedObject, SlotValue, SlotVote};
use crate::command::{CommandId, MemberId};
use places::PlaceMap;
pub(super) use table::ObjectLogs;

/// What is accepted, or decided, at a place; `None`: nothing is there.
pub(super) type Value = Option<CommandId>;

/// A place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SlotState {
    /// What this member has accepted, and when.
    pub vote: Option<(ObjectEpoch, Value)>,
    pub decided: Option<Value>,
}

/// An object.
///
/// Invariants: who owns it has promised it to itself; places up to `decided` are decided, and the
/// next one is not; nothing was sent for places from `next` on in the epoch that is owned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectLog {
    /// Nothing of an earlier epoch is taken.
    pub promised: ObjectEpoch,
    /// The latest epoch that was heard of.
    pub observed: ObjectEpoch,
    pub slots: PlaceMap<SlotState>,
    /// All places up to here are decided.
    pub decided: u64,
    /// All places up to here were decided by a cut: each member knows them that has made it.
    pub cut: u64,
    /// Commands that are not delivered, by their first place among those.
    pub waiting: PlaceMap<CommandId>,
    /// The command that was delivered last.
    pub last: Option<CommandId>,
    /// In which epoch this member owns it: a majority has promised that.
    pub owned: Option<ObjectEpoch>,
    /// The next place for a command, while it is owned.
    pub next: u64,
    /// The command for which this member is about to own it.
    pub wanted_for: Option<CommandId>,
    /// When this member promised it last, to itself or to another one; unknown after a crash.
    pub moved: Option<Nanos>,
}

impl Default for ObjectLog {
    fn default() -> ObjectLog {
        ObjectLog {
            promised: ObjectEpoch::default(),
            observed: ObjectEpoch::default(),
            slots: PlaceMap::new(),
            decided: 0,
            cut: 0,
            waiting: PlaceMap::new(),
            last: None,
            owned: None,
            next: 1,
            wanted_for: None,
            moved: None,
        }
    }
}

impl ObjectLog {
    /// Whether this member may say what comes next.
    pub fn is_owned(&self) -> bool {
        self.owned == Some(self.promised)
    }

    /// Who owns it, or is about to, as far as is known here.
    pub fn owner(&self) -> Option<MemberId> {
        Some(self.promised).filter(|it| it.round > 0).map(|it| it.member)
    }

    /// The last place that is known to be decided; some before it may not be.
    pub fn last_decided(&self) -> u64 {
        let last = self.slots.iter().rev().find(|(_, slot)| slot.decided.is_some());
        last.map_or(0, |(slot, _)| slot).max(self.decided)
    }

    /// As if nobody else need promise it.
    pub fn own_unpromised(&mut self) {
        self.owned = Some(self.promised);
        self.next = self.decided + 1;
    }

    pub fn promise(&mut self, epoch: ObjectEpoch) {
        self.observed = self.observed.max(epoch);
        self.promised = self.promised.max(epoch);
    }

    /// What is known from a place on.
    pub fn from(&self, object: u64, from: u64, epoch: ObjectEpoch) -> PromisedObject {
        let (mut votes, mut decided) = (Vec::new(), Vec::new());
        for (slot, it) in self.slots.from(from) {
            match (it.decided, it.vote) {
                (Some(value), _) => decided.push(SlotValue { slot, value }),
                (None, Some((epoch, value))) => votes.push(SlotVote { slot, epoch, value }),
                (None, None) => {}
            }
        }
        PromisedObject { object, epoch, votes, decided }
    }

    pub fn assert_invariants(&self, object: u64) {
        assert!(self.owned.is_none_or(|it| it <= self.promised), "{object} is owned too early");
        let next = self.slots.get(self.decided + 1);
        assert!(next.is_none_or(|it| it.decided.is_none()), "{object} is decided further");
        assert!(self.cut <= self.decided, "{object} was cut beyond what is decided: {self:?}");
        assert!(!self.is_owned() || self.next > self.decided, "{object} is behind: {self:?}");
        let beyond = self.waiting.iter().find(|(slot, _)| *slot > self.decided);
        assert_eq!(beyond, None, "a command of {object} is waiting that may come later");
    }
}
