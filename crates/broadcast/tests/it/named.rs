//! After which commands a member says that each one is to be applied.

use std::collections::BTreeMap;

use muesli_broadcast::{Command, CommandId, IdSet};

/// What a member has delivered, with all that comes before each, as far as that was said.
#[derive(Clone, Debug, Default)]
pub struct NamedPredecessors {
    order: Vec<CommandId>,
    /// The predecessors of each, and theirs.
    before: BTreeMap<CommandId, IdSet>,
}

impl NamedPredecessors {
    /// A member has delivered a command after these; what is wrong with that.
    pub fn deliver(
        &mut self,
        id: CommandId,
        predecessors: &IdSet,
        commands: &BTreeMap<CommandId, Command>,
        is_forgotten: impl Fn(CommandId) -> bool,
    ) -> Option<String> {
        let conflict = |other: &CommandId| commands[other].conflicts_with(&commands[&id]);
        let foreign = predecessors.iter().find(|it| !self.before.contains_key(it));
        let mut before = IdSet::new();
        for it in predecessors.iter().filter(|it| self.before.contains_key(it)) {
            before.insert(it);
            before.extend(&self.before[&it]);
        }
        self.before.insert(id, before.clone());
        for it in self.order.iter().filter(|it| is_forgotten(**it)) {
            before.insert(*it);
            before.extend(&self.before[it]);
        }
        let unnamed = self.order.iter().find(|it| conflict(it) && !before.contains(**it));
        let found = match (foreign, unnamed) {
            (Some(foreign), _) => Some(format!("{id} is said to come after {foreign}")),
            (None, Some(unnamed)) => {
                Some(format!("{id} comes after {unnamed}, and {predecessors:?} are named"))
            }
            (None, None) => None,
        };
        self.order.push(id);
        found
    }
}
