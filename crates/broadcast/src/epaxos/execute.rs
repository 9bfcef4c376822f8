//! Execution: a command follows all that it depends on, and those that depend on each other are
//! delivered together.

use super::instance::Instance;
use super::message::CommandPhase;
use super::{Effects, Epaxos, EpaxosSwitch};
use crate::command::CommandId;
use crate::dependencies::OrderedAfter;
use crate::dependencies::execution_order::{CommittedCommands, execution_order};
use crate::effects::{BroadcastEffect, DeliveredCommand};
use crate::progress::DeliveryProgress;

impl CommittedCommands for Epaxos {
    fn progress(&self) -> &DeliveryProgress {
        &self.progress
    }

    fn committed_value(&self, id: CommandId) -> &OrderedAfter {
        &self.instances[&id].stored.value
    }

    fn last_awaited(&self, id: CommandId) -> Option<CommandId> {
        self.instances[&id].awaits
    }
}

impl Epaxos {
    pub(super) fn apply_commit(&mut self, id: CommandId, value: OrderedAfter, out: &mut Effects) {
        let ballot = self.instance(id, out.now).ballot;
        let is_nothing = value.command.is_none();
        let instance = self.come_on(id, ballot, out.now);
        instance.stored.phase = CommandPhase::Committed;
        instance.stored.accepted = ballot;
        let suspected = instance.suspected;
        self.suspected.remove(id, suspected);
        self.progress.end(id);
        self.set_value(id, value);
        if is_nothing {
            self.progress.end_as_nothing(id);
            if self.own.end(id) {
                out.effects.push(BroadcastEffect::GivenUp(id));
            }
        }
        let mut due: Vec<CommandId> =
            self.awaited.remove(&id).unwrap_or_default().into_iter().collect();
        due.extend((!is_nothing).then_some(id));
        // What depends on little comes first, as the others mostly depend on it.
        due.sort_by_cached_key(|id| (self.instances[id].stored.value.dependencies.len(), *id));
        for id in due {
            self.execute(id, out);
        }
        self.look_at_those_waiting(id, out);
    }

    pub(super) fn is_committed(&self, id: CommandId) -> bool {
        self.instances.get(&id).is_some_and(Instance::is_committed)
    }

    /// Delivers a committed command if all that it depends on is committed, after that.
    fn execute(&mut self, id: CommandId, out: &mut Effects) {
        if self.progress.is_delivered(id) {
            return;
        }
        match execution_order(self, id) {
            Ok(sets) => sets.into_iter().flatten().for_each(|id| self.deliver(id, out)),
            Err(awaited) => {
                self.instance(awaited, out.now); // If nobody speaks of it, it is taken over.
                self.instance(id, out.now).awaits = Some(awaited);
                self.awaited.entry(awaited).or_default().insert(id);
            }
        }
    }

    fn deliver(&mut self, id: CommandId, out: &mut Effects) {
        let instance = self.instances.get_mut(&id).expect("a command that is delivered is known");
        instance.awaits = None;
        let OrderedAfter { command, dependencies } = instance.stored.value.clone();
        let command = command.expect("nothing is not delivered");
        // A member that has forgotten more than this one may have left some of them out.
        let before = match self.keeps(EpaxosSwitch::NamesDelivered) {
            true => self.index.of(id, &command.objects).ids,
            false => dependencies,
        };
        let predecessors = self.progress.recent(before);
        let is_new = self.progress.deliver(id);
        assert!(is_new, "{id} is delivered once");
        self.own.end(id);
        out.effects.push(BroadcastEffect::Deliver(DeliveredCommand { id, command, predecessors }));
    }
}
