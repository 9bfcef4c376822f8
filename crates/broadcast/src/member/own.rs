//! The commands of a member itself: it numbers them, and knows which of them are open.

use std::collections::BTreeMap;

use crate::command::{Command, CommandId, MemberId};
use crate::member::checkpoint::{CheckpointError, OwnCommand, holds};

/// Commands that this member proposed.
///
/// Invariants: those that are open have numbers, and come with what they say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnCommands {
    me: MemberId,
    /// Of the last one.
    sequence: u64,
    /// What those say that are neither delivered nor given up, by number.
    open: BTreeMap<u64, Command>,
}

impl OwnCommands {
    pub fn new(me: MemberId) -> OwnCommands {
        OwnCommands { me, sequence: 0, open: BTreeMap::new() }
    }

    /// The name of a new command.
    pub fn name(&mut self) -> CommandId {
        self.sequence += 1;
        CommandId { leader: self.me, sequence: self.sequence }
    }

    /// A command is in the records, perhaps one of this member.
    pub fn take(&mut self, id: CommandId, command: &Command) {
        if id.leader == self.me {
            self.sequence = self.sequence.max(id.sequence);
            self.open.insert(id.sequence, command.clone());
        }
    }

    /// A command has come to its end. True: it is one of this member.
    pub fn end(&mut self, id: CommandId) -> bool {
        if id.leader == self.me {
            self.sequence = self.sequence.max(id.sequence);
            self.open.remove(&id.sequence);
        }
        id.leader == self.me
    }

    /// All members have delivered the commands of each one up to here.
    pub fn collect(&mut self, upto: &[u64]) {
        if let Some(own) = upto.get(self.me.place()) {
            self.sequence = self.sequence.max(*own);
        }
    }

    /// Whether nobody can have heard of a command: it would be one of this member, which has not
    /// come so far.
    pub fn is_beyond(&self, id: CommandId) -> bool {
        id.leader == self.me && id.sequence > self.sequence
    }

    /// Those that are neither delivered nor given up, in the order in which they were proposed.
    pub fn open(&self) -> impl Iterator<Item = (CommandId, &Command)> {
        let id = |sequence: &u64| CommandId { leader: self.me, sequence: *sequence };
        self.open.iter().map(move |(sequence, command)| (id(sequence), command))
    }

    /// What one of these says.
    pub fn get(&self, id: CommandId) -> Option<&Command> {
        self.open.get(&id.sequence).filter(|_| id.leader == self.me)
    }

    /// The number of the last one, as it goes into a checkpoint.
    pub fn last(&self) -> u64 {
        self.sequence
    }

    /// Those that are open, as they go into a checkpoint.
    pub fn entries(&self) -> impl Iterator<Item = OwnCommand> {
        self.open
            .iter()
            .map(|(sequence, command)| OwnCommand { sequence: *sequence, command: command.clone() })
    }

    /// Takes back one of them, from a checkpoint.
    pub fn take_entry(&mut self, entry: OwnCommand) {
        self.open.insert(entry.sequence, entry.command);
    }

    /// Takes back the number of the last one, when all others are there.
    pub fn take_last(&mut self, last: u64) -> Result<(), CheckpointError> {
        holds(last <= CommandId::SEQUENCE_MAX, "a number that is too large")?;
        let is_named = |sequence: &u64| (1..=last).contains(sequence);
        holds(self.open.keys().all(is_named), "an own command beyond the last one")?;
        self.sequence = last;
        Ok(())
    }

    pub fn assert_invariants(&self) {
        let last = self.open.keys().last().copied().unwrap_or(0);
        assert!(last <= self.sequence, "{last} is open, and {} the last", self.sequence);
        assert!(!self.open.contains_key(&0), "numbers begin with 1");
    }
}
