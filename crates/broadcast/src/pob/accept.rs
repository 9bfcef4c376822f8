//! The accept phase (algorithm 10), and the end of a command (algorithm 11, lines 1 to 5).

use std::collections::BTreeMap;

use muesli_core::Nanos;

use super::entry::{CommandContent, CommandEpoch, CommandStatus, KnownCommand};
use super::leading::{LeaderPhase, LedCommand, count_answer};
use super::message::{Accept, Message, Record, Stable};
use super::{Effects, Pob, PobSwitch};
use crate::command::{Command, CommandId, MemberId};
use crate::id_set::IdSet;

impl KnownCommand {
    /// What is final of it.
    pub(super) fn stable(&self, id: CommandId) -> Stable {
        assert!(self.is_stable(), "{id} is not stable: {self:?}");
        Stable {
            id,
            command: self.stored.content.command().cloned(),
            position: self.stored.position,
            dependencies: self.stored.dependencies.clone(),
        }
    }
}

impl Pob {
    /// Has members accept a position, oneself first.
    pub(super) fn begin_accept(
        &mut self,
        (id, epoch): (CommandId, CommandEpoch),
        command: Option<Command>,
        (position, dependencies): (u64, IdSet),
        out: &mut Effects,
    ) {
        let accept = Accept { id, command, epoch, position, dependencies };
        let own = self.completed(accept.clone());
        self.store(Record::Accepted(own.clone()), out);
        let phase =
            LeaderPhase::Accepting { answers: BTreeMap::from([(self.me, own.dependencies)]) };
        self.leading.insert(id, LedCommand::new(epoch, phase, out.now), out.now);
        self.send_to_others(&Message::Accept(accept), out);
        self.finish_accept(id, out);
    }

    /// With what this member knows to conflict.
    fn completed(&self, mut accept: Accept) -> Accept {
        let id = accept.id;
        let objects = accept.command.as_ref().map(|command| &command.objects);
        if let Some(objects) = objects.filter(|_| self.keeps(PobSwitch::AcceptsComplete)) {
            let (mut conflicts, _) = self.dependencies(id, objects);
            if !self.keeps(PobSwitch::AcceptsUnfiltered) {
                conflicts = conflicts.iter().filter(|it| self.is_below(*it, &accept)).collect();
            }
            if !self.keeps(PobSwitch::AcceptsEarlier) {
                conflicts = conflicts.without(&self.known_at_proposal(&accept));
            }
            accept.dependencies.extend(&conflicts);
        }
        accept.dependencies.remove(id);
        self.progress.remove_collected(&mut accept.dependencies);
        accept
    }

    /// What was named here when the position was proposed that is to be accepted now.
    fn known_at_proposal(&self, accept: &Accept) -> IdSet {
        let stored = self.entries.get(&accept.id).map(|entry| &entry.stored);
        let proposed = stored.filter(|it| it.status == CommandStatus::Pending);
        proposed.map(|it| it.dependencies.clone()).unwrap_or_default()
    }

    /// Whether a command is, as far as is known here, below a position.
    fn is_below(&self, id: CommandId, accept: &Accept) -> bool {
        let position = self.entries.get(&id).map_or(0, |entry| entry.stored.position);
        (position, id) < (accept.position, accept.id)
    }

    pub(super) fn on_accept(&mut self, from: MemberId, accept: Accept, out: &mut Effects) {
        let (id, epoch) = (accept.id, accept.epoch);
        if self.refuses(from, (id, epoch), CommandStatus::Accepted, out) {
            return;
        }
        let own = self.completed(accept);
        let dependencies = own.dependencies.clone();
        self.store(Record::Accepted(own), out);
        self.leading.remove(id);
        out.send(from, Message::AckAccept { id, epoch, dependencies });
    }

    pub(super) fn apply_accept(&mut self, accept: Accept, now: Nanos) {
        let Accept { id, command, epoch, position, dependencies } = accept;
        let stored = &mut self.come_on(id, epoch, now).stored;
        stored.status = CommandStatus::Accepted;
        stored.accepted = Some(epoch);
        let before = std::mem::replace(&mut stored.content, CommandContent::chosen(command));
        let is_something = stored.content.command().is_some();
        stored.position = position;
        stored.dependencies = dependencies;
        if let Some(before) = before.command().filter(|_| !is_something) {
            self.index.remove(id, &before.objects);
        }
        self.place(id, position);
    }

    pub(super) fn on_ack_accept(
        &mut self,
        from: MemberId,
        (id, epoch): (CommandId, CommandEpoch),
        dependencies: IdSet,
        out: &mut Effects,
    ) {
        let by_member = self.keeps(PobSwitch::CountsMembers);
        let Some(leading) = self.led_in(id, epoch) else { return };
        let LeaderPhase::Accepting { answers } = &mut leading.phase else { return };
        count_answer(answers, (from, dependencies), by_member);
        self.finish_accept(id, out);
    }

    /// Announces a position that a majority has accepted.
    fn finish_accept(&mut self, id: CommandId, out: &mut Effects) {
        let Some(leading) = self.leading.get(id) else { return };
        let LeaderPhase::Accepting { answers } = &leading.phase else { return };
        if answers.len() < self.quorums.majority {
            return;
        }
        let mut dependencies = IdSet::new();
        let all = self.keeps(PobSwitch::AnnouncesAnswers);
        for (_, answer) in answers.iter().filter(|(from, _)| all || **from == self.me) {
            dependencies.extend(answer);
        }
        dependencies.remove(id);
        let entry = self.entries.get(&id).expect("who leads has an entry");
        if entry.stored.accepted != Some(leading.epoch) {
            self.leading.remove(id); // It has accepted what somebody else says.
            return;
        }
        let (command, position) = (entry.stored.content.command().cloned(), entry.stored.position);
        self.announce(id, command, (position, dependencies), out);
    }

    /// A position is final: says so to all.
    pub(super) fn announce(
        &mut self,
        id: CommandId,
        command: Option<Command>,
        (position, mut dependencies): (u64, IdSet),
        out: &mut Effects,
    ) {
        self.progress.remove_collected(&mut dependencies);
        let stable = Stable { id, command, position, dependencies };
        self.leading.remove(id);
        // Written down before it is said: where it was decided at once nobody else may know.
        self.store(Record::Stable(stable.clone()), out);
        self.send_to_others(&Message::Stable(stable), out);
    }
}
