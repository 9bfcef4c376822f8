//! Commands that are taken over (algorithm 12).

mod choice;

use std::collections::BTreeMap;

use muesli_core::Nanos;

use crate::command::{CommandId, MemberId};
use crate::pob::entry::{CommandEpoch, CommandStatus, Stored};
use crate::pob::leading::{LeaderPhase, LedCommand, count_answer};
use crate::pob::message::{Accept, Message, Propose, Record};
use crate::pob::{Effects, Pob, PobSwitch};
use choice::{RecoveryChoice, recovered};

impl Pob {
    /// Takes over a command that has not come to its end here.
    pub(super) fn take_over(&mut self, id: CommandId, out: &mut Effects) {
        if self.progress.is_collected(id) || self.entry(id, out.now).is_stable() {
            return;
        }
        let me = self.me;
        let entry = self.entry(id, out.now);
        let observed = CommandEpoch { round: entry.observed.max(entry.epoch.round), member: me };
        entry.attempts += 1;
        let is_separate = self.keeps(PobSwitch::SeparateEpochs);
        let epoch = observed.next(if is_separate { me } else { id.leader });
        self.store(Record::Promised { id, epoch }, out);
        let own = self.entry(id, out.now).stored.clone();
        let promises = match self.keeps(PobSwitch::OwnPromise) {
            true => BTreeMap::from([(me, own)]),
            false => BTreeMap::new(),
        };
        self.leading.insert(
            id,
            LedCommand::new(epoch, LeaderPhase::Preparing { promises }, out.now),
            out.now,
        );
        self.send_to_others(&Message::Prepare { id, epoch }, out);
        self.finish_prepare(id, out);
    }

    pub(super) fn on_prepare(
        &mut self,
        from: MemberId,
        (id, epoch): (CommandId, CommandEpoch),
        out: &mut Effects,
    ) {
        if self.progress.is_collected(id) {
            return;
        }
        let entry = self.entry(id, out.now);
        if entry.is_stable() {
            return self.show_stable(from, id, out);
        }
        if epoch < entry.epoch {
            return out.send(from, Message::Superseded { id, epoch: entry.epoch });
        }
        if epoch > entry.epoch {
            self.store(Record::Promised { id, epoch }, out);
        }
        let stored = self.entry(id, out.now).stored.clone();
        out.send(from, Message::Promise { id, epoch, stored });
    }

    pub(super) fn apply_promise(&mut self, id: CommandId, epoch: CommandEpoch, now: Nanos) {
        self.come_on(id, epoch, now);
    }

    pub(super) fn on_promise(
        &mut self,
        from: MemberId,
        (id, epoch): (CommandId, CommandEpoch),
        stored: Stored,
        out: &mut Effects,
    ) {
        let by_member = self.keeps(PobSwitch::CountsMembers);
        let Some(leading) = self.led_in(id, epoch) else { return };
        let LeaderPhase::Preparing { promises } = &mut leading.phase else { return };
        if stored.status != CommandStatus::Stable {
            count_answer(promises, (from, stored), by_member); // Who has its end says so by itself.
        }
        self.finish_prepare(id, out);
    }

    /// Goes on with a command for which enough members have promised.
    fn finish_prepare(&mut self, id: CommandId, out: &mut Effects) {
        let Some(leading) = self.leading.get(id) else { return };
        let LeaderPhase::Preparing { promises } = &leading.phase else { return };
        if promises.len() < self.quorums.recovery {
            return;
        }
        let epoch = leading.epoch;
        let entry = self.entries.get(&id).expect("who leads has an entry");
        if entry.epoch > epoch {
            self.leading.remove(id); // It has promised somebody else.
            return;
        }
        match recovered(id, promises, &self.quorums, &self.switches) {
            RecoveryChoice::Accept(command, position, dependencies) => {
                self.begin_accept((id, epoch), command, (position, dependencies), out);
            }
            RecoveryChoice::Propose(command) => self.begin_proposal(id, epoch, command, out),
        }
    }

    /// Somebody else leads a command, or has tried to.
    pub(super) fn on_superseded(&mut self, id: CommandId, epoch: CommandEpoch, now: Nanos) {
        if self.progress.is_collected(id) {
            return;
        }
        let entry = self.entry(id, now);
        entry.observed = entry.observed.max(epoch.round);
        if self.leading.get(id).is_some_and(|leading| leading.epoch < epoch) {
            self.leading.remove(id);
        }
    }

    /// Takes over what has not come to its end in time.
    pub(super) fn recover_suspected(&mut self, out: &mut Effects) {
        let any = self.keeps(PobSwitch::RecoversUnknown);
        let [own, of_others] = [PobSwitch::SuspectsOwn, PobSwitch::SuspectsOthers];
        for id in self.suspected.due(out.now) {
            let is_known = any || self.entries[&id].stored.status != CommandStatus::Unknown;
            let is_suspected =
                is_known && self.keeps(if id.leader == self.me { own } else { of_others });
            match is_suspected && !self.leading.contains(id) {
                true => self.take_over(id, out),
                false => self.postpone(id, out.now), // It is led here.
            }
        }
    }

    /// Asks those again who have not answered.
    pub(super) fn ask_again(&mut self, out: &mut Effects) {
        let Some(late) = out.now.0.checked_sub(self.settings.retry_after.0) else { return };
        for id in self.leading.asked_until(Nanos(late)) {
            self.decide(id, out); // Perhaps it has waited long enough for a decision at once.
            let promised = self.entries.get(&id).expect("who leads has an entry").epoch;
            let Some(leading) = self.leading.get_mut(id) else { continue };
            if promised > leading.epoch {
                self.leading.remove(id); // It has promised somebody else.
                continue;
            }
            let leading = leading.clone();
            self.leading.ask(id, out.now);
            if !self.keeps(PobSwitch::AsksAgain) {
                continue;
            }
            let message = self.question(id, &leading);
            for to in self.others().filter(|to| !leading.has_answer_of(*to)) {
                out.send(to, message.clone());
            }
        }
    }

    /// What a member is asked of a command that this one leads.
    fn question(&self, id: CommandId, leading: &LedCommand) -> Message {
        let entry = self.entries.get(&id).expect("who leads has an entry");
        let Stored { content, position, dependencies, .. } = entry.stored.clone();
        let (epoch, command) = (leading.epoch, content.command().cloned());
        match leading.phase {
            LeaderPhase::Preparing { .. } => Message::Prepare { id, epoch },
            LeaderPhase::Accepting { .. } => {
                Message::Accept(Accept { id, command, epoch, position, dependencies })
            }
            LeaderPhase::Proposing { .. } => {
                let command = command.expect("who proposes a command knows what it says");
                Message::Propose(Propose { id, command, epoch, position, dependencies })
            }
        }
    }
}
