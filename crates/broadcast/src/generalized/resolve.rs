//! The classic round: the leader orders commands on which members do not agree.

use std::collections::BTreeSet;

use super::gather::GatheredVotes;
use super::message::{GroupBallot, LearningPhase, Message, Record};
use super::{Effects, Generalized, GeneralizedSwitch};
use crate::command::{Command, CommandId, MemberId};
use crate::dependencies::OrderedAfter;
use crate::id_set::IdSet;

impl Generalized {
    /// Goes on with a command of which something was gathered.
    pub(super) fn decide(&mut self, id: CommandId, out: &mut Effects) {
        let Some(gathered) = self.gathering.get(id) else { return };
        let instance = &self.instances[&id];
        if instance.is_learned() {
            return;
        }
        if instance.is_accepted_in(gathered.ballot) {
            if gathered.accepted.len() >= self.quorums.majority {
                let value = instance.stored.ordered();
                self.learn(id, value, out);
            }
            return;
        }
        let Some(command) = &instance.stored.value.command else { return };
        if let Some(dependencies) = self.agreed(gathered) {
            let value = OrderedAfter { command: Some(command.clone()), dependencies };
            return self.learn(id, value, out);
        }
        if self.is_leading() && gathered.ballot == self.ballot.current {
            self.resolve(id, out);
        }
    }

    /// What a fast quorum agrees on.
    fn agreed(&self, gathered: &GatheredVotes) -> Option<IdSet> {
        if gathered.votes.len() < self.quorums.fast {
            return None;
        }
        if !self.keeps(GeneralizedSwitch::ComparesVotes) {
            return Some(IdSet::in_all_but(gathered.votes.values(), gathered.votes.len() - 1));
        }
        let (count, agreed) = gathered.most_agreed();
        agreed.filter(|_| count >= self.quorums.fast).cloned()
    }

    /// Orders a command that is not chosen at once, or not in time.
    fn resolve(&mut self, id: CommandId, out: &mut Effects) {
        let gathered = self.gathering.get(id).expect("it is gathered");
        if gathered.votes.len() < self.quorums.majority {
            return;
        }
        let (count, agreed) = gathered.most_agreed();
        let missing = |member: &MemberId| !gathered.votes.contains_key(member);
        let all = (0..self.quorums.members as u16).map(MemberId);
        let missing: BTreeSet<MemberId> = all.filter(missing).collect();
        // Votes that have not come may make a fast quorum of what most agree on.
        let may_be_chosen = count + missing.len() >= self.quorums.fast;
        if may_be_chosen {
            let awaited = missing.difference(&self.silent).count();
            let is_late = gathered.since + self.settings.fast_within <= out.now;
            if count + awaited >= self.quorums.fast && !is_late {
                return;
            }
        }
        let agreed = agreed.filter(|_| may_be_chosen).cloned();
        let dependencies = match agreed {
            Some(agreed) if !self.contradicts(id, &agreed, &gathered.collected) => agreed,
            _ => self.ordered_now(id, gathered),
        };
        if may_be_chosen {
            self.silent.extend(missing);
        }
        let command = self.instances[&id].stored.value.command.clone();
        self.begin_accept(id, OrderedAfter { command, dependencies }, out);
    }

    /// What a command that is not chosen comes after, by its leader: what it has ordered already,
    /// and what may be chosen without this one before it: that can only be what so many voters had
    /// before it that those who had not are no fast quorum's complement.
    fn ordered_now(&self, id: CommandId, gathered: &GatheredVotes) -> IdSet {
        let spare = self.quorums.members - self.quorums.fast;
        let mut dependencies = IdSet::in_all_but(gathered.votes.values(), spare);
        if self.keeps(GeneralizedSwitch::KeepsOwnOrder) {
            dependencies.extend(&self.fixed_conflicts(id));
        }
        dependencies
    }

    /// Whether the leader has ordered something before a command that would not be before it here,
    /// nor after it: then that is not chosen.
    /// What all have delivered before is not in the way of anything.
    pub(super) fn contradicts(
        &self,
        id: CommandId,
        dependencies: &IdSet,
        collected: &[u64],
    ) -> bool {
        let mut fixed = self.fixed_conflicts(id);
        fixed.remove_up_to(collected);
        let comes_after = |it| self.instances[&it].stored.value.dependencies.contains(id);
        let contradicts = fixed.iter_beyond(dependencies).any(|it| !comes_after(it));
        contradicts && self.keeps(GeneralizedSwitch::KeepsOwnOrder)
    }

    /// What conflicts with a command and is learned, or ordered in this ballot.
    pub(super) fn fixed_conflicts(&self, id: CommandId) -> IdSet {
        let command = self.instances.get(&id).and_then(|it| it.stored.value.command.as_ref());
        command.map_or_else(IdSet::new, |command| self.fixed.of(id, &command.objects).ids)
    }

    /// Has members accept an order, oneself first.
    pub(super) fn begin_accept(&mut self, id: CommandId, value: OrderedAfter, out: &mut Effects) {
        let (me, ballot) = (self.me, self.ballot.current);
        self.store(Record::Accepted { id, ballot, value: value.clone() }, out);
        let gathered = self.gather(id, out.now);
        gathered.is_in(ballot, out.now);
        gathered.accepted.insert(me);
        self.gathering.ask(id, out.now);
        self.send_to_others(&Message::Accept { id, ballot, value }, out);
        self.decide(id, out);
    }

    pub(super) fn on_accept(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, GroupBallot),
        value: OrderedAfter,
        out: &mut Effects,
    ) {
        if self.is_answered_late(from, id, out) || self.is_superseded(from, ballot, out) {
            return;
        }
        if !self.instance(id, out.now).is_accepted_in(ballot) {
            self.store(Record::Accepted { id, ballot, value }, out);
        }
        let answer = Message::AckAccept { id, ballot };
        out.send(from, answer.clone());
        if id.leader == self.me {
            self.count_accept(self.me, (id, ballot), out);
            self.count_accept(from, (id, ballot), out);
        } else if id.leader != from {
            out.send(id.leader, answer);
        }
    }

    pub(super) fn count_accept(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, GroupBallot),
        out: &mut Effects,
    ) {
        let is_open = !self.progress.is_collected(id) && !self.instance(id, out.now).is_learned();
        if !is_open || !self.gathers(id) {
            return;
        }
        let now = out.now;
        let gathered = self.gather(id, now);
        if gathered.is_in(ballot, now) {
            gathered.accepted.insert(from);
            self.decide(id, out);
        }
    }

    pub(super) fn apply_accept(
        &mut self,
        id: CommandId,
        ballot: GroupBallot,
        value: OrderedAfter,
        out: &mut Effects,
    ) {
        self.join(ballot, out.now);
        self.postpone(id, out.now);
        let OrderedAfter { command, mut dependencies } = value;
        dependencies.remove(id);
        if let Some(command) = &command {
            self.know(id, command);
        }
        let instance = self.instance(id, out.now);
        instance.stored.phase = LearningPhase::Accepted;
        instance.stored.ballot = ballot;
        instance.stored.is_nothing = command.is_none();
        instance.stored.value.dependencies = dependencies;
        self.fix(id);
        self.find_missing(id);
    }

    /// The leader asks those again who have not answered.
    pub(super) fn ask(&mut self, id: CommandId, out: &mut Effects) {
        let (me, ballot) = (self.me, self.ballot.current);
        let instance = self.instance(id, out.now);
        if instance.is_accepted_in(ballot) {
            let value = instance.stored.ordered();
            let accepted = self.gather(id, out.now).accepted.clone();
            for to in self.me.others(self.quorums.members).filter(|to| !accepted.contains(to)) {
                out.send(to, Message::Accept { id, ballot, value: value.clone() });
            }
            return;
        }
        let command = instance.stored.value.command.clone();
        match &command {
            Some(_) => _ = self.vote(id, None, false, out),
            None => {
                if self.instance(id, out.now).refused != Some(ballot) {
                    self.store(Record::Refused { id, ballot }, out);
                }
                self.gather(id, out.now).refused.insert(me);
                self.give_up_unknown(id, out);
            }
        }
        let Some(gathered) = self.gathering.get(id) else { return };
        let is_open = !self.instances[&id].is_accepted_in(ballot);
        let voted: BTreeSet<MemberId> = gathered.votes.keys().copied().collect();
        // Who has voted may know what the command says.
        let is_asked = |to: &MemberId| is_open && (command.is_none() || !voted.contains(to));
        for to in self.me.others(self.quorums.members).filter(is_asked) {
            out.send(to, Message::Ask { id, ballot, command: command.clone() });
        }
    }

    pub(super) fn on_ask(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, GroupBallot),
        command: Option<Command>,
        out: &mut Effects,
    ) {
        if self.is_answered_late(from, id, out) || self.is_superseded(from, ballot, out) {
            return;
        }
        if ballot > self.ballot.current {
            return; // It is to start in that one first.
        }
        let shown = command.is_none();
        if command.is_some() {
            self.instance(id, out.now).refused = None; // What was refused is asked for anew.
        }
        let instance = self.instance(id, out.now);
        let has_refused = instance.refused == Some(ballot);
        let is_unknown = instance.stored.phase == LearningPhase::Named && shown;
        if is_unknown && !has_refused {
            self.store(Record::Refused { id, ballot }, out);
        }
        if is_unknown || has_refused {
            return out.send(from, Message::Refuse { id, ballot });
        }
        if !self.vote(id, command, shown, out) {
            self.answer_again(from, id, shown, out);
        }
    }

    pub(super) fn on_refuse(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, GroupBallot),
        out: &mut Effects,
    ) {
        let is_mine = self.is_leading() && ballot == self.ballot.current;
        if is_mine && self.gathering.contains(id) {
            self.gather(id, out.now).refused.insert(from);
            self.give_up_unknown(id, out);
        }
    }

    /// A command of which so many know nothing that it is not chosen, nor will be, is nothing.
    fn give_up_unknown(&mut self, id: CommandId, out: &mut Effects) {
        let Some(gathered) = self.gathering.get(id) else { return };
        let instance = &self.instances[&id];
        let is_unknown = instance.stored.phase == LearningPhase::Named && !instance.is_known();
        if is_unknown && gathered.refused.len() >= self.quorums.majority {
            self.begin_accept(id, OrderedAfter::nothing(), out);
        }
    }
}
