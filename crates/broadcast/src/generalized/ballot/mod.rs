//! A new ballot: somebody else leads.

mod choose;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use muesli_core::Nanos;
use muesli_core::wire::encoded_bytes;

use crate::command::{CommandId, MemberId};
use crate::generalized::message::{GroupBallot, LearningPhase, Message, Record, ReportedVote};
use crate::generalized::{Effects, Generalized};
use crate::id_set::IdSet;

/// So many commands that it has missed are sent at once to a member that leads, or votes.
const SHOWN_AT_ONCE: usize = 256;

/// Of so many bytes, or one command more, is a part of what a member has.
const PREPARED_BYTES: usize = 16 * 1024;

/// In which ballot a member is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BallotState {
    /// Nothing of an earlier one is taken.
    pub current: GroupBallot,
    /// What this member is to know before it votes in it; `None`: its leader has not begun.
    pub missing: Option<IdSet>,
    /// The largest round that was observed.
    pub observed: u32,
    /// The ballot that this member begins.
    pub begun: Option<BegunBallot>,
    /// Who has answered this member, which leads, that it has started.
    pub started: Option<StartedMembers>,
}

/// A ballot that a member begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BegunBallot {
    /// Who has said all.
    pub answered: BTreeSet<MemberId>,
    /// What others have, as far as they have said.
    pub answers: BTreeMap<MemberId, PreparedAnswer>,
    pub asked: Nanos,
}

/// What a member has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PreparedAnswer {
    /// Up to this command; `None`: nothing yet, or all.
    pub next: Option<CommandId>,
    /// Up to where it has forgotten what all have delivered.
    pub collected: Vec<u64>,
    pub stored: Vec<ReportedVote>,
}

/// Members that vote in a ballot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StartedMembers {
    pub members: BTreeSet<MemberId>,
    pub asked: Nanos,
    /// How often the others were asked again: each time it is longer until the next.
    pub attempts: u32,
}

impl BallotState {
    /// The first one, which needs no beginning.
    pub fn first(leader: MemberId) -> BallotState {
        BallotState {
            current: GroupBallot { round: 0, member: leader },
            missing: Some(IdSet::new()),
            observed: 0,
            begun: None,
            started: None,
        }
    }
}

impl Generalized {
    /// Whether this member votes in its ballot.
    pub(super) fn has_started(&self) -> bool {
        self.ballot.missing.as_ref().is_some_and(IdSet::is_empty)
    }

    /// Whether this member leads.
    pub(super) fn is_leading(&self) -> bool {
        self.ballot.current.member == self.me && self.has_started()
    }

    /// Whether this member begins a ballot.
    pub(super) fn is_beginning(&self) -> bool {
        self.ballot.begun.is_some()
    }

    /// Takes nothing of an earlier ballot any more.
    pub(super) fn join(&mut self, ballot: GroupBallot, now: Nanos) {
        if ballot <= self.ballot.current {
            return;
        }
        let observed = self.ballot.observed;
        let first = BallotState::first(ballot.member);
        self.ballot = BallotState { current: ballot, missing: None, observed, ..first };
        let open: Vec<CommandId> = self.suspected.keys().collect();
        for id in open {
            self.fix(id);
            self.postpone(id, now);
        }
    }

    /// Begins a ballot, as a command does not come to its end.
    pub(super) fn begin_ballot(&mut self, id: CommandId, out: &mut Effects) {
        self.instance(id, out.now).attempts += 1;
        let round = self.ballot.observed.max(self.ballot.current.round).saturating_add(1);
        let ballot = GroupBallot { round, member: self.me };
        self.store(Record::Prepared { ballot }, out);
        let (answered, answers) = (BTreeSet::new(), BTreeMap::new());
        self.ballot.begun = Some(BegunBallot { answered, answers, asked: out.now });
        let ended = self.progress.ended().clone();
        self.send_to_others(&Message::Prepare { ballot, ended, after: None }, out);
        self.finish_prepare(out);
    }

    pub(super) fn prepare_again(&mut self, late: Nanos, out: &mut Effects) {
        let ballot = self.ballot.current;
        let Some(begun) = &mut self.ballot.begun else { return };
        if begun.asked > late {
            return;
        }
        begun.asked = out.now;
        for to in self.me.others(self.quorums.members).filter(|to| !begun.answered.contains(to)) {
            let after = begun.answers.get(&to).and_then(|answer| answer.next);
            let ended = self.progress.ended().clone();
            out.send(to, Message::Prepare { ballot, ended, after });
        }
    }

    /// Whether somebody asks in a ballot that is over, which it learns.
    pub(super) fn is_superseded(
        &mut self,
        from: MemberId,
        ballot: GroupBallot,
        out: &mut Effects,
    ) -> bool {
        let current = self.ballot.current;
        if ballot < current {
            out.send(from, Message::Superseded { ballot: current });
        }
        ballot < current
    }

    pub(super) fn on_superseded(&mut self, ballot: GroupBallot) {
        self.ballot.observed = self.ballot.observed.max(ballot.round);
        if self.ballot.current < ballot {
            self.ballot.begun = None;
        }
    }

    pub(super) fn on_prepare(
        &mut self,
        from: MemberId,
        ballot: GroupBallot,
        (ended, after): (&IdSet, Option<CommandId>),
        out: &mut Effects,
    ) {
        if self.is_superseded(from, ballot, out) {
            return;
        }
        if ballot > self.ballot.current {
            self.store(Record::Prepared { ballot }, out);
        }
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let open = self
            .instances
            .range((first, Bound::Unbounded))
            .filter(|(id, it)| it.stored.phase >= LearningPhase::Known && !ended.contains(**id));
        let (mut stored, mut bytes, mut next) = (Vec::<ReportedVote>::new(), 0, None);
        for (id, it) in open {
            if bytes > PREPARED_BYTES {
                next = stored.last().map(|last| last.id);
                break;
            }
            let reported = ReportedVote { id: *id, stored: it.stored.clone() };
            bytes += encoded_bytes(&reported);
            stored.push(reported);
        }
        let collected = self.progress.collected().to_vec();
        out.send(from, Message::Prepared { ballot, after, next, collected, stored });
    }

    /// A member says what it has, a part after the other. Parts may be of different moments: after
    /// the first one it votes in no earlier ballot.
    pub(super) fn on_prepared(
        &mut self,
        from: MemberId,
        (ballot, after): (GroupBallot, Option<CommandId>),
        part: PreparedAnswer,
        out: &mut Effects,
    ) {
        let Some(begun) = self.ballot.begun.as_mut().filter(|_| ballot == self.ballot.current)
        else {
            return;
        };
        let answer = begun.answers.entry(from).or_default();
        if begun.answered.contains(&from) || answer.next != after {
            return; // It was said before.
        }
        answer.stored.extend(part.stored);
        answer.collected = part.collected;
        answer.next = part.next;
        if let Some(next) = part.next {
            let ended = self.progress.ended().clone();
            return out.send(from, Message::Prepare { ballot, ended, after: Some(next) });
        }
        begun.answered.insert(from);
        self.finish_prepare(out);
    }

    fn finish_prepare(&mut self, out: &mut Effects) {
        let answered = self.ballot.begun.as_ref().map_or(0, |begun| begun.answered.len() + 1);
        if answered >= self.quorums.recovery {
            let BegunBallot { answered, mut answers, .. } =
                self.ballot.begun.take().expect("found above");
            answers.retain(|member, _| answered.contains(member));
            self.choose(answers, out);
        }
    }
}
