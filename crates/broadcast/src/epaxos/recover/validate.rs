//! Whether what may have been committed at once can be kept: other commands may be in its way.

use std::collections::BTreeSet;

use crate::command::{CommandId, MemberId};
use crate::dependencies::OrderedAfter;
use crate::epaxos::leader::{LeadPhase, PendingValidation};
use crate::epaxos::message::{CommandBallot, Invalidating, Message, Record};
use crate::epaxos::{Effects, Epaxos};

impl Epaxos {
    /// Takes to be what a proposer wanted; which commands may be in the way of that here.
    pub(in crate::epaxos) fn validate(
        &mut self,
        id: CommandId,
        value: OrderedAfter,
        out: &mut Effects,
    ) -> BTreeSet<Invalidating> {
        self.store(Record::Validated { id, value: value.clone() }, out);
        let command = value.command.as_ref().expect("what was proposed is something");
        // What is committed counts as it is, and the others as their proposers wanted.
        let mut others = self.index.of(id, &command.objects).ids;
        others.extend(&self.initial_index.of(id, &command.objects).ids);
        let named = others.iter_beyond(&value.dependencies).filter_map(|other| {
            let instance = self.instances.get(&other)?;
            let (stored, committed) = (&instance.stored, instance.is_committed());
            let (command_of, after) = match committed {
                true => (&stored.value.command, &stored.value.dependencies),
                false => (&instance.initial_command, &stored.initial),
            };
            let conflicts = command_of.as_ref().is_some_and(|it| it.conflicts_with(command));
            let invalidates = conflicts && !after.contains(id);
            invalidates.then_some(Invalidating { id: other, committed })
        });
        named.collect()
    }

    pub(in crate::epaxos) fn on_validate(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, CommandBallot),
        value: OrderedAfter,
        out: &mut Effects,
    ) {
        if self.progress.is_collected(id) || value.command.is_none() {
            return;
        }
        let instance = self.instance(id, out.now);
        if instance.is_committed() {
            let value = instance.stored.value.clone();
            return out.send(from, Message::Commit { id, value });
        }
        if instance.ballot != ballot {
            let ballot = instance.ballot;
            return out.send(from, Message::Superseded { id, ballot });
        }
        let invalidating = self.validate(id, value, out).into_iter().collect();
        out.send(from, Message::Validated { id, ballot, invalidating });
    }

    pub(in crate::epaxos) fn on_validated(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, CommandBallot),
        invalidating: Vec<Invalidating>,
        out: &mut Effects,
    ) {
        let Some(leading) = self.leading.get_mut(id).filter(|it| it.ballot == ballot) else {
            return;
        };
        let LeadPhase::Validating(validation) = &mut leading.phase else { return };
        if validation.quorum.contains(&from) && !validation.waits {
            validation.answers.insert(from, invalidating.into_iter().collect());
            self.finish_validation(id, out);
        }
    }

    /// Goes on once all have said what may be in the way.
    pub(in crate::epaxos) fn finish_validation(&mut self, id: CommandId, out: &mut Effects) {
        let Some(leading) = self.leading.get(id) else { return };
        let ballot = leading.ballot;
        let LeadPhase::Validating(validation) = &leading.phase else { return };
        let PendingValidation { quorum, answers, agreeing, waits, value } = validation;
        if answers.len() < quorum.len() || *waits {
            return;
        }
        let all: BTreeSet<Invalidating> = answers.values().flatten().copied().collect();
        let least = quorum.len().saturating_sub(self.slow);
        let cannot = |it: &Invalidating| {
            it.committed || (*agreeing == least && !quorum.contains(&it.id.leader))
        };
        let (value, agreeing) = (value.clone(), *agreeing as u16);
        if all.is_empty() {
            return self.begin_accept((id, ballot), value, out);
        }
        if all.iter().any(cannot) {
            return self.begin_accept((id, ballot), OrderedAfter::nothing(), out);
        }
        let leading = self.leading.get_mut(id).expect("found above");
        let LeadPhase::Validating(validation) = &mut leading.phase else { return };
        validation.waits = true;
        for other in all {
            if self.progress.is_collected(other.id) {
                continue;
            }
            self.instance(other.id, out.now); // It is taken over if nobody speaks of it.
            self.blocked.entry(other.id).or_default().insert(id);
        }
        self.send_to_others(&Message::Waiting { id, agreeing }, out);
        self.look_at_others(id, out);
    }

    /// What a command waits for may be known by now.
    fn look_at_others(&mut self, id: CommandId, out: &mut Effects) {
        let Some(leading) = self.leading.get(id) else { return };
        let LeadPhase::Validating(validation) = &leading.phase else { return };
        if !validation.waits {
            return;
        }
        let (ballot, value) = (leading.ballot, validation.value.clone());
        let most = self.quorums.majority.saturating_sub(self.slow) as u16;
        let (mut is_clear, mut is_beaten) = (true, false);
        for other in validation.answers.values().flatten() {
            if self.progress.is_collected(other.id) {
                continue; // All have executed it: it would be in the way if it were.
            }
            let instance = self.instances.get(&other.id).filter(|it| it.is_committed());
            match instance {
                Some(instance) => {
                    let after = &instance.stored.value;
                    is_beaten |= after.command.is_some() && !after.dependencies.contains(id);
                }
                None => {
                    is_clear = false;
                    let agreeing = self.others_waiting.get(&other.id);
                    is_beaten |= agreeing.is_some_and(|agreeing| *agreeing > most);
                }
            }
        }
        if is_beaten {
            self.begin_accept((id, ballot), OrderedAfter::nothing(), out);
        } else if is_clear {
            self.begin_accept((id, ballot), value, out);
        }
    }

    /// Another command waits as well.
    pub(in crate::epaxos) fn on_waiting(
        &mut self,
        id: CommandId,
        agreeing: u16,
        out: &mut Effects,
    ) {
        if self.instances.get(&id).is_none_or(|it| it.is_committed()) {
            return; // It is not known yet, and will be said again; or it waits no more.
        }
        self.others_waiting.insert(id, agreeing);
        for own in self.blocked.get(&id).cloned().unwrap_or_default() {
            self.look_at_others(own, out);
        }
    }

    /// A command has come to its end: others may have waited for that.
    pub(in crate::epaxos) fn look_at_those_waiting(&mut self, id: CommandId, out: &mut Effects) {
        self.others_waiting.remove(&id);
        for own in self.blocked.remove(&id).unwrap_or_default() {
            self.look_at_others(own, out);
        }
    }
}
