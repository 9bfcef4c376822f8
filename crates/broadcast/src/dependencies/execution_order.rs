//! Committed commands in the order in which they are executed.
//!
//! Where all members propose at once each command depends on most of the others, so that what is
//! looked at are ranges of dependencies, and not each of them.

use std::collections::BTreeMap;

use super::OrderedAfter;
use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;
use crate::progress::DeliveryProgress;

/// No command comes before it.
const FIRST: CommandId = CommandId { leader: MemberId(0), sequence: 1 };

/// A command whose dependencies are looked at, up to `next`.
struct ExecutionStep {
    id: CommandId,
    next: CommandId,
}

/// Commands of which some are committed: what they come after is final.
pub(crate) trait CommittedCommands {
    /// What is delivered, or is nothing, and what is forgotten.
    fn progress(&self) -> &DeliveryProgress;

    /// What a committed command says, and comes after.
    fn committed_value(&self, id: CommandId) -> &OrderedAfter;

    /// What a committed command was found to wait for when that was looked at last.
    fn last_awaited(&self, id: CommandId) -> Option<CommandId>;

    /// What a committed command waits for, as it depends on it. Of its own dependencies that are
    /// not committed it is the one proposed last: the others will mostly be committed before.
    fn awaited(&self, id: CommandId) -> Option<CommandId> {
        let ended = self.progress().ended();
        let known = self.last_awaited(id).filter(|it| !ended.contains(*it));
        known.or_else(|| self.committed_value(id).dependencies.last_beyond(ended))
    }
}

/// A search for commands that depend on each other (Tarjan 1972, without recursion).
struct ExecutionSearch<'a, C> {
    commands: &'a C,
    /// What is delivered, or was found.
    over: IdSet,
    /// By command on the stack: its number there, and the lowest one that it comes to.
    numbers: BTreeMap<CommandId, (usize, usize)>,
    stack: Vec<CommandId>,
    steps: Vec<ExecutionStep>,
}

/// A committed command and all that it depends on and is not delivered: sets that depend on each
/// other, each after those that it depends on.
///
/// # Errors
/// It depends on this command, directly or not, which is not committed.
pub(crate) fn execution_order<C: CommittedCommands>(
    commands: &C,
    id: CommandId,
) -> Result<Vec<Vec<CommandId>>, CommandId> {
    let over = commands.progress().delivered().clone();
    let (numbers, stack, steps) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut search = ExecutionSearch { commands, over, numbers, stack, steps };
    search.enter(id)?;
    let mut all = Vec::new();
    while let Some(ExecutionStep { id, next }) = search.steps.pop() {
        match commands.committed_value(id).dependencies.first_beyond(next, &search.over) {
            Some(next) => {
                search.steps.push(ExecutionStep { id, next });
                search.enter(next)?;
            }
            None => all.extend(search.leave(id)),
        }
    }
    Ok(all)
}

impl<C: CommittedCommands> ExecutionSearch<'_, C> {
    fn enter(&mut self, id: CommandId) -> Result<(), CommandId> {
        if let Some(awaited) = self.commands.awaited(id) {
            return Err(awaited);
        }
        self.over.insert(id);
        // The stack is in the order of its numbers: the first one that it depends on is the lowest.
        let dependencies = &self.commands.committed_value(id).dependencies;
        let lowest = self.stack.iter().position(|it| dependencies.contains(*it));
        let number = self.stack.len();
        self.numbers.insert(id, (number, lowest.unwrap_or(number)));
        self.stack.push(id);
        self.steps.push(ExecutionStep { id, next: FIRST });
        Ok(())
    }

    /// All that a command depends on was looked at: perhaps it is the first one of its set.
    fn leave(&mut self, id: CommandId) -> Option<Vec<CommandId>> {
        let (number, lowest) = self.numbers[&id];
        if lowest < number {
            let caller = self.steps.last().expect("it depends on one that was entered before").id;
            let known = self.numbers.get_mut(&caller).expect("it is on the stack");
            known.1 = known.1.min(lowest);
            return None;
        }
        let mut set = self.stack.split_off(number);
        set.iter().for_each(|id| _ = self.numbers.remove(id));
        set.sort_unstable();
        Some(set)
    }
}
