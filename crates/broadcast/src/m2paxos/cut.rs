//! A cut through the places of all objects at once, so that a command that touches everything comes
//! between those before it and those after it.
//!
//! Whoever hears of the cut by an order that all members share is *frozen*: it promises and accepts
//! nothing, and says there what it has, but for what others have said there before. From all that
//! was said until a majority had said what they have, all members find the same: what is decided,
//! or was accepted in the latest epoch, is decided at each place, and nothing is at those between.
//! What was decided is among that, as a majority had accepted it, and knew what it says; so
//! whatever some member has delivered is, too. All members deliver what can be of it, and then the
//! command, and go on in the epochs in which they were: all of them know what is decided up to the
//! cut, and take no message of a member that has not made it. Those that have not and are not
//! frozen are a minority.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::wire::encoded_bytes;
use muesli_core::{Rejection, wire_struct};

use super::acquire::FILLED_MOST;
use super::known::UNCUT;
use super::message::{NamedCommand, ObjectEpoch, ObjectSlot, PromisedObject};
use super::object::{ObjectLog, Value};
use super::{Effects, M2Paxos, M2PaxosSwitch};
use crate::command::CommandId;
use crate::effects::{BroadcastEffect, DeliveredCommand};
use crate::id_set::IdSet;

/// Of so many bytes, or one place more, is a part of what a member has: each is a request that is
/// ordered, and kept for a while like the others.
const PART_BYTES: usize = 4 * 1024;

/// A part of what a frozen member has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FrozenPart {
    /// Objects of which it has something, with the epochs that it has promised.
    pub objects: Vec<PromisedObject>,
    /// What the commands say that are named in it.
    pub commands: Vec<NamedCommand>,
}

/// What members have reported for a cut.
#[derive(Debug, Default)]
struct ReportedPlaces {
    /// By object and place, what is decided there, or was accepted in the latest epoch.
    places: BTreeMap<u64, BTreeMap<u64, (Option<ObjectEpoch>, Value)>>,
    /// Commands of which it is known what they say.
    named: BTreeSet<CommandId>,
}

impl ReportedPlaces {
    fn add(&mut self, part: &FrozenPart) {
        self.named.extend(part.commands.iter().map(|named| named.id));
        for it in &part.objects {
            let there = self.places.entry(it.object).or_default();
            for decided in &it.decided {
                there.insert(decided.slot, (None, decided.value));
            }
            for vote in &it.votes {
                let known = there.entry(vote.slot).or_insert((Some(vote.epoch), vote.value));
                if known.0.is_some_and(|epoch| epoch < vote.epoch) {
                    *known = (Some(vote.epoch), vote.value);
                }
            }
        }
    }

    /// Whether something decided at a place, or accepted there in an epoch, adds nothing. Who knows
    /// that a command is decided may not know what it says: it is to be `named`, too.
    fn has(&self, at: ObjectSlot, epoch: Option<ObjectEpoch>, named: bool) -> bool {
        let reported = self.places.get(&at.object).and_then(|places| places.get(&at.slot));
        reported.is_some_and(|(reported, value)| {
            let is_named = !named || value.is_none_or(|id| self.named.contains(&id));
            let covers = |reported| epoch.is_some_and(|epoch| reported >= epoch);
            is_named && reported.is_none_or(covers)
        })
    }
}

/// Parts, of which the last one grows.
#[derive(Debug, Default)]
struct PartsBuilder {
    all: Vec<FrozenPart>,
    last: FrozenPart,
    named: BTreeSet<CommandId>,
    bytes: usize,
}

impl PartsBuilder {
    /// An object in the part that grows.
    fn object(&mut self, object: u64, epoch: ObjectEpoch) -> &mut PromisedObject {
        let objects = &mut self.last.objects;
        if objects.last().is_none_or(|it| it.object != object) {
            let new = PromisedObject { object, epoch, votes: Vec::new(), decided: Vec::new() };
            self.bytes += encoded_bytes(&new);
            objects.push(new);
        }
        objects.last_mut().expect("it is there now")
    }

    /// A place of so many bytes was added, with a command.
    fn add(&mut self, bytes: usize, named: Option<NamedCommand>) {
        self.bytes += bytes;
        if let Some(named) = named.filter(|it| self.named.insert(it.id)) {
            self.bytes += encoded_bytes(&named);
            self.last.commands.push(named);
        }
        if self.bytes > PART_BYTES {
            self.all.push(std::mem::take(&mut self.last));
            (self.named, self.bytes) = (BTreeSet::new(), 0);
        }
    }
}

impl M2Paxos {
    /// Whether it waits for a cut.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen && self.keeps(M2PaxosSwitch::FreezesForCuts)
    }

    /// A cut is under way, or is not.
    pub(crate) fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// An object of which nothing is known.
    pub(super) fn new_object(&self) -> ObjectLog {
        ObjectLog { last: self.everything, ..ObjectLog::default() }
    }

    /// In which epoch an object is promised.
    pub(super) fn promised(&self, object: u64) -> ObjectEpoch {
        self.objects.get(object).map_or(ObjectEpoch::default(), |log| log.promised)
    }

    /// The command for which a cut was made last.
    pub(crate) fn last_cut(&self) -> Option<CommandId> {
        self.everything
    }

    /// Takes that back, from a checkpoint.
    pub(crate) fn take_last_cut(&mut self, id: Option<CommandId>) -> Result<(), Rejection> {
        self.everything = id;
        id.map_or(Ok(()), |id| self.names().id(id))
    }

    /// A command that touches everything is ordered. True: a cut is to be made for it.
    pub(crate) fn know_uncut(&mut self, named: &NamedCommand, out: &mut Effects) -> bool {
        let is_sound = self.names().id(named.id).is_ok() && self.is_cut_for(&named.command);
        if !is_sound || self.progress.is_delivered(named.id) {
            return false;
        }
        self.know(named, out);
        let entry = self.commands.get(&named.id);
        entry.and_then(|it| it.command.as_ref()).is_some_and(|it| self.is_cut_for(it))
    }

    /// Whether a cut is to be made for a command that is known.
    pub(crate) fn is_uncut(&self, id: CommandId) -> bool {
        self.commands.get(&id).is_some_and(|entry| entry.objects == UNCUT)
    }

    /// What this member has accepted at the places of all objects, or knows to be decided there,
    /// since the last cut, in parts of bounded size, but for what others have reported. What was
    /// decided by the last cut is known to whoever makes the next one.
    pub(crate) fn frozen_parts<'a>(
        &self,
        reported: impl Iterator<Item = &'a FrozenPart>,
    ) -> Vec<FrozenPart> {
        let (mut parts, mut known) = (PartsBuilder::default(), ReportedPlaces::default());
        reported.for_each(|part| known.add(part));
        let named = self.keeps(M2PaxosSwitch::NamesForCuts);
        for (object, log) in self.objects.iter() {
            let PromisedObject { mut votes, mut decided, .. } =
                log.from(object, log.cut + 1, log.promised);
            let at = |slot| ObjectSlot { object, slot };
            votes.retain(|it| !known.has(at(it.slot), Some(it.epoch), named));
            decided.retain(|it| !known.has(at(it.slot), None, named));
            for vote in votes {
                let it = parts.object(object, log.promised);
                it.votes.push(vote);
                parts.add(encoded_bytes(&vote), vote.value.and_then(|id| self.named(id)));
            }
            for decided in decided {
                let it = parts.object(object, log.promised);
                it.decided.push(decided);
                parts.add(encoded_bytes(&decided), decided.value.and_then(|id| self.named(id)));
            }
        }
        parts.all.push(parts.last);
        parts.all
    }

    /// All members do this at the same place of the order that they share, for the same commands,
    /// with what the same majority has.
    pub(crate) fn cut<'a>(
        &mut self,
        ids: &[CommandId],
        parts: impl Iterator<Item = &'a FrozenPart>,
        out: &mut Effects,
    ) {
        let mut known = ReportedPlaces::default();
        for part in parts {
            for named in &part.commands {
                if self.names().id(named.id).is_ok() {
                    self.know(named, out);
                }
            }
            known.add(part);
        }
        for (object, places) in known.places {
            self.decide_places(object, places.into_iter().map(|(at, (_, value))| (at, value)), out);
        }
        self.objects.iter_mut().for_each(|(_, log)| log.cut = log.decided);
        ids.iter().for_each(|id| self.deliver_everything(*id, out));
    }

    /// What a majority has at the places of an object is decided there, and nothing between.
    fn decide_places(
        &mut self,
        object: u64,
        places: impl Iterator<Item = (u64, Value)>,
        out: &mut Effects,
    ) {
        let mut last = self.objects.get(object).map_or(0, |log| log.decided);
        for (slot, value) in places {
            let between = last + 1..slot.min(last.saturating_add(FILLED_MOST));
            for slot in between {
                self.decide_by_cut(ObjectSlot { object, slot }, None, out);
            }
            self.decide_by_cut(ObjectSlot { object, slot }, value, out);
            last = last.max(slot);
        }
    }

    fn decide_by_cut(&mut self, place: ObjectSlot, value: Value, out: &mut Effects) {
        if !self.is_over(place.object, place.slot) {
            self.apply_decision(self.still(value), &[place], out);
        }
    }

    fn deliver_everything(&mut self, id: CommandId, out: &mut Effects) {
        let mut predecessors: IdSet = self.objects.iter().filter_map(|(_, log)| log.last).collect();
        predecessors.extend(&self.everything.into_iter().collect());
        self.progress.remove_collected(&mut predecessors);
        for (_, log) in self.objects.iter_mut() {
            log.last = Some(id);
        }
        self.everything = Some(id);
        let entry = self.commands.get_mut(&id).expect("a command that is cut for is known");
        entry.objects = 0;
        let suspected = entry.suspected;
        let command = entry.command.clone().expect("a command that is cut for is known");
        self.suspected.remove(id, suspected);
        self.progress.deliver(id);
        self.own.end(id);
        out.effects.push(BroadcastEffect::Deliver(DeliveredCommand { id, command, predecessors }));
        self.end_task(id);
    }
}

wire_struct!(FrozenPart { objects: Vec<PromisedObject>, commands: Vec<NamedCommand> });
