//! The first phase: what members know that conflicts with a command.

use std::collections::BTreeMap;

use muesli_core::Nanos;

use super::leader::{LeadPhase, LedInstance};
use super::message::{CommandBallot, CommandPhase, Message, Record};
use super::{Effects, Epaxos};
use crate::command::{Command, CommandId, MemberId};
use crate::dependencies::OrderedAfter;
use crate::id_set::IdSet;

impl Epaxos {
    /// Asks all what conflicts with a command, oneself first.
    pub(super) fn begin_pre_accept(&mut self, id: CommandId, command: Command, out: &mut Effects) {
        let mut dependencies = self.conflicts(id, &command);
        // What is forgotten here comes before it, too, as others may have to be told.
        self.progress.insert_collected(&mut dependencies);
        let initial = dependencies.clone();
        let value = OrderedAfter { command: Some(command.clone()), dependencies };
        self.store(Record::PreAccepted { id, value, initial: initial.clone() }, out);
        let answers = BTreeMap::from([(self.me, initial.clone())]);
        let phase = LeadPhase::PreAccepting { answers };
        self.leading.insert(
            id,
            LedInstance::new(CommandBallot::first(id), phase, out.now),
            out.now,
        );
        self.send_to_others(&Message::PreAccept { id, command, dependencies: initial }, out);
        self.decide(id, out);
    }

    pub(super) fn on_pre_accept(
        &mut self,
        from: MemberId,
        id: CommandId,
        (command, initial): (Command, IdSet),
        out: &mut Effects,
    ) {
        if self.is_answered_late(from, (id, CommandBallot::first(id)), out) {
            return;
        }
        let instance = self.instance(id, out.now);
        if instance.stored.phase == CommandPhase::Initial {
            let mut dependencies = initial.clone();
            dependencies.extend(&self.conflicts(id, &command));
            let value = OrderedAfter { command: Some(command), dependencies };
            self.store(Record::PreAccepted { id, value, initial }, out);
        }
        let stored = &self.instance(id, out.now).stored;
        if stored.phase == CommandPhase::PreAccepted {
            let dependencies = stored.value.dependencies.clone();
            out.send(from, Message::AckPreAccept { id, dependencies });
        }
    }

    pub(super) fn apply_pre_accept(
        &mut self,
        id: CommandId,
        value: OrderedAfter,
        initial: IdSet,
        now: Nanos,
    ) {
        if let Some(command) = &value.command {
            self.own.take(id, command);
        }
        let instance = self.come_on(id, CommandBallot::first(id), now);
        instance.stored.phase = CommandPhase::PreAccepted;
        instance.stored.initial = initial;
        self.set_initial(id, value.command.clone());
        self.set_value(id, value);
    }

    pub(super) fn on_ack_pre_accept(
        &mut self,
        from: MemberId,
        id: CommandId,
        dependencies: IdSet,
        out: &mut Effects,
    ) {
        let Some(leading) = self.leading.get_mut(id) else { return };
        let LeadPhase::PreAccepting { answers } = &mut leading.phase else { return };
        answers.insert(from, dependencies);
        self.decide(id, out);
    }

    /// Goes on with a command that enough members have answered.
    pub(super) fn decide(&mut self, id: CommandId, out: &mut Effects) {
        let Some(leading) = self.leading.get(id) else { return };
        let LeadPhase::PreAccepting { answers } = &leading.phase else { return };
        let instance = self.instances.get(&id).expect("who leads has an entry");
        if instance.ballot > leading.ballot {
            self.leading.remove(id); // It has promised somebody else.
            return;
        }
        let agree = answers.values().all(|it| *it == instance.stored.initial);
        let is_fast = agree && answers.len() >= self.quorums.members - self.slow;
        let waits = agree && leading.since + self.settings.fast_within > out.now;
        if !is_fast && (answers.len() < self.quorums.majority || waits) {
            return;
        }
        let mut dependencies = IdSet::new();
        answers.values().for_each(|it| dependencies.extend(it));
        let command = instance.stored.value.command.clone();
        let (value, ballot) = (OrderedAfter { command, dependencies }, leading.ballot);
        match is_fast {
            true => self.commit(id, value, out),
            false => self.begin_accept((id, ballot), value, out),
        }
    }
}
