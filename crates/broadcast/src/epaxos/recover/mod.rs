//! Commands that are taken over.

mod validate;

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Nanos;

use crate::command::{CommandId, MemberId};
use crate::dependencies::OrderedAfter;
use crate::epaxos::leader::{LeadPhase, LedInstance, PendingValidation};
use crate::epaxos::message::{CommandBallot, CommandPhase, Message, Record, StoredCommand};
use crate::epaxos::{Effects, Epaxos, EpaxosSwitch};

impl Epaxos {
    /// Takes over a command that has not come to its end here.
    pub(super) fn take_over(&mut self, id: CommandId, out: &mut Effects) {
        if self.progress.is_collected(id) || self.instance(id, out.now).is_committed() {
            return;
        }
        let me = self.me;
        let instance = self.instance(id, out.now);
        instance.attempts += 1;
        let round = instance.observed.max(instance.ballot.round).saturating_add(1);
        let ballot = CommandBallot { round, member: me };
        self.store(Record::Promised { id, ballot }, out);
        let own = self.instance(id, out.now).stored.clone();
        let answers = BTreeMap::from([(me, own)]);
        let phase = LeadPhase::Recovering { answers };
        self.leading.insert(id, LedInstance::new(ballot, phase, out.now), out.now);
        self.send_to_others(&Message::Recover { id, ballot }, out);
        self.finish_recovery(id, out);
    }

    pub(super) fn on_recover(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, CommandBallot),
        out: &mut Effects,
    ) {
        if self.is_answered_late(from, (id, ballot), out) {
            return;
        }
        let instance = self.instance(id, out.now);
        if ballot > instance.ballot {
            self.store(Record::Promised { id, ballot }, out);
        }
        let stored = self.instance(id, out.now).stored.clone();
        out.send(from, Message::Recovered { id, ballot, stored });
    }

    pub(super) fn on_recovered(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, CommandBallot),
        stored: StoredCommand,
        out: &mut Effects,
    ) {
        let Some(leading) = self.leading.get_mut(id).filter(|it| it.ballot == ballot) else {
            return;
        };
        match &mut leading.phase {
            LeadPhase::Recovering { answers } => {
                answers.insert(from, stored);
                self.finish_recovery(id, out);
            }
            LeadPhase::Validating(validation) => {
                // Somebody of whom was not known in time what it has.
                if validation.waits && !validation.quorum.contains(&from) {
                    self.on_late_answer((id, ballot), from, stored, out);
                }
            }
            LeadPhase::PreAccepting { .. } | LeadPhase::Accepting { .. } => {}
        }
    }

    fn on_late_answer(
        &mut self,
        (id, ballot): (CommandId, CommandBallot),
        from: MemberId,
        stored: StoredCommand,
        out: &mut Effects,
    ) {
        match stored.phase {
            CommandPhase::Committed => self.commit(id, stored.value, out),
            CommandPhase::Accepted => self.begin_accept((id, ballot), stored.value, out),
            CommandPhase::Initial | CommandPhase::PreAccepted if from == id.leader => {
                self.begin_accept((id, ballot), OrderedAfter::nothing(), out);
            }
            CommandPhase::Initial | CommandPhase::PreAccepted => {}
        }
    }

    /// Goes on with a command of which enough members have said what they have.
    fn finish_recovery(&mut self, id: CommandId, out: &mut Effects) {
        let Some(leading) = self.leading.get(id) else { return };
        let LeadPhase::Recovering { answers } = &leading.phase else { return };
        if answers.len() < self.quorums.recovery {
            return;
        }
        let ballot = leading.ballot;
        if self.instances.get(&id).is_none_or(|it| it.ballot > ballot) {
            self.leading.remove(id); // It has promised somebody else.
            return;
        }
        let by_ballot = self.keeps(EpaxosSwitch::AcceptedBallots);
        let accepted = answers.values().filter(|it| it.phase == CommandPhase::Accepted);
        let latest = match by_ballot {
            true => accepted.max_by_key(|it| it.accepted),
            false => accepted.min_by_key(|_| 0),
        };
        if let Some(latest) = latest {
            let value = latest.value.clone();
            return self.begin_accept((id, ballot), value, out);
        }
        let agree = |it: &&StoredCommand| {
            it.phase == CommandPhase::PreAccepted && it.value.dependencies == it.initial
        };
        let agreeing: Vec<&StoredCommand> = answers.values().filter(agree).collect();
        let enough = answers.len().saturating_sub(self.slow).max(1);
        if answers.contains_key(&id.leader) || agreeing.len() < enough {
            // Its proposer has not committed it; or not enough members have agreed with it.
            return self.begin_accept((id, ballot), OrderedAfter::nothing(), out);
        }
        let (value, count) = (agreeing[0].value.clone(), agreeing.len());
        let quorum: BTreeSet<MemberId> = answers.keys().copied().collect();
        if !self.keeps(EpaxosSwitch::Validates) {
            return self.begin_accept((id, ballot), value, out);
        }
        self.begin_validation((id, ballot), (value, quorum, count), out);
    }

    fn begin_validation(
        &mut self,
        (id, ballot): (CommandId, CommandBallot),
        (value, quorum, agreeing): (OrderedAfter, BTreeSet<MemberId>, usize),
        out: &mut Effects,
    ) {
        let own = self.validate(id, value.clone(), out);
        let validation = PendingValidation {
            value: value.clone(),
            quorum: quorum.clone(),
            agreeing,
            answers: BTreeMap::from([(self.me, own)]),
            waits: false,
        };
        let phase = LeadPhase::Validating(validation);
        self.leading.insert(id, LedInstance::new(ballot, phase, out.now), out.now);
        for to in quorum.into_iter().filter(|to| *to != self.me) {
            out.send(to, Message::Validate { id, ballot, value: value.clone() });
        }
        self.finish_validation(id, out);
    }

    /// Somebody else leads a command, or has tried to.
    pub(super) fn on_superseded(&mut self, id: CommandId, ballot: CommandBallot, now: Nanos) {
        if self.progress.is_collected(id) {
            return;
        }
        let instance = self.instance(id, now);
        instance.observed = instance.observed.max(ballot.round);
        if self.leading.get(id).is_some_and(|leading| leading.ballot < ballot) {
            self.leading.remove(id);
        }
    }

    /// Takes over what has not come to its end in time.
    pub(super) fn recover_suspected(&mut self, out: &mut Effects) {
        for id in self.suspected.due(out.now) {
            match self.leading.contains(id) {
                true => self.postpone(id, out.now),
                false => self.take_over(id, out),
            }
        }
    }

    /// Asks those again who have not answered.
    pub(super) fn ask_again(&mut self, out: &mut Effects) {
        let Some(late) = out.now.0.checked_sub(self.settings.retry_after.0) else { return };
        for id in self.leading.asked_until(Nanos(late)) {
            self.decide(id, out); // Perhaps it has waited long enough for a commit at once.
            let instance = self.instances.get(&id).expect("who leads has an entry");
            let Some(leading) = self.leading.get_mut(id) else { continue };
            if instance.ballot > leading.ballot {
                self.leading.remove(id); // It has promised somebody else.
                continue;
            }
            let leading = leading.clone();
            self.leading.ask(id, out.now);
            let messages = self.questions(id, &leading);
            for to in self.others().filter(|to| !leading.has_answer_of(*to)) {
                out.send(to, messages[0].clone());
            }
            for more in &messages[1..] {
                self.send_to_others(more, out);
            }
        }
    }

    /// What members are asked of a command that this one leads; and what all are told again.
    fn questions(&self, id: CommandId, leading: &LedInstance) -> Vec<Message> {
        let stored = self.instances.get(&id).expect("who leads has an entry").stored.clone();
        let ballot = leading.ballot;
        match &leading.phase {
            LeadPhase::PreAccepting { .. } => {
                let command = stored.value.command.expect("a proposer knows its command");
                vec![Message::PreAccept { id, command, dependencies: stored.initial }]
            }
            LeadPhase::Accepting { .. } => {
                vec![Message::Accept { id, ballot, value: stored.value }]
            }
            LeadPhase::Recovering { .. } => vec![Message::Recover { id, ballot }],
            LeadPhase::Validating(validation) => {
                let value = validation.value.clone();
                let mut all = vec![Message::Validate { id, ballot, value }];
                if validation.waits {
                    all.push(Message::Waiting { id, agreeing: validation.agreeing as u16 });
                    all.push(Message::Recover { id, ballot });
                }
                all
            }
        }
    }

    pub(super) fn apply_validation(&mut self, id: CommandId, value: OrderedAfter, now: Nanos) {
        let ballot = self.instance(id, now).ballot;
        let instance = self.come_on(id, ballot, now);
        instance.stored.initial = value.dependencies;
        self.set_initial(id, value.command);
    }
}
