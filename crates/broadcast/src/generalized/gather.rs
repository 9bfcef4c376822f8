//! What a command's proposer, and the leader, gather of it.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Nanos;

use super::Generalized;
use super::message::{FreeVote, GroupBallot};
use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;

/// Votes on a command, in one ballot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GatheredVotes {
    pub ballot: GroupBallot,
    /// By member: what comes before it, but for what is forgotten by one of them.
    pub votes: BTreeMap<MemberId, IdSet>,
    /// Up to where one of them has forgotten what all have delivered, by proposer.
    pub collected: Vec<u64>,
    /// Who will not vote, as they know nothing of it.
    pub refused: BTreeSet<MemberId>,
    /// Who has accepted the leader's order.
    pub accepted: BTreeSet<MemberId>,
    pub since: Nanos,
}

impl GatheredVotes {
    fn new(ballot: GroupBallot, members: usize, now: Nanos) -> GatheredVotes {
        GatheredVotes {
            ballot,
            votes: BTreeMap::new(),
            collected: vec![0; members],
            refused: BTreeSet::new(),
            accepted: BTreeSet::new(),
            since: now,
        }
    }

    /// Something comes of a ballot. False: that one is over.
    pub fn is_in(&mut self, ballot: GroupBallot, now: Nanos) -> bool {
        if ballot > self.ballot {
            *self = GatheredVotes::new(ballot, self.collected.len(), now);
        }
        ballot == self.ballot
    }

    /// What one of them has forgotten all have delivered, before this command: whether others name
    /// it makes no difference.
    pub fn insert(&mut self, from: MemberId, vote: FreeVote) {
        let FreeVote { mut dependencies, collected, .. } = vote;
        let mut is_more = false;
        for (known, new) in self.collected.iter_mut().zip(&collected) {
            is_more |= new > known;
            *known = (*known).max(*new);
        }
        if is_more {
            self.votes.values_mut().for_each(|it| it.remove_up_to(&self.collected));
        }
        dependencies.remove_up_to(&self.collected);
        self.votes.insert(from, dependencies);
    }

    /// What most members agree on, and how many do.
    pub fn most_agreed(&self) -> (usize, Option<&IdSet>) {
        most_equal(self.votes.values())
    }
}

/// What is there most often, and how often.
pub(super) fn most_equal<'a>(
    sets: impl Iterator<Item = &'a IdSet> + Clone,
) -> (usize, Option<&'a IdSet>) {
    let mut most = (0, None);
    for set in sets.clone() {
        let count = sets.clone().filter(|it| *it == set).count();
        if count > most.0 {
            most = (count, Some(set));
        }
    }
    most
}

impl Generalized {
    /// Whether this member gathers votes on a command.
    pub(super) fn gathers(&self, id: CommandId) -> bool {
        id.leader == self.me || self.is_leading()
    }

    /// What this member gathers of a command; it begins with what it has itself.
    pub(super) fn gather(&mut self, id: CommandId, now: Nanos) -> &mut GatheredVotes {
        let ballot = self.ballot.current;
        self.instance(id, now);
        if !self.gathering.contains(id) {
            let mut gathered = GatheredVotes::new(ballot, self.quorums.members, now);
            if self.instances[&id].is_accepted_in(ballot) {
                gathered.accepted.insert(self.me);
            }
            if let Some(vote) = self.own_vote(id) {
                gathered.insert(self.me, vote);
            }
            self.gathering.insert(id, gathered, now);
        }
        self.gathering.get_mut(id).expect("it is there now")
    }

    /// This member's own vote on a command in its ballot.
    pub(super) fn own_vote(&self, id: CommandId) -> Option<FreeVote> {
        let ballot = self.ballot.current;
        let instance = self.instances.get(&id).filter(|it| it.is_voted_in(ballot))?;
        let dependencies = instance.stored.value.dependencies.clone();
        Some(FreeVote { ballot, dependencies, collected: self.progress.collected().to_vec() })
    }
}
