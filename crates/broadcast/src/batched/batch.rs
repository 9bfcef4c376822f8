//! A batch: commands of one member that are ordered as one command, and how large it may be.

use std::sync::Arc;

use muesli_core::wire::Wire;
use muesli_core::wire_struct;

use crate::command::{Command, CommandId, MemberId};
use crate::id_set::IdSet;
use crate::objects::{ObjectAccess, ObjectSet, TouchedObject};

/// How large batches are, and how many of them are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchLimits {
    /// So many commands make a batch at most.
    pub commands: usize,
    /// What they say, and the names of what they touch, have so many bytes at most, unless one
    /// command alone has more.
    pub bytes: usize,
    /// They touch so many objects at most, counted for each, unless a command alone does more.
    pub objects: usize,
    /// Whatever writes this object leaves by itself: all others would wait with it.
    pub alone: Option<u64>,
    /// So many batches of a member that go to the same other one are open at once; what comes
    /// meanwhile waits and makes the next ones.
    pub open: usize,
}

impl Default for BatchLimits {
    fn default() -> BatchLimits {
        BatchLimits { commands: 1_000, bytes: 64 << 10, objects: 4_096, alone: None, open: 1 }
    }
}

impl BatchLimits {
    /// Whether a command is to be in no batch.
    pub(crate) fn leaves_alone(&self, command: &Command) -> bool {
        let writes_it =
            |it: TouchedObject| self.alone == Some(it.number) && it.access == ObjectAccess::Write;
        command.objects.is_everything()
            || self.alone.is_some() && command.objects.iter().any(writes_it)
    }
}

/// How much a batch has already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchFill {
    bytes: usize,
    objects: usize,
}

/// An object is named by a command, and by its batch; a command has some bytes of its own.
const BYTES_AN_OBJECT: usize = 18;
const BYTES_A_COMMAND: usize = 32;

impl BatchFill {
    /// Adds a command; whether there was room for it.
    pub(crate) fn adds(&mut self, command: &Command, limits: &BatchLimits) -> bool {
        let objects = command.objects.len();
        self.bytes += command.payload.len() + BYTES_AN_OBJECT * objects + BYTES_A_COMMAND;
        self.objects += objects;
        self.bytes <= limits.bytes && self.objects <= limits.objects
    }
}

/// A command of a batch, by its number among those of its member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NumberedCommand {
    pub sequence: u64,
    pub command: Command,
}

/// What a command says that stands for several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CommandBatch {
    /// All commands of its member with smaller numbers are in earlier batches, or were given up, or
    /// were lost with a crash before they were in one.
    pub begun: u64,
    /// No command of its member with a larger number is in an earlier batch.
    pub upto: u64,
    /// In the order of their numbers.
    pub commands: Vec<NumberedCommand>,
}

impl CommandBatch {
    /// What a command of a member stands for. A member that lies may send anything: what cannot be,
    /// or touches something else than its command, stands for nothing, at all members alike.
    pub fn of(command: &Command) -> CommandBatch {
        let decoded = CommandBatch::decode_all(command.payload.as_slice()).ok();
        let touches_the_same = |it: &CommandBatch| it.objects() == command.objects;
        decoded.filter(|it| it.is_sound() && touches_the_same(it)).unwrap_or_default()
    }

    /// All that they touch.
    fn objects(&self) -> Arc<ObjectSet> {
        match self.commands.as_slice() {
            [only] => only.command.objects.clone(),
            several => {
                ObjectSet::new(several.iter().flat_map(|it| it.command.objects.iter())).into()
            }
        }
    }

    fn is_sound(&self) -> bool {
        let is_alone = self.commands.len() == 1;
        let everything = self.commands.iter().any(|it| it.command.objects.is_everything());
        let numbers = || self.commands.iter().map(|it| it.sequence);
        let are_ascending = numbers().zip(numbers().skip(1)).all(|(a, b)| a < b);
        let (first, last) = (numbers().next(), numbers().next_back());
        let begun = 1..=first.unwrap_or(0);
        (is_alone || !everything)
            && are_ascending
            && begun.contains(&self.begun)
            && last.is_some_and(|last| (last..=CommandId::SEQUENCE_MAX).contains(&self.upto))
    }

    /// The command that stands for all of them.
    pub fn command(&self) -> Command {
        let objects = self.objects();
        let mut payload = Vec::new();
        self.encode(&mut payload);
        Command { objects, payload: payload.into() }
    }

    /// Their names.
    pub fn ids(&self, leader: MemberId) -> IdSet {
        self.commands.iter().map(|it| CommandId { leader, sequence: it.sequence }).collect()
    }

    /// Whether two of them touch an object.
    pub fn meets_itself(&self, whole: &Command) -> bool {
        let all: usize = self.commands.iter().map(|it| it.command.objects.len()).sum();
        all > whole.objects.len()
    }
}

wire_struct!(NumberedCommand { sequence: u64, command: Command });
wire_struct!(CommandBatch { begun: u64, upto: u64, commands: Vec<NumberedCommand> });

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(begun: u64, sequences: &[u64]) -> CommandBatch {
        let command = |number: u64| Command {
            objects: ObjectSet::writes([number % 3]).into(),
            payload: [number as u8; 3].as_slice().into(),
        };
        let numbered = |it: &u64| NumberedCommand { sequence: *it, command: command(*it) };
        let upto = sequences.last().copied().unwrap_or(0);
        CommandBatch { begun, upto, commands: sequences.iter().map(numbered).collect() }
    }

    #[test]
    fn a_batch_is_one_command_that_touches_what_its_commands_touch() {
        let whole = batch(1, &[1, 2, 5]);
        let command = whole.command();
        assert_eq!(*command.objects, ObjectSet::writes([1, 2]));
        assert!(whole.meets_itself(&command), "2 and 5 write the same object");
        assert_eq!(CommandBatch::of(&command), whole);
        let apart = batch(4, &[4, 5]);
        assert!(!apart.meets_itself(&apart.command()));
        assert_eq!(apart.ids(MemberId(1)).len(), 2);
    }

    #[test]
    fn what_is_no_batch_stands_for_nothing() {
        let nothing = CommandBatch::default();
        let unsound = [
            batch(1, &[2, 2]),
            batch(1, &[3, 2]),
            batch(0, &[1]),
            batch(2, &[1]),
            batch(1, &[CommandId::SEQUENCE_MAX + 1]),
            batch(1, &[]),
            CommandBatch { upto: 1, ..batch(1, &[1, 2]) },
        ];
        for it in unsound {
            assert_eq!(CommandBatch::of(&it.command()), nothing, "{it:?}");
        }
        let mut other = batch(1, &[1, 2]).command();
        other.objects = ObjectSet::writes([1]).into();
        assert_eq!(CommandBatch::of(&other), nothing, "it touches less than its commands");
        let mut several = batch(1, &[1, 2]);
        several.commands[1].command.objects = ObjectSet::everything().into();
        assert_eq!(CommandBatch::of(&several.command()), nothing);
        let mut command = batch(1, &[1]).command();
        command.payload = [7_u8; 5].as_slice().into();
        assert_eq!(CommandBatch::of(&command), nothing);
    }
}
