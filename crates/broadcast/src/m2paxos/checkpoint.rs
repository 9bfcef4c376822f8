//! A member's state as it goes into a checkpoint.
//!
//! Left out is what is not in records: what this member owns and asks for, what it is to bring to
//! its places, and what it has heard of epochs that it did not promise. The places of commands
//! follow from those of objects.

use muesli_core::{Nanos, wire_enum, wire_struct};

use super::M2Paxos;
use super::judge::{OwnerJudge, SLOT_MAX};
use super::known::{OrderedCommand, UNCUT};
use super::message::{ObjectEpoch, ObjectSlot};
use super::object::{ObjectLog, SlotState, Value};
use crate::command::{Command, CommandId, MemberId};
use crate::member::checkpoint::{CheckpointError, Checkpointed, DeliveredRange, OwnCommand, holds};

/// What there is once.
#[derive(Clone, Debug)]
pub(crate) struct M2PaxosHead {
    sequence: u64,
    collected: Vec<u64>,
}

/// One of what there may be many of.
#[derive(Clone, Debug)]
pub(crate) enum M2PaxosEntry {
    Delivered(DeliveredRange),
    Own(OwnCommand),
    Object { object: u64, promised: ObjectEpoch, cut: u64, decided: u64, last: Option<CommandId> },
    Slot { place: ObjectSlot, vote: Option<(ObjectEpoch, Value)>, decided: Option<Value> },
    Known { id: CommandId, command: Option<Command>, awaits: Option<CommandId> },
}

impl Checkpointed for M2Paxos {
    type Head = M2PaxosHead;
    type Entry = M2PaxosEntry;

    fn member(&self) -> (MemberId, usize) {
        (self.me, self.quorums.members)
    }

    fn head(&self) -> M2PaxosHead {
        let collected = self.progress.collected().to_vec();
        M2PaxosHead { sequence: self.own.last(), collected }
    }

    fn checkpoint_entries(&self) -> impl Iterator<Item = M2PaxosEntry> {
        let delivered = self.progress.ranges().map(M2PaxosEntry::Delivered);
        let recorded = self.objects.iter().filter(|(_, log)| self.is_recorded(log));
        let objects = recorded.map(|(object, log)| M2PaxosEntry::Object {
            object,
            promised: log.promised,
            cut: log.cut,
            decided: log.decided,
            last: log.last,
        });
        let slots = self.objects.iter().flat_map(|(object, log)| {
            log.slots.iter().map(move |(slot, it)| M2PaxosEntry::Slot {
                place: ObjectSlot { object, slot },
                vote: it.vote,
                decided: it.decided,
            })
        });
        let known = self.commands.iter().map(|(id, entry)| M2PaxosEntry::Known {
            id: *id,
            command: entry.command.clone(),
            awaits: entry.awaits,
        });
        let own = self.own.entries().map(M2PaxosEntry::Own);
        delivered.chain(own).chain(objects).chain(slots).chain(known)
    }

    fn take_entry(&mut self, entry: M2PaxosEntry) {
        match entry {
            M2PaxosEntry::Delivered(range) => self.progress.take_range(range),
            M2PaxosEntry::Own(own) => self.own.take_entry(own),
            M2PaxosEntry::Object { object, promised, cut, decided, last } => {
                let log = self.object(object);
                log.promise(promised);
                (log.cut, log.decided) = (cut, decided);
                log.last = last;
            }
            M2PaxosEntry::Slot { place, vote, decided } => {
                let slots = &mut self.object(place.object).slots;
                slots.insert(place.slot, SlotState { vote, decided });
            }
            M2PaxosEntry::Known { id, command, awaits } => {
                let entry = OrderedCommand { command, awaits, ..OrderedCommand::default() };
                self.commands.insert(id, entry);
            }
        }
    }

    fn take_head(&mut self, head: M2PaxosHead, now: Nanos) -> Result<(), CheckpointError> {
        let M2PaxosHead { sequence, collected } = head;
        self.own.take_last(sequence)?;
        let judge = OwnerJudge { names: self.names(), from: self.me };
        judge.names.ids(self.progress.delivered())?;
        self.commands.keys().try_for_each(|id| judge.names.id(*id))?;
        self.progress.take_collected(collected)?;
        self.judge_objects()?;
        self.find_places(now)?;
        self.wait_anew()
    }
}

impl M2Paxos {
    /// Whether records speak of an object.
    fn is_recorded(&self, log: &ObjectLog) -> bool {
        let new = self.new_object();
        let is_new = log.promised == new.promised && log.decided == 0;
        !is_new || !log.slots.is_empty() || log.last != new.last
    }

    /// That nothing in the objects makes a member fail.
    fn judge_objects(&self) -> Result<(), CheckpointError> {
        let judge = OwnerJudge { names: self.names(), from: self.me };
        for (_, log) in self.objects.iter() {
            judge.names.member(log.promised.member)?;
            holds(log.cut <= log.decided, "a cut beyond what is decided")?;
            holds(log.decided <= SLOT_MAX, "a place that cannot be")?;
            let next = log.slots.get(log.decided + 1);
            holds(next.is_none_or(|it| it.decided.is_none()), "an object is decided further")?;
            log.last.map_or(Ok(()), |id| judge.names.id(id))?;
            for (slot, state) in log.slots.iter() {
                judge.slot(slot)?;
                let is_decided = state.decided.is_some();
                holds(slot > log.decided || is_decided, "a place that is not decided")?;
                if let Some((epoch, value)) = state.vote {
                    judge.epoch(epoch)?;
                    holds(epoch <= log.promised, "it was accepted beyond the promise")?;
                    value.map_or(Ok(()), |id| judge.names.id(id))?;
                    let is_known = |id| self.named(id).is_some();
                    let is_known = self.still(value).is_none_or(is_known);
                    holds(is_known, "a command was accepted unseen")?;
                }
                if let Some(id) = state.decided.flatten() {
                    judge.names.id(id)?;
                    holds(!self.progress.is_collected(id), "a place of what is forgotten")?;
                    holds(self.commands.contains_key(&id), "a place of an unknown command")?;
                }
            }
        }
        Ok(())
    }

    /// Where commands are, by the places of objects.
    fn find_places(&mut self, now: Nanos) -> Result<(), CheckpointError> {
        let known: Vec<CommandId> = self.commands.keys().copied().collect();
        for id in known {
            holds(!self.progress.is_collected(id), "a command that is forgotten is there")?;
            let command = self.commands[&id].command.clone();
            let is_open = !self.progress.is_delivered(id);
            let objects = command.map_or(0, |command| match self.is_cut_for(&command) {
                true if is_open => UNCUT,
                true => 0,
                false => self.numbers(&command).count(),
            });
            let suspected = self.deferred(id, self.settings.suspect_after, 0, now);
            let entry = self.commands.get_mut(&id).expect("found above");
            entry.objects = objects;
            entry.suspected = suspected;
            if !self.progress.is_delivered(id) {
                self.suspected.add(id, suspected);
            }
        }
        for (object, log) in self.objects.iter_mut() {
            log.next = log.decided + 1;
            for (slot, state) in log.slots.iter() {
                let Some(id) = state.decided.flatten() else { continue };
                let entry = self.commands.get_mut(&id).expect("judged before");
                entry.decided.insert(ObjectSlot { object, slot });
                if slot > log.decided || entry.places.contains_key(&object) {
                    continue;
                }
                entry.places.insert(object, slot);
                if !self.progress.is_delivered(id) {
                    log.waiting.insert(slot, id);
                }
            }
        }
        Ok(())
    }

    /// What is complete and not delivered waits.
    fn wait_anew(&mut self) -> Result<(), CheckpointError> {
        for (id, entry) in &self.commands {
            let (is_over, is_complete) = (self.progress.is_delivered(*id), entry.is_complete());
            holds(!is_over || is_complete, "a command was delivered before its end")?;
            if self.is_decided(entry) {
                self.progress.end(*id);
            }
            let Some(awaited) = entry.awaits else {
                holds(is_over || !is_complete, "a command waits for nothing, undelivered")?;
                continue;
            };
            let is_open = self.commands.get(&awaited).is_some_and(|it| !it.is_complete());
            holds(is_complete && !is_over && is_open, "a command waits that need not")?;
            self.awaited.entry(awaited).or_default().insert(*id);
        }
        Ok(())
    }
}

wire_struct!(M2PaxosHead { sequence: u64, collected: Vec<u64> });
wire_enum!(M2PaxosEntry, "entry of a checkpoint" {
    0 => Delivered(range: DeliveredRange),
    1 => Own(command: OwnCommand),
    2 => Object {
        object: u64,
        promised: ObjectEpoch,
        cut: u64,
        decided: u64,
        last: Option<CommandId>,
    },
    3 => Slot { place: ObjectSlot, vote: Option<(ObjectEpoch, Value)>, decided: Option<Value> },
    4 => Known { id: CommandId, command: Option<Command>, awaits: Option<CommandId> },
});
