//! The commands that a member leads, and when it asked those last who have not answered.

use std::collections::BTreeMap;

use muesli_core::Nanos;

use super::due_times::DueTimes;
use crate::command::CommandId;

/// Commands that a member leads.
///
/// Invariant: each has one time at which others were asked last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LedCommands<L> {
    commands: BTreeMap<CommandId, (Nanos, L)>,
    asked: DueTimes<CommandId>,
}

impl<L> LedCommands<L> {
    pub fn new() -> LedCommands<L> {
        LedCommands { commands: BTreeMap::new(), asked: DueTimes::new() }
    }

    /// It leads a command from now on, in this way; others are asked now.
    pub fn insert(&mut self, id: CommandId, led: L, now: Nanos) {
        let before = self.commands.insert(id, (now, led));
        if let Some((asked, _)) = before {
            self.asked.remove(id, asked);
        }
        self.asked.add(id, now);
    }

    /// It leads a command no more.
    pub fn remove(&mut self, id: CommandId) {
        if let Some((asked, _)) = self.commands.remove(&id) {
            self.asked.remove(id, asked);
        }
    }

    pub fn contains(&self, id: CommandId) -> bool {
        self.commands.contains_key(&id)
    }

    pub fn get(&self, id: CommandId) -> Option<&L> {
        self.commands.get(&id).map(|(_, led)| led)
    }

    pub fn get_mut(&mut self, id: CommandId) -> Option<&mut L> {
        self.commands.get_mut(&id).map(|(_, led)| led)
    }

    /// Those of which others were asked last at this time, or before.
    pub fn asked_until(&self, time: Nanos) -> Vec<CommandId> {
        self.asked.due(time)
    }

    /// Others are asked again, now.
    pub fn ask(&mut self, id: CommandId, now: Nanos) {
        if let Some((asked, _)) = self.commands.get_mut(&id) {
            self.asked.remove(id, *asked);
            self.asked.add(id, now);
            *asked = now;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (CommandId, &L)> {
        self.commands.iter().map(|(id, (_, led))| (*id, led))
    }

    pub fn assert_invariants(&self) {
        self.asked.assert_are(self.commands.iter().map(|(id, (asked, _))| (*asked, *id)));
    }
}
