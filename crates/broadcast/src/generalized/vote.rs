//! The fast round: members vote on a command as they come to know it.

use super::message::{FreeVote, GroupBallot, LearningPhase, Message, Record};
use super::{Effects, Generalized};
use crate::command::{Command, CommandId, MemberId};
use crate::dependencies::OrderedAfter;

impl Generalized {
    /// Has all vote on a command of this member, oneself first.
    pub(super) fn begin_vote(&mut self, id: CommandId, command: Command, out: &mut Effects) {
        match self.has_started() {
            true => self.store_vote(id, &command, out),
            false => self.store(Record::Known { id, command: command.clone() }, out),
        }
        self.gather(id, out.now);
        self.send_proposal(id, &command, out);
        self.decide(id, out);
    }

    /// Sends a command of this member to those who have not voted.
    pub(super) fn send_proposal(&mut self, id: CommandId, command: &Command, out: &mut Effects) {
        let leader = self.ballot.current.member;
        let mut own = self.own_vote(id);
        let voted = self.gathering.get(id).map(|gathered| &gathered.votes);
        let missing = |to: &MemberId| voted.is_none_or(|voted| !voted.contains_key(to));
        for to in self.me.others(self.quorums.members).filter(missing) {
            let vote = if to == leader { own.take() } else { None };
            out.send(to, Message::Propose { id, command: command.clone(), vote });
        }
    }

    pub(super) fn on_propose(
        &mut self,
        from: MemberId,
        id: CommandId,
        (command, vote): (Command, Option<FreeVote>),
        out: &mut Effects,
    ) {
        if self.is_answered_late(from, id, out) {
            return;
        }
        if !self.vote(id, Some(command), false, out) {
            self.answer_again(from, id, false, out);
        }
        if let Some(vote) = vote {
            self.count_vote(from, id, vote, out);
        }
    }

    /// Whether this member may vote on a command now.
    pub(super) fn can_vote(&self, id: CommandId) -> bool {
        let ballot = self.ballot.current;
        let is_open = self.instances.get(&id).is_none_or(|it| {
            let is_new = !it.is_voted_in(ballot) && !it.is_accepted_in(ballot);
            // The leader itself knows whether it has made something of that.
            let is_free = it.refused != Some(ballot) || self.is_leading();
            is_new && is_free && !it.is_learned()
        });
        self.has_started() && is_open
    }

    /// Writes down that a command comes after all that conflicts with it here.
    fn store_vote(&mut self, id: CommandId, command: &Command, out: &mut Effects) {
        let dependencies = self.index.of(id, &command.objects).ids;
        let value = OrderedAfter { command: Some(command.clone()), dependencies };
        self.store(Record::Voted { id, ballot: self.ballot.current, value }, out);
    }

    pub(super) fn apply_vote(
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
            self.own.take(id, command);
            self.know(id, command);
        }
        let instance = self.instance(id, out.now);
        instance.stored.phase = LearningPhase::Voted;
        instance.stored.ballot = ballot;
        instance.stored.is_nothing = false;
        instance.stored.value.dependencies = dependencies;
        instance.refused = None;
        self.fix(id);
    }

    /// Votes on a command, of which somebody says what it says or that is known, and says so.
    /// False: it has voted, or cannot.
    pub(super) fn vote(
        &mut self,
        id: CommandId,
        command: Option<Command>,
        shown: bool,
        out: &mut Effects,
    ) -> bool {
        let known = self.instance(id, out.now).stored.value.command.clone();
        if !self.can_vote(id) {
            if let (None, Some(command)) = (known, command) {
                self.store(Record::Known { id, command }, out);
            }
            return false;
        }
        let Some(command) = known.or(command) else { return false };
        self.store_vote(id, &command, out);
        let vote = self.own_vote(id).expect("it has voted");
        let leader = self.ballot.current.member;
        let is_asked = |to: &MemberId| *to == leader || *to == id.leader;
        for to in self.me.others(self.quorums.members).filter(is_asked) {
            let command = (shown && to == leader).then(|| command.clone());
            out.send(to, Message::Vote { id, vote: vote.clone(), command });
        }
        self.count_vote(self.me, id, vote, out);
        true
    }

    /// Votes on all that is known and has no place yet: a ballot has begun.
    pub(super) fn vote_on_all(&mut self, out: &mut Effects) {
        let mut open: Vec<CommandId> = self.suspected.keys().collect();
        open.sort_unstable();
        for id in open {
            if self.instances.get(&id).is_some_and(|it| it.is_known()) {
                self.vote(id, None, false, out);
            }
        }
    }

    /// Says again what this member has said of a command.
    pub(super) fn answer_again(
        &mut self,
        to: MemberId,
        id: CommandId,
        shown: bool,
        out: &mut Effects,
    ) {
        let ballot = self.ballot.current;
        if let Some(vote) = self.own_vote(id) {
            let known = self.instances.get(&id).filter(|_| shown);
            let command = known.and_then(|it| it.stored.value.command.clone());
            out.send(to, Message::Vote { id, vote, command });
        } else if self.instances.get(&id).is_some_and(|it| it.is_accepted_in(ballot)) {
            out.send(to, Message::AckAccept { id, ballot });
        }
    }

    pub(super) fn on_vote(
        &mut self,
        from: MemberId,
        id: CommandId,
        (vote, command): (FreeVote, Option<Command>),
        out: &mut Effects,
    ) {
        if self.progress.is_collected(id) || self.instance(id, out.now).is_learned() {
            return;
        }
        if let Some(command) = command {
            self.vote(id, Some(command), false, out);
        }
        self.count_vote(from, id, vote, out);
    }

    pub(super) fn count_vote(
        &mut self,
        from: MemberId,
        id: CommandId,
        vote: FreeVote,
        out: &mut Effects,
    ) {
        if !self.gathers(id) || self.instance(id, out.now).is_learned() {
            return;
        }
        let now = out.now;
        let gathered = self.gather(id, now);
        if gathered.is_in(vote.ballot, now) {
            gathered.insert(from, vote);
            self.decide(id, out);
        }
    }
}
