//! What members are asked to accept, found by places, by objects and by commands.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Nanos;

use crate::command::{CommandId, MemberId};
use crate::m2paxos::message::{AskedSlot, ObjectEpoch, ObjectSlot};
use crate::m2paxos::object::Value;
use crate::member::due_times::DueTimes;

/// What members are asked to accept, and who has. An owner asks; who has proposed a command that
/// was forwarded counts along.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::m2paxos) struct OpenAccept {
    pub value: Value,
    pub slots: Vec<AskedSlot>,
    pub accepted: BTreeSet<MemberId>,
    pub refused: BTreeSet<MemberId>,
    /// Whether this member asks.
    pub asks: bool,
    /// When those were asked last who have not answered.
    pub asked: Nanos,
}

impl OpenAccept {
    pub fn new(value: Value, slots: Vec<AskedSlot>, asks: bool, now: Nanos) -> OpenAccept {
        let (accepted, refused) = (BTreeSet::new(), BTreeSet::new());
        OpenAccept { value, slots, accepted, refused, asks, asked: now }
    }
}

/// All of that, by the first place of each.
///
/// Invariants: each is found by all of its places, and by its command; what this member asks for,
/// by the time at which it asked last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::m2paxos) struct OpenAccepts {
    all: BTreeMap<AskedSlot, OpenAccept>,
    by_place: BTreeSet<(ObjectSlot, AskedSlot)>,
    by_command: BTreeSet<(CommandId, AskedSlot)>,
    asked: DueTimes<AskedSlot>,
}

/// No place comes before it.
const FIRST: AskedSlot =
    AskedSlot { object: 0, slot: 0, epoch: ObjectEpoch { round: 0, member: MemberId(0) } };

fn place(slot: &AskedSlot) -> ObjectSlot {
    ObjectSlot { object: slot.object, slot: slot.slot }
}

impl OpenAccepts {
    pub fn new() -> OpenAccepts {
        OpenAccepts {
            all: BTreeMap::new(),
            by_place: BTreeSet::new(),
            by_command: BTreeSet::new(),
            asked: DueTimes::new(),
        }
    }

    pub fn insert(&mut self, first: AskedSlot, open: OpenAccept) {
        self.remove(first);
        self.by_place.extend(open.slots.iter().map(|it| (place(it), first)));
        self.by_command.extend(open.value.map(|id| (id, first)));
        if open.asks {
            self.asked.add(first, open.asked);
        }
        self.all.insert(first, open);
    }

    pub fn remove(&mut self, first: AskedSlot) -> Option<OpenAccept> {
        let open = self.all.remove(&first)?;
        open.slots.iter().for_each(|it| _ = self.by_place.remove(&(place(it), first)));
        open.value.iter().for_each(|id| _ = self.by_command.remove(&(*id, first)));
        if open.asks {
            self.asked.remove(first, open.asked);
        }
        Some(open)
    }

    pub fn get(&self, first: AskedSlot) -> Option<&OpenAccept> {
        self.all.get(&first)
    }

    /// A member has accepted it.
    pub fn accept(&mut self, first: AskedSlot, by: MemberId) {
        if let Some(open) = self.all.get_mut(&first) {
            open.accepted.insert(by);
        }
    }

    /// A member accepts nothing there; how many do not.
    pub fn refuse(&mut self, first: AskedSlot, by: MemberId) -> usize {
        self.all.get_mut(&first).map_or(0, |open| {
            open.refused.insert(by);
            open.refused.len()
        })
    }

    /// Members are asked again, now.
    pub fn ask(&mut self, first: AskedSlot, now: Nanos) {
        if let Some(open) = self.all.get_mut(&first).filter(|open| open.asks) {
            self.asked.remove(first, open.asked);
            self.asked.add(first, now);
            open.asked = now;
        }
    }

    /// Those that this member asked for last at this time, or before.
    pub fn asked_until(&self, time: Nanos) -> Vec<AskedSlot> {
        self.asked.due(time)
    }

    /// Those at a place.
    pub fn at(&self, place: ObjectSlot) -> Vec<AskedSlot> {
        let from = self.by_place.range((place, FIRST)..);
        from.take_while(|(it, _)| *it == place).map(|(_, first)| *first).collect()
    }

    /// Those that this member asks for at an object.
    pub fn asked_at(&self, object: u64) -> Vec<AskedSlot> {
        let from = self.by_place.range((ObjectSlot { object, slot: 0 }, FIRST)..);
        let firsts = from.take_while(|(it, _)| it.object == object).map(|(_, first)| *first);
        let firsts: BTreeSet<AskedSlot> = firsts.filter(|it| self.all[it].asks).collect();
        firsts.into_iter().collect()
    }

    /// Whether this member asks for a command at an object.
    pub fn is_asked(&self, id: CommandId, object: u64) -> bool {
        let mut firsts = self.by_command.range((id, FIRST)..).take_while(|(it, _)| *it == id);
        firsts.any(|(_, first)| {
            let open = &self.all[first];
            open.asks && open.slots.iter().any(|slot| slot.object == object)
        })
    }

    /// Commands of one leader that all have delivered are nothing at any place.
    pub fn forget(&mut self, first: CommandId, last: CommandId) {
        let gone = self.by_command.range((first, FIRST)..).take_while(|(id, _)| *id <= last);
        let gone: Vec<(CommandId, AskedSlot)> = gone.copied().collect();
        for it in gone {
            self.by_command.remove(&it);
            self.all.get_mut(&it.1).expect("found by its command").value = None;
        }
    }

    pub fn assert_invariants(&self) {
        for (first, open) in &self.all {
            assert_eq!(open.slots.first(), Some(first), "answers are found by their first place");
            let mut places = open.slots.iter().map(|it| (place(it), *first));
            assert!(places.all(|it| self.by_place.contains(&it)), "{open:?} is not at its places");
            let mut names = open.value.iter().map(|id| (*id, *first));
            assert!(names.all(|it| self.by_command.contains(&it)), "{open:?} has no command");
        }
        let places = self.all.values().flat_map(|open| open.slots.iter().map(place));
        let places: BTreeSet<ObjectSlot> = places.collect();
        assert!(self.by_place.iter().all(|(it, _)| places.contains(it)), "a place of nothing");
        let asks = self.all.iter().filter(|(_, open)| open.asks);
        self.asked.assert_are(asks.map(|(first, open)| (open.asked, *first)));
    }
}
