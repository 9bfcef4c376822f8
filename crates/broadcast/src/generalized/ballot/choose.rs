//! What the leader of a new ballot orders: what may have been chosen as it was, and the rest anew.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::PreparedAnswer;
use crate::command::{CommandId, MemberId};
use crate::dependencies::OrderedAfter;
use crate::generalized::gather::most_equal;
use crate::generalized::message::{GroupBallot, LearningPhase, Record, ReportedVote, StoredVote};
use crate::generalized::{Effects, Generalized, GeneralizedSwitch};
use crate::id_set::IdSet;

/// What members have of each command.
type Reports = BTreeMap<CommandId, Vec<StoredVote>>;

/// What may have been chosen, in which ballot, and whether its leader had ordered it.
struct ReportedChoice {
    rank: (GroupBallot, bool),
    id: CommandId,
    value: OrderedAfter,
}

impl Generalized {
    /// Orders all that members have, and starts the ballot.
    ///
    /// What was chosen is among what is kept: of the last ballot in which somebody voted on it, the
    /// leader's order, or what so many voted for that the others may have made them a fast quorum.
    /// Of two that contradict each other the one of the later ballot is kept, or in one ballot that
    /// which its leader ordered: the other cannot have been chosen.
    pub(super) fn choose(
        &mut self,
        answers: BTreeMap<MemberId, PreparedAnswer>,
        out: &mut Effects,
    ) {
        let answered = answers.len() + 1;
        let mut collected = self.progress.collected().to_vec();
        for answer in answers.values() {
            for (known, new) in collected.iter_mut().zip(&answer.collected) {
                *known = (*known).max(*new);
            }
        }
        let reports = self.take_reports(answers, out);
        let (mut kept, mut free) = (Vec::new(), Vec::new());
        for (id, stored) in reports {
            match self.reported_choice(&stored, answered, &collected) {
                Some((rank, value)) => kept.push(ReportedChoice { rank, id, value }),
                None => free.push(id),
            }
        }
        kept.sort_by_key(|it| (Reverse(it.rank), it.value.dependencies.len(), it.id));
        for ReportedChoice { id, value, .. } in kept {
            let is_something = value.command.is_some();
            match is_something && self.contradicts(id, &value.dependencies, &collected) {
                true => free.push(id),
                false => self.begin_accept(id, value, out),
            }
        }
        self.order_anew(free, out);
        self.start(out);
    }

    /// What members have of each command, this one too; what some have learned is learned.
    fn take_reports(
        &mut self,
        answers: BTreeMap<MemberId, PreparedAnswer>,
        out: &mut Effects,
    ) -> Reports {
        let is_open =
            |it: &StoredVote| (LearningPhase::Known..LearningPhase::Learned).contains(&it.phase);
        let own = self.instances.iter().filter(|(_, it)| is_open(&it.stored));
        let mut reports: Reports = own.map(|(id, it)| (*id, vec![it.stored.clone()])).collect();
        for ReportedVote { id, stored } in answers.into_values().flat_map(|it| it.stored) {
            match stored.phase {
                LearningPhase::Learned => self.on_learned(id, stored.ordered(), out),
                _ => reports.entry(id).or_default().push(stored),
            }
        }
        reports.retain(|id, _| !self.progress.ended().contains(*id));
        for (id, stored) in &reports {
            let command = stored.iter().find_map(|it| it.value.command.clone());
            let is_known = self.instance(*id, out.now).is_known();
            if let Some(command) = command.filter(|_| !is_known) {
                self.store(Record::Known { id: *id, command }, out);
            }
        }
        reports
    }

    /// What of a command may have been chosen.
    fn reported_choice(
        &self,
        stored: &[StoredVote],
        answered: usize,
        collected: &[u64],
    ) -> Option<((GroupBallot, bool), OrderedAfter)> {
        let cast = stored.iter().filter(|it| it.phase >= LearningPhase::Voted);
        let last = cast.clone().map(|it| it.ballot).max()?;
        if !self.keeps(GeneralizedSwitch::KeepsReported) {
            return None;
        }
        let in_last = cast.filter(|it| it.ballot == last);
        let accepted = in_last.clone().find(|it| it.phase == LearningPhase::Accepted);
        if let Some(accepted) = accepted {
            return Some(((last, true), accepted.ordered()));
        }
        let sets = in_last.clone().map(|it| {
            let mut dependencies = it.value.dependencies.clone();
            dependencies.remove_up_to(collected);
            dependencies
        });
        let sets: Vec<IdSet> = sets.collect();
        let (count, agreed) = most_equal(sets.iter());
        let silent = self.quorums.members - answered;
        let command = in_last.clone().find_map(|it| it.value.command.clone());
        let dependencies = agreed.filter(|_| count + silent >= self.quorums.fast)?.clone();
        Some(((last, false), OrderedAfter { command, dependencies }))
    }

    /// Orders what was not chosen: one after the other, after all that is ordered.
    fn order_anew(&mut self, mut free: Vec<CommandId>, out: &mut Effects) {
        free.sort_unstable();
        for id in free {
            let command = self.instance(id, out.now).stored.value.command.clone();
            if command.is_some() {
                let dependencies = self.fixed_conflicts(id);
                self.begin_accept(id, OrderedAfter { command, dependencies }, out);
            }
        }
    }
}
