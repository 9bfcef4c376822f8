//! A member's state as it goes into a checkpoint.
//!
//! Left out are commands of which no record speaks, and what is not in records of the others: when
//! they are taken over, how often they were, and the rounds that were heard of. Who waits for which
//! command follows from their dependencies, and from what is delivered.

use muesli_core::{Nanos, wire_enum, wire_struct};

use super::Pob;
use super::entry::{CommandContent, CommandEpoch, CommandStatus, KnownCommand, Stored};
use super::judge::LeaderJudge;
use crate::command::{CommandId, MemberId};
use crate::conflicts::HighestPosition;
use crate::member::checkpoint::{CheckpointError, Checkpointed, DeliveredRange, OwnCommand, holds};

/// What there is once.
#[derive(Clone, Debug)]
pub(crate) struct PobHead {
    sequence: u64,
    highest: u64,
    floor: u64,
    collected: Vec<u64>,
}

/// One of what there may be many of.
#[derive(Clone, Debug)]
pub(crate) enum PobEntry {
    Delivered(DeliveredRange),
    Own(OwnCommand),
    Known { id: CommandId, epoch: CommandEpoch, stored: Stored },
    Highest(HighestPosition),
}

impl Checkpointed for Pob {
    type Head = PobHead;
    type Entry = PobEntry;

    fn member(&self) -> (MemberId, usize) {
        (self.me, self.quorums.members)
    }

    fn head(&self) -> PobHead {
        let (highest, floor) = (self.highest, self.floor);
        let collected = self.progress.collected().to_vec();
        PobHead { sequence: self.own.last(), highest, floor, collected }
    }

    fn checkpoint_entries(&self) -> impl Iterator<Item = PobEntry> {
        let is_written = |(id, entry): &(&CommandId, &KnownCommand)| {
            let is_unknown = entry.stored.status == CommandStatus::Unknown;
            !is_unknown || entry.epoch != CommandEpoch::first(**id)
        };
        let known = self.entries.iter().filter(is_written).map(|(id, entry)| PobEntry::Known {
            id: *id,
            epoch: entry.epoch,
            stored: entry.stored.clone(),
        });
        let delivered = self.progress.ranges().map(PobEntry::Delivered);
        let highest = self.index.highest().map(PobEntry::Highest);
        delivered.chain(self.own.entries().map(PobEntry::Own)).chain(known).chain(highest)
    }

    fn take_entry(&mut self, entry: PobEntry) {
        match entry {
            PobEntry::Delivered(range) => self.progress.take_range(range),
            PobEntry::Own(own) => self.own.take_entry(own),
            PobEntry::Known { id, epoch, stored } => {
                let known = KnownCommand { epoch, stored, ..KnownCommand::new(id, Nanos(0)) };
                self.entries.insert(id, known);
            }
            PobEntry::Highest(highest) => self.index.take_highest(highest),
        }
    }

    fn take_head(&mut self, head: PobHead, now: Nanos) -> Result<(), CheckpointError> {
        let PobHead { sequence, highest, floor, collected } = head;
        self.own.take_last(sequence)?;
        self.highest = highest;
        self.floor = floor;
        self.judge_entries()?;
        self.progress.take_collected(collected)?;
        let known: Vec<CommandId> = self.entries.keys().copied().collect();
        for id in &known {
            holds(!self.progress.is_collected(*id), "a command that is forgotten is there")?;
            let suspected = self.suspicion(*id, 0, now);
            let entry = self.entries.get_mut(id).expect("found above");
            entry.suspected = suspected;
            let is_over = self.progress.is_delivered(*id);
            if entry.is_stable() && entry.stored.content == CommandContent::Nothing {
                self.progress.end_as_nothing(*id);
            } else if entry.is_stable() {
                self.progress.end(*id);
            } else {
                self.suspected.add(*id, suspected);
            }
            if let Some(command) = entry.stored.content.command() {
                self.index.insert(*id, &command.objects, 0);
            }
            if !is_over && self.entries[id].is_stable() {
                self.order_stable(*id);
            }
        }
        holds(self.index.is_sound(), "a position of an object that nothing touches")?;
        self.wait_anew(known, now)
    }
}

impl Pob {
    /// That no number in it makes a member fail.
    fn judge_entries(&self) -> Result<(), CheckpointError> {
        let judge = LeaderJudge { names: self.names(), from: self.me };
        judge.number(self.highest)?;
        judge.number(self.floor)?;
        judge.names.ids(self.progress.delivered())?;
        self.index.highest().try_for_each(|it| judge.number(it.position))?;
        for (id, entry) in &self.entries {
            judge.epoch(*id, entry.epoch)?;
            judge.names.ids(&entry.stored.dependencies)?;
            holds(entry.stored.position <= self.highest, "a position above the highest one")?;
            let is_sound = entry.unsound(*id).is_none();
            holds(is_sound, "a command whose state cannot be")?;
            let is_nothing = entry.stored.content == CommandContent::Nothing;
            let is_over = self.progress.is_delivered(*id);
            holds(!is_over || entry.is_stable(), "a command was delivered before its end")?;
            holds(!entry.is_stable() || !is_nothing || is_over, "nothing is to be delivered")?;
        }
        Ok(())
    }

    /// What is stable and not delivered waits.
    fn wait_anew(&mut self, known: Vec<CommandId>, now: Nanos) -> Result<(), CheckpointError> {
        for id in known {
            if !self.entries[&id].is_stable() || self.progress.is_delivered(id) {
                continue;
            }
            let awaited = self.next_awaited(id);
            holds(awaited.is_some(), "a command that waits for nothing is not delivered")?;
            let awaited = awaited.expect("checked above");
            let is_gone = self.progress.is_collected(awaited);
            holds(!is_gone, "a command waits for one that is forgotten")?;
            self.entry(awaited, now);
            self.waiting.entry(awaited).or_default().insert(id);
        }
        Ok(())
    }
}

wire_struct!(PobHead { sequence: u64, highest: u64, floor: u64, collected: Vec<u64> });
wire_enum!(PobEntry, "entry of a checkpoint" {
    0 => Delivered(range: DeliveredRange),
    1 => Own(command: OwnCommand),
    2 => Known { id: CommandId, epoch: CommandEpoch, stored: Stored },
    3 => Highest(highest: HighestPosition),
});
