//! Members vote in a new ballot once they know what its leader has ordered, and never on that.

use std::collections::BTreeSet;

use muesli_core::Nanos;

use super::{SHOWN_AT_ONCE, StartedMembers};
use crate::command::{CommandId, MemberId};
use crate::generalized::message::{GroupBallot, Message, Record};
use crate::generalized::{Effects, Generalized, GeneralizedSwitch};
use crate::id_set::IdSet;

/// It is asked so many doublings of the usual time later at most.
const LESS_OFTEN_MOST: u32 = 6;

impl Generalized {
    /// Has all vote in the ballot that this member leads, oneself first.
    pub(super) fn start(&mut self, out: &mut Effects) {
        let ballot = self.ballot.current;
        self.store(Record::Started { ballot, missing: IdSet::new() }, out);
        self.ask_to_start(BTreeSet::from([self.me]), 0, out);
    }

    fn ask_to_start(&mut self, started: BTreeSet<MemberId>, attempts: u32, out: &mut Effects) {
        let ballot = self.ballot.current;
        let known = self.ordered_in(ballot);
        for to in self.me.others(self.quorums.members).filter(|to| !started.contains(to)) {
            out.send(to, Message::Start { ballot, known: known.clone() });
        }
        let (members, asked) = (started, out.now);
        self.ballot.started = Some(StartedMembers { members, asked, attempts });
    }

    /// What has a place here under a ballot, or is nothing.
    fn ordered_in(&self, ballot: GroupBallot) -> IdSet {
        let mut ordered = self.progress.ended().clone();
        let is_accepted = |id: &CommandId| self.instances[id].is_accepted_in(ballot);
        self.suspected.keys().filter(is_accepted).for_each(|id| _ = ordered.insert(id));
        ordered
    }

    /// Asks those again that have not answered, less often each time: they may be dead.
    pub(in crate::generalized) fn start_again(&mut self, out: &mut Effects) {
        if !self.is_leading() || self.ballot.current.round == 0 {
            return;
        }
        let (started, attempts) = match &self.ballot.started {
            Some(it) if it.members.len() == self.quorums.members => return,
            Some(it) => (it.members.clone(), it.attempts + 1),
            None => (BTreeSet::from([self.me]), 0), // After a crash.
        };
        let doublings = match self.keeps(GeneralizedSwitch::AsksLessOften) {
            true => attempts.saturating_sub(1).min(LESS_OFTEN_MOST),
            false => 0,
        };
        let times = 1 << doublings;
        let wait = self.settings.retry_after.0.saturating_mul(times);
        let asked = self.ballot.started.as_ref().map(|it| it.asked);
        if asked.is_none_or(|asked| asked + Nanos(wait) <= out.now) {
            self.ask_to_start(started, attempts, out);
        }
    }

    /// A member lives: if it has not said that it votes, it is asked as soon as others are.
    pub(in crate::generalized) fn observe(&mut self, from: MemberId) {
        if let Some(started) = self.ballot.started.as_mut()
            && !started.members.contains(&from)
        {
            started.attempts = 0;
        }
    }

    pub(in crate::generalized) fn on_start(
        &mut self,
        from: MemberId,
        ballot: GroupBallot,
        known: &IdSet,
        out: &mut Effects,
    ) {
        if self.is_superseded(from, ballot, out) {
            return;
        }
        if ballot > self.ballot.current || self.ballot.missing.is_none() {
            let here = self.ordered_in(ballot);
            let missing = match self.keeps(GeneralizedSwitch::StartsComplete) {
                true => known.without(&here),
                false => IdSet::new(),
            };
            self.store(Record::Started { ballot, missing }, out);
        }
        let missing = self.ballot.missing.clone().expect("it has started");
        out.send(from, Message::Started { ballot, missing });
    }

    pub(in crate::generalized) fn apply_start(
        &mut self,
        ballot: GroupBallot,
        missing: IdSet,
        now: Nanos,
    ) {
        self.join(ballot, now);
        self.ballot.missing = Some(missing);
    }

    pub(in crate::generalized) fn on_started(
        &mut self,
        from: MemberId,
        ballot: GroupBallot,
        missing: &IdSet,
        out: &mut Effects,
    ) {
        if !self.is_leading() || ballot != self.ballot.current {
            return;
        }
        if missing.is_empty() {
            if let Some(started) = &mut self.ballot.started {
                started.members.insert(from);
            }
            return;
        }
        let shown = self.instances.keys().filter(|id| missing.contains(**id));
        let shown: Vec<CommandId> = shown.take(SHOWN_AT_ONCE).copied().collect();
        for id in shown {
            let instance = &self.instances[&id];
            let value = instance.stored.ordered();
            if instance.is_learned() {
                out.send(from, Message::Learned { id, value });
            } else if instance.is_accepted_in(ballot) {
                out.send(from, Message::Accept { id, ballot, value });
            }
        }
    }
}
