//! The second phase, and the end of a command.

use std::collections::BTreeSet;

use muesli_core::Nanos;

use super::leader::{LeadPhase, LedInstance};
use super::message::{CommandBallot, CommandPhase, Message, Record};
use super::{Effects, Epaxos};
use crate::command::{CommandId, MemberId};
use crate::dependencies::OrderedAfter;

impl Epaxos {
    /// Has members accept dependencies, oneself first.
    pub(super) fn begin_accept(
        &mut self,
        (id, ballot): (CommandId, CommandBallot),
        value: OrderedAfter,
        out: &mut Effects,
    ) {
        self.store(Record::Accepted { id, ballot, value: value.clone() }, out);
        let phase = LeadPhase::Accepting { answers: BTreeSet::from([self.me]) };
        self.leading.insert(id, LedInstance::new(ballot, phase, out.now), out.now);
        self.send_to_others(&Message::Accept { id, ballot, value }, out);
        self.finish_accept(id, out);
    }

    pub(super) fn on_accept(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, CommandBallot),
        value: OrderedAfter,
        out: &mut Effects,
    ) {
        if self.is_answered_late(from, (id, ballot), out) {
            return;
        }
        let instance = self.instance(id, out.now);
        let is_again =
            instance.stored.phase == CommandPhase::Accepted && instance.stored.accepted == ballot;
        if !is_again {
            self.store(Record::Accepted { id, ballot, value }, out);
            self.leading.remove(id);
        }
        out.send(from, Message::AckAccept { id, ballot });
    }

    pub(super) fn apply_accept(
        &mut self,
        id: CommandId,
        ballot: CommandBallot,
        value: OrderedAfter,
        now: Nanos,
    ) {
        let instance = self.come_on(id, ballot, now);
        instance.stored.phase = CommandPhase::Accepted;
        instance.stored.accepted = ballot;
        self.set_value(id, value);
    }

    pub(super) fn on_ack_accept(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, CommandBallot),
        out: &mut Effects,
    ) {
        let Some(leading) = self.leading.get_mut(id).filter(|it| it.ballot == ballot) else {
            return;
        };
        let LeadPhase::Accepting { answers } = &mut leading.phase else { return };
        answers.insert(from);
        self.finish_accept(id, out);
    }

    fn finish_accept(&mut self, id: CommandId, out: &mut Effects) {
        let Some(leading) = self.leading.get(id) else { return };
        let LeadPhase::Accepting { answers } = &leading.phase else { return };
        if answers.len() < self.quorums.majority {
            return;
        }
        let instance = self.instances.get(&id).expect("who leads has an entry");
        if instance.stored.accepted != leading.ballot {
            self.leading.remove(id); // It has accepted what somebody else says.
            return;
        }
        let value = instance.stored.value.clone();
        self.commit(id, value, out);
    }

    /// Dependencies are final: says so to all.
    pub(super) fn commit(&mut self, id: CommandId, value: OrderedAfter, out: &mut Effects) {
        self.leading.remove(id);
        // Written down before it is said: where it was committed at once nobody else may know.
        self.store(Record::Committed { id, value: value.clone() }, out);
        self.send_to_others(&Message::Commit { id, value }, out);
    }

    pub(super) fn on_commit(&mut self, id: CommandId, value: OrderedAfter, out: &mut Effects) {
        if self.progress.is_collected(id) || self.instance(id, out.now).is_committed() {
            return;
        }
        self.leading.remove(id);
        self.store(Record::Committed { id, value }, out);
    }
}
