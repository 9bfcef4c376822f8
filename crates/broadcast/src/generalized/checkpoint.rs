//! A member's state as it goes into a checkpoint.
//!
//! Left out are commands of which no record speaks, and what is not in records of the others: when
//! somebody is to see to them, how often ballots were begun, and what was gathered.

use muesli_core::{Nanos, wire_enum, wire_struct};

use super::Generalized;
use super::judge::VoteJudge;
use super::message::{GroupBallot, LearningPhase, StoredVote};
use super::voted::VotedCommand;
use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;
use crate::member::checkpoint::{CheckpointError, Checkpointed, DeliveredRange, OwnCommand, holds};

/// What there is once.
#[derive(Clone, Debug)]
pub(crate) struct GeneralizedHead {
    sequence: u64,
    collected: Vec<u64>,
    ballot: GroupBallot,
    missing: Option<IdSet>,
}

/// One of what there may be many of.
#[derive(Clone, Debug)]
pub(crate) enum GeneralizedEntry {
    Delivered(DeliveredRange),
    Own(OwnCommand),
    Known {
        id: CommandId,
        stored: Box<StoredVote>,
        refused: Option<GroupBallot>,
        awaits: Option<CommandId>,
    },
}

impl Checkpointed for Generalized {
    type Head = GeneralizedHead;
    type Entry = GeneralizedEntry;

    fn member(&self) -> (MemberId, usize) {
        (self.me, self.quorums.members)
    }

    fn head(&self) -> GeneralizedHead {
        GeneralizedHead {
            sequence: self.own.last(),
            collected: self.progress.collected().to_vec(),
            ballot: self.ballot.current,
            missing: self.ballot.missing.clone(),
        }
    }

    fn checkpoint_entries(&self) -> impl Iterator<Item = GeneralizedEntry> {
        let is_written = |(_, it): &(&CommandId, &VotedCommand)| {
            it.stored.phase != LearningPhase::Named || it.refused.is_some()
        };
        let known = self.instances.iter().filter(is_written).map(|(id, it)| {
            let (stored, refused) = (Box::new(it.stored.clone()), it.refused);
            GeneralizedEntry::Known { id: *id, stored, refused, awaits: it.awaits }
        });
        let delivered = self.progress.ranges().map(GeneralizedEntry::Delivered);
        delivered.chain(self.own.entries().map(GeneralizedEntry::Own)).chain(known)
    }

    fn take_entry(&mut self, entry: GeneralizedEntry) {
        match entry {
            GeneralizedEntry::Delivered(range) => self.progress.take_range(range),
            GeneralizedEntry::Own(own) => self.own.take_entry(own),
            GeneralizedEntry::Known { id, stored, refused, awaits } => {
                let new = VotedCommand::new(self.ballot.current, Nanos(0));
                let instance = VotedCommand { stored: *stored, refused, awaits, ..new };
                self.instances.insert(id, instance);
            }
        }
    }

    fn take_head(&mut self, head: GeneralizedHead, now: Nanos) -> Result<(), CheckpointError> {
        let GeneralizedHead { sequence, collected, ballot, missing } = head;
        self.own.take_last(sequence)?;
        self.judge_instances(ballot, missing.as_ref())?;
        self.progress.take_collected(collected)?;
        self.ballot.current = ballot;
        self.ballot.missing = missing;
        let known: Vec<CommandId> = self.instances.keys().copied().collect();
        for id in &known {
            holds(!self.progress.is_collected(*id), "a command that is forgotten is there")?;
            let suspected = self.suspicion(*id, 0, now);
            let instance = self.instances.get_mut(id).expect("found above");
            if instance.is_learned() && instance.stored.is_nothing {
                self.progress.end_as_nothing(*id);
            } else if instance.is_learned() {
                self.progress.end(*id);
            } else {
                instance.suspected = suspected;
                self.suspected.add(*id, suspected);
            }
            if let Some(command) = &instance.stored.value.command {
                self.index.insert(*id, &command.objects, 0);
            }
            self.fix(*id);
        }
        self.wait_anew(known, now)
    }
}

impl Generalized {
    /// That nothing in it makes a member fail.
    fn judge_instances(
        &self,
        ballot: GroupBallot,
        missing: Option<&IdSet>,
    ) -> Result<(), CheckpointError> {
        let judge = self.judge_of_votes();
        judge.names.ids(self.progress.delivered())?;
        judge.ballot(ballot)?;
        missing.iter().try_for_each(|ids| judge.names.ids(ids))?;
        for (id, instance) in &self.instances {
            let StoredVote { phase, ballot: last, value, is_nothing } = &instance.stored;
            judge.names.id(*id)?;
            judge.ballot(*last)?;
            judge.names.ids(&value.dependencies)?;
            holds(*last <= ballot, "a vote in a ballot that is not there")?;
            holds(instance.unsound(*id).is_none(), "a command whose state cannot be")?;
            let is_over = self.progress.is_delivered(*id);
            let is_learned = *phase == LearningPhase::Learned;
            holds(!is_over || is_learned, "a command was delivered before its end")?;
            holds(!is_learned || !is_nothing || is_over, "nothing is to be delivered")?;
            let is_missing = missing.is_some_and(|missing| missing.contains(*id));
            let is_ordered = instance.is_ordered_in(ballot);
            holds(!is_missing || !is_ordered, "what has a place is not missing")?;
        }
        Ok(())
    }

    /// What is learned and not delivered waits.
    fn wait_anew(&mut self, known: Vec<CommandId>, now: Nanos) -> Result<(), CheckpointError> {
        for id in known {
            let instance = &self.instances[&id];
            let waits = instance.is_learned() && !self.progress.is_delivered(id);
            let Some(awaited) = instance.awaits else {
                holds(!waits, "a command that waits for nothing is not delivered")?;
                continue;
            };
            self.judge_of_votes().names.id(awaited)?;
            let is_over = self.is_learned(awaited) || self.progress.is_delivered(awaited);
            holds(waits && !is_over, "a command waits that need not")?;
            self.instance(awaited, now);
            self.awaited.entry(awaited).or_default().insert(id);
        }
        Ok(())
    }

    pub(super) fn judge_of_votes(&self) -> VoteJudge<'_> {
        VoteJudge { names: self.names(), first: self.switches.leader }
    }
}

wire_struct!(GeneralizedHead {
    sequence: u64,
    collected: Vec<u64>,
    ballot: GroupBallot,
    missing: Option<IdSet>,
});
wire_enum!(GeneralizedEntry, "entry of a checkpoint" {
    0 => Delivered(range: DeliveredRange),
    1 => Own(command: OwnCommand),
    2 => Known {
        id: CommandId,
        stored: Box<StoredVote>,
        refused: Option<GroupBallot>,
        awaits: Option<CommandId>,
    },
});
