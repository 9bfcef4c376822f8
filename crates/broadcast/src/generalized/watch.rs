//! What a member does by itself: it asks again, and sees to commands that do not come to their end.

use muesli_core::Nanos;

use super::message::Message;
use super::{Effects, Generalized};
use crate::command::CommandId;

impl Generalized {
    /// Asks those again who have not answered.
    pub(super) fn ask_again(&mut self, out: &mut Effects) {
        let Some(late) = out.now.0.checked_sub(self.settings.retry_after.0) else { return };
        self.prepare_again(Nanos(late), out);
        self.start_again(out);
        for id in self.gathering.asked_until(Nanos(late)) {
            self.gather_again(id, out);
        }
    }

    fn gather_again(&mut self, id: CommandId, out: &mut Effects) {
        if !self.gathering.contains(id) {
            return;
        }
        if self.is_learned(id) {
            // Its proposer should have shown that to all.
            let value = self.instances[&id].stored.ordered();
            self.gathering.remove(id);
            return self.send_to_others(&Message::Learned { id, value }, out);
        }
        if !self.gathers(id) {
            return self.gathering.remove(id); // Somebody else leads by now.
        }
        self.gathering.ask(id, out.now);
        let ballot = self.ballot.current;
        let had_asked = self.instances[&id].is_accepted_in(ballot);
        self.decide(id, out); // Perhaps it has waited long enough for a decision at once.
        let asks = self.instances[&id].is_accepted_in(ballot);
        if !self.gathering.contains(id) || self.is_learned(id) || (asks && !had_asked) {
            return;
        }
        match self.is_leading() {
            true => self.ask(id, out),
            false => self.propose_again(id, out),
        }
    }

    fn propose_again(&mut self, id: CommandId, out: &mut Effects) {
        let instance = self.instance(id, out.now);
        let ballot = instance.stored.ballot;
        let command = instance.stored.value.command.clone();
        let is_ordered = instance.is_accepted_in(ballot) && ballot == self.ballot.current;
        if let Some(command) = command.filter(|_| !is_ordered) {
            self.send_proposal(id, &command, out);
        }
    }

    /// Sees to what has not come to its end in time: the leader asks all, others begin a ballot.
    pub(super) fn see_to_suspected(&mut self, out: &mut Effects) {
        for id in self.suspected.due(out.now) {
            if self.is_learned(id) || self.progress.is_collected(id) {
                continue;
            }
            self.postpone(id, out.now);
            let is_gathered = self.gathering.contains(id);
            if self.is_leading() && !is_gathered {
                self.lead(id, out);
            } else if id.leader == self.me && !is_gathered {
                self.gather(id, out.now); // After a crash: perhaps nobody else has it.
                self.propose_again(id, out);
            } else if !self.is_leading() && !self.is_beginning() && self.is_leader_late(id, out) {
                self.begin_ballot(id, out);
            }
        }
    }

    /// Whether the leader should have ordered a command that is due.
    fn is_leader_late(&self, id: CommandId, out: &Effects) -> bool {
        let attempts = self.instances[&id].attempts;
        let own = self.gathering.get(id).filter(|_| id.leader == self.me);
        own.is_none_or(|own| self.leader_suspicion(attempts, own.since) <= out.now)
    }

    /// Sees to a command at once.
    pub(super) fn take_over(&mut self, id: CommandId, out: &mut Effects) {
        if self.progress.is_collected(id) || self.instance(id, out.now).is_learned() {
            return;
        }
        match self.is_leading() {
            true => self.lead(id, out),
            false => self.begin_ballot(id, out),
        }
    }

    fn lead(&mut self, id: CommandId, out: &mut Effects) {
        self.gather(id, out.now);
        self.decide(id, out);
        if self.gathering.contains(id) && !self.is_learned(id) {
            self.ask(id, out);
        }
    }
}
