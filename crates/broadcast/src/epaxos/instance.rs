//! What a member knows of a command.

use muesli_core::Nanos;

use super::message::{CommandBallot, CommandPhase, StoredCommand};
use crate::command::{Command, CommandId};
use crate::dependencies::OrderedAfter;
use crate::id_set::IdSet;

/// A command at a member.
///
/// Invariants: nothing was accepted beyond the ballot that is promised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    /// Nothing of an earlier one is taken.
    pub ballot: CommandBallot,
    pub stored: StoredCommand,
    /// What its proposer says that it says, as far as is known here.
    pub initial_command: Option<Command>,
    /// The largest round that was observed.
    pub observed: u32,
    /// A command before it that is not committed, for which it waits.
    pub awaits: Option<CommandId>,
    /// When it is to be taken over, if it has not come to its end by then.
    pub suspected: Nanos,
    /// How often it was taken over from here.
    pub attempts: u32,
}

impl Instance {
    pub fn new(id: CommandId, suspected: Nanos) -> Instance {
        let ballot = CommandBallot::first(id);
        Instance {
            ballot,
            stored: StoredCommand {
                phase: CommandPhase::Initial,
                accepted: ballot,
                value: OrderedAfter { command: None, dependencies: IdSet::new() },
                initial: IdSet::new(),
            },
            initial_command: None,
            observed: 0,
            awaits: None,
            suspected,
            attempts: 0,
        }
    }

    pub fn is_committed(&self) -> bool {
        self.stored.phase == CommandPhase::Committed
    }

    /// What of its invariants does not hold.
    pub fn unsound(&self, id: CommandId) -> Option<&'static str> {
        let depends = self.stored.value.dependencies.contains(id);
        let conditions = [
            (self.stored.accepted <= self.ballot, "it was accepted too early"),
            (!depends, "it depends on itself"),
            (self.awaits.is_none() || self.is_committed(), "it waits too early"),
        ];
        conditions.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
    }

    pub fn assert_invariants(&self, id: CommandId) {
        assert_eq!(self.unsound(id), None, "{id}: {self:?}");
    }
}
