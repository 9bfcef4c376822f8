//! The end of a command: it is learned where it comes, and delivered after what comes before it.

use muesli_core::Nanos;

use super::message::{LearningPhase, Message, Record};
use super::voted::VotedCommand;
use super::{Effects, Generalized, GeneralizedSwitch};
use crate::command::CommandId;
use crate::dependencies::OrderedAfter;
use crate::dependencies::execution_order::{CommittedCommands, execution_order};
use crate::effects::{BroadcastEffect, DeliveredCommand};
use crate::progress::DeliveryProgress;

impl CommittedCommands for Generalized {
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

impl Generalized {
    /// A command's place is found to be final here. Its proposer says so to all where it was chosen
    /// at once, and the leader where it has ordered it.
    pub(super) fn learn(&mut self, id: CommandId, value: OrderedAfter, out: &mut Effects) {
        let is_ordered = self.instances[&id].is_accepted_in(self.ballot.current);
        let is_own = id.leader == self.me;
        let shows = if is_ordered { self.is_leading() } else { is_own };
        self.store(Record::Learned { id, value: value.clone() }, out);
        if shows || is_own || !self.is_leading() {
            self.gathering.remove(id);
        } // Else the leader does that if the proposer is silent.
        if shows {
            self.send_to_others(&Message::Learned { id, value }, out);
        }
    }

    pub(super) fn on_learned(&mut self, id: CommandId, value: OrderedAfter, out: &mut Effects) {
        if self.progress.is_collected(id) {
            return;
        }
        self.gathering.remove(id);
        if !self.instance(id, out.now).is_learned() {
            self.store(Record::Learned { id, value }, out);
        }
    }

    pub(super) fn apply_learned(&mut self, id: CommandId, value: OrderedAfter, out: &mut Effects) {
        let OrderedAfter { command, mut dependencies } = value;
        dependencies.remove(id);
        let is_nothing = command.is_none();
        self.instance(id, out.now);
        match &command {
            Some(command) => self.know(id, command),
            None => self.forget_content(id),
        }
        let instance = self.instances.get_mut(&id).expect("it is there now");
        instance.stored.phase = LearningPhase::Learned;
        instance.stored.is_nothing = is_nothing;
        instance.stored.value.dependencies = dependencies;
        let suspected = std::mem::replace(&mut instance.suspected, Nanos(0));
        self.suspected.remove(id, suspected);
        self.fix(id);
        self.find_missing(id);
        self.progress.end(id);
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
    }

    pub(super) fn is_learned(&self, id: CommandId) -> bool {
        self.instances.get(&id).is_some_and(VotedCommand::is_learned)
    }

    /// Delivers a learned command if all that it depends on is learned, after that.
    fn execute(&mut self, id: CommandId, out: &mut Effects) {
        if self.progress.is_delivered(id) {
            return;
        }
        match execution_order(self, id) {
            Ok(sets) => sets.into_iter().flatten().for_each(|id| self.deliver(id, out)),
            Err(awaited) => {
                self.instance(awaited, out.now); // If nobody speaks of it, somebody asks.
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
        let before = match self.keeps(GeneralizedSwitch::NamesDelivered) {
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
