//! A member's state as it goes into a checkpoint.
//!
//! Left out are commands of which no record speaks, and what is not in records of the others: when
//! they are taken over, how often they were, and the rounds that were heard of.

use muesli_core::{Nanos, wire_enum, wire_struct};

use super::Epaxos;
use super::instance::Instance;
use super::judge::InstanceJudge;
use super::message::{CommandBallot, CommandPhase, StoredCommand};
use crate::command::{Command, CommandId, MemberId};
use crate::member::checkpoint::{CheckpointError, Checkpointed, DeliveredRange, OwnCommand, holds};

/// What there is once.
#[derive(Clone, Debug)]
pub(crate) struct EpaxosHead {
    sequence: u64,
    collected: Vec<u64>,
}

/// What a command's proposer says that it says.
#[derive(Clone, Debug)]
pub(crate) enum InitialCommand {
    /// What is stored of it anyhow.
    Stored,
    /// Something else, or nothing where something is stored.
    Other(Option<Command>),
}

/// One of what there may be many of.
#[derive(Clone, Debug)]
pub(crate) enum EpaxosEntry {
    Delivered(DeliveredRange),
    Own(OwnCommand),
    Known {
        id: CommandId,
        ballot: CommandBallot,
        stored: Box<StoredCommand>,
        initial: InitialCommand,
        awaits: Option<CommandId>,
    },
}

impl Checkpointed for Epaxos {
    type Head = EpaxosHead;
    type Entry = EpaxosEntry;

    fn member(&self) -> (MemberId, usize) {
        (self.me, self.quorums.members)
    }

    fn head(&self) -> EpaxosHead {
        let collected = self.progress.collected().to_vec();
        EpaxosHead { sequence: self.own.last(), collected }
    }

    fn checkpoint_entries(&self) -> impl Iterator<Item = EpaxosEntry> {
        let is_written = |(id, it): &(&CommandId, &Instance)| {
            let is_new = it.stored.phase == CommandPhase::Initial && it.initial_command.is_none();
            !is_new || it.ballot != CommandBallot::first(**id)
        };
        let known = self.instances.iter().filter(is_written).map(|(id, it)| {
            let is_stored = it.initial_command == it.stored.value.command;
            EpaxosEntry::Known {
                id: *id,
                ballot: it.ballot,
                stored: Box::new(it.stored.clone()),
                initial: match is_stored {
                    true => InitialCommand::Stored,
                    false => InitialCommand::Other(it.initial_command.clone()),
                },
                awaits: it.awaits,
            }
        });
        let delivered = self.progress.ranges().map(EpaxosEntry::Delivered);
        delivered.chain(self.own.entries().map(EpaxosEntry::Own)).chain(known)
    }

    fn take_entry(&mut self, entry: EpaxosEntry) {
        match entry {
            EpaxosEntry::Delivered(range) => self.progress.take_range(range),
            EpaxosEntry::Own(own) => self.own.take_entry(own),
            EpaxosEntry::Known { id, ballot, stored, initial, awaits } => {
                let initial_command = match initial {
                    InitialCommand::Stored => stored.value.command.clone(),
                    InitialCommand::Other(command) => command,
                };
                let new = Instance::new(id, Nanos(0));
                let instance = Instance { ballot, stored: *stored, initial_command, awaits, ..new };
                self.instances.insert(id, instance);
            }
        }
    }

    fn take_head(&mut self, head: EpaxosHead, now: Nanos) -> Result<(), CheckpointError> {
        let EpaxosHead { sequence, collected } = head;
        self.own.take_last(sequence)?;
        self.judge_instances()?;
        self.progress.take_collected(collected)?;
        let known: Vec<CommandId> = self.instances.keys().copied().collect();
        for id in &known {
            holds(!self.progress.is_collected(*id), "a command that is forgotten is there")?;
            let suspected = self.suspicion(*id, 0, now);
            let instance = self.instances.get_mut(id).expect("found above");
            instance.suspected = suspected;
            if let Some(command) = &instance.initial_command {
                self.initial_index.insert(*id, &command.objects, 0);
            }
            match (instance.is_committed(), &instance.stored.value.command) {
                (true, Some(_)) => _ = self.progress.end(*id),
                (true, None) => self.progress.end_as_nothing(*id),
                (false, _) => self.suspected.add(*id, suspected),
            }
            if let Some(command) = &instance.stored.value.command {
                self.index.insert(*id, &command.objects, 0);
            }
        }
        self.wait_anew(known, now)
    }
}

impl Epaxos {
    /// That nothing in it makes a member fail.
    fn judge_instances(&self) -> Result<(), CheckpointError> {
        let judge = InstanceJudge { names: self.names(), from: self.me };
        judge.names.ids(self.progress.delivered())?;
        for (id, instance) in &self.instances {
            let StoredCommand { phase, accepted, value, initial } = &instance.stored;
            judge.ballot(*id, instance.ballot)?;
            judge.ballot(*id, *accepted)?;
            judge.names.ids(&value.dependencies)?;
            judge.names.ids(initial)?;
            holds(instance.unsound(*id).is_none(), "a command whose state cannot be")?;
            let is_over = self.progress.is_delivered(*id);
            let is_committed = *phase == CommandPhase::Committed;
            holds(!is_over || is_committed, "a command was delivered before its end")?;
            let is_something = value.command.is_some();
            let is_known = *phase != CommandPhase::PreAccepted || is_something;
            holds(is_known, "what was proposed is something")?;
            holds(!is_committed || is_something || is_over, "nothing is to be delivered")?;
        }
        Ok(())
    }

    /// What is committed and not delivered waits.
    fn wait_anew(&mut self, known: Vec<CommandId>, now: Nanos) -> Result<(), CheckpointError> {
        for id in known {
            let instance = &self.instances[&id];
            let waits = instance.is_committed() && !self.progress.is_delivered(id);
            let Some(awaited) = instance.awaits else {
                holds(!waits, "a command that waits for nothing is not delivered")?;
                continue;
            };
            self.names().id(awaited)?;
            let is_over = self.is_committed(awaited) || self.progress.is_delivered(awaited);
            holds(waits && !is_over, "a command waits that need not")?;
            self.instance(awaited, now);
            self.awaited.entry(awaited).or_default().insert(id);
        }
        Ok(())
    }
}

wire_struct!(EpaxosHead { sequence: u64, collected: Vec<u64> });
wire_enum!(InitialCommand, "initial command" {
    0 => Stored,
    1 => Other(command: Option<Command>),
});
wire_enum!(EpaxosEntry, "entry of a checkpoint" {
    0 => Delivered(range: DeliveredRange),
    1 => Own(command: OwnCommand),
    2 => Known {
        id: CommandId,
        ballot: CommandBallot,
        stored: Box<StoredCommand>,
        initial: InitialCommand,
        awaits: Option<CommandId>,
    },
});
