//! The proposal phase (algorithms 7 to 9, 13, 14).

use std::collections::BTreeMap;

use muesli_core::Nanos;

use super::entry::{CommandContent, CommandEpoch, CommandStatus};
use super::leading::{LeaderPhase, LedCommand, ProposeAnswer, count_answer};
use super::message::{Message, Propose, Record};
use super::{Effects, Pob, PobSwitch};
use crate::command::{Command, CommandId, MemberId};
use crate::id_set::IdSet;
use crate::objects::ObjectSet;

impl Pob {
    /// Proposes a position above all that were seen, to oneself first.
    pub(super) fn begin_proposal(
        &mut self,
        id: CommandId,
        epoch: CommandEpoch,
        command: Command,
        out: &mut Effects,
    ) {
        let position = if self.keeps(PobSwitch::ProposesAbove) { self.highest + 1 } else { 1 };
        let (dependencies, _) = self.dependencies(id, &command.objects);
        let own = ProposeAnswer { position, dependencies: dependencies.clone() };
        let propose = Propose { id, command, epoch, position, dependencies };
        self.store(Record::Proposed { answer: propose.clone(), position }, out);
        let answers = BTreeMap::from([(self.me, own)]);
        let phase = LeaderPhase::Proposing { position, answers };
        self.leading.insert(id, LedCommand::new(epoch, phase, out.now), out.now);
        self.send_to_others(&Message::Propose(propose), out);
        self.decide(id, out);
    }

    /// What is known to conflict with a command, and the lowest position that is above all of it.
    pub(super) fn dependencies(&self, id: CommandId, objects: &ObjectSet) -> (IdSet, u64) {
        let mut conflicts = self.index.of(id, objects);
        self.progress.remove_collected(&mut conflicts.ids);
        if !self.keeps(PobSwitch::KeepsConflicts) {
            conflicts.ids = conflicts.ids.without(self.progress.delivered());
        }
        (conflicts.ids, conflicts.highest.max(self.floor) + 1)
    }

    /// The position with which a member answers that knows commands in conflict below `above`.
    fn answered(&self, proposed: u64, above: u64) -> u64 {
        let least = proposed + u64::from(!self.keeps(PobSwitch::KeepsProposed));
        least.max(above - u64::from(!self.keeps(PobSwitch::RaisesEqual)))
    }

    pub(super) fn on_propose(&mut self, from: MemberId, propose: Propose, out: &mut Effects) {
        let Propose { id, command, epoch, position: proposed, mut dependencies } = propose;
        if self.refuses(from, (id, epoch), CommandStatus::Pending, out) {
            return;
        }
        let (conflicts, above) = self.dependencies(id, &command.objects);
        let position = self.answered(proposed, above);
        if self.keeps(PobSwitch::AnswersComplete) {
            dependencies.extend(&conflicts);
        }
        dependencies.remove(id);
        self.progress.remove_collected(&mut dependencies);
        let ack = Message::AckPropose { id, epoch, position, dependencies: dependencies.clone() };
        let answer = Propose { id, command, epoch, position, dependencies };
        self.store(Record::Proposed { answer, position: proposed }, out);
        self.leading.remove(id);
        out.send(from, ack);
    }

    /// Whether a message that would bring a command to `status` is out of date; its sender is told
    /// why, or what it was told before.
    pub(super) fn refuses(
        &mut self,
        from: MemberId,
        (id, epoch): (CommandId, CommandEpoch),
        status: CommandStatus,
        out: &mut Effects,
    ) -> bool {
        if self.progress.is_collected(id) {
            return true;
        }
        let advances = self.keeps(PobSwitch::StatusAdvances);
        let refuses_earlier = self.keeps(PobSwitch::RefusesEarlier);
        let answers_again = self.keeps(PobSwitch::AnswersAgain);
        let entry = self.entry(id, out.now);
        if entry.is_stable() && advances {
            self.show_stable(from, id, out);
            return true;
        }
        if epoch < entry.epoch && refuses_earlier {
            out.send(from, Message::Superseded { id, epoch: entry.epoch });
            return true;
        }
        if entry.is_advanced_by(epoch, status) || !advances {
            return false;
        }
        if entry.stored.status == status && answers_again {
            let (position, dependencies) =
                (entry.stored.position, entry.stored.dependencies.clone());
            out.send(
                from,
                match status {
                    CommandStatus::Accepted => Message::AckAccept { id, epoch, dependencies },
                    CommandStatus::Pending | CommandStatus::Unknown | CommandStatus::Stable => {
                        Message::AckPropose { id, epoch, position, dependencies }
                    }
                },
            );
        }
        true
    }

    pub(super) fn apply_proposal(&mut self, answer: Propose, proposed: u64, now: Nanos) {
        let Propose { id, command, epoch, position, dependencies } = answer;
        self.own.take(id, &command);
        let stored = &mut self.come_on(id, epoch, now).stored;
        stored.status = CommandStatus::Pending;
        stored.accepted = Some(epoch);
        stored.content = CommandContent::Command(command);
        if epoch.is_first() {
            stored.first_position = proposed;
        }
        stored.position = position;
        stored.dependencies = dependencies;
        self.place(id, position);
    }

    pub(super) fn on_ack_propose(
        &mut self,
        from: MemberId,
        (id, epoch): (CommandId, CommandEpoch),
        (position, dependencies): (u64, IdSet),
        out: &mut Effects,
    ) {
        let by_member = self.keeps(PobSwitch::CountsMembers);
        let Some(leading) = self.led_in(id, epoch) else { return };
        let LeaderPhase::Proposing { answers, .. } = &mut leading.phase else { return };
        count_answer(answers, (from, ProposeAnswer { position, dependencies }), by_member);
        self.decide(id, out);
    }

    /// Goes on with a proposal that enough members have answered (`CDecide`, `FDecide`).
    pub(super) fn decide(&mut self, id: CommandId, out: &mut Effects) {
        let Some(leading) = self.leading.get(id) else { return };
        let LeaderPhase::Proposing { position, answers } = &leading.phase else { return };
        let (epoch, count) = (leading.epoch, answers.len());
        let agree = answers.values().all(|answer| answer.position == *position)
            || !self.keeps(PobSwitch::FastUnanimous);
        let is_first = epoch.is_first() || !self.keeps(PobSwitch::FastInFirst);
        let may_be_fast = self.switches.fast && is_first && agree;
        let waits = leading.since + self.settings.fast_within > out.now;
        let is_fast = may_be_fast && count >= self.quorums.fast;
        if !is_fast && (count < self.quorums.majority || (may_be_fast && waits)) {
            return;
        }
        let highest = match self.keeps(PobSwitch::TakesHighest) {
            true => answers.values().map(|answer| answer.position).fold(*position, u64::max),
            false => *position,
        };
        let mut dependencies = IdSet::new();
        for answer in answers.values() {
            dependencies.extend(&answer.dependencies);
        }
        dependencies.remove(id);
        let entry = self.entries.get(&id).expect("who leads has an entry");
        if entry.epoch > epoch {
            self.leading.remove(id); // It has promised somebody else.
            return;
        }
        let command = entry.stored.content.command().cloned();
        match is_fast {
            true => self.announce(id, command, (highest, dependencies), out),
            false => self.begin_accept((id, epoch), command, (highest, dependencies), out),
        }
    }
}
