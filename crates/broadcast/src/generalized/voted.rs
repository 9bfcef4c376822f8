//! What a member knows of a command.

use muesli_core::Nanos;

use super::message::{GroupBallot, LearningPhase, StoredVote};
use crate::command::CommandId;
use crate::dependencies::OrderedAfter;
use crate::id_set::IdSet;

/// A command at a member.
///
/// Invariants: what was voted on, or is to be delivered, is known; it does not come after itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct VotedCommand {
    pub stored: StoredVote,
    /// A ballot in which this member will not vote on it.
    pub refused: Option<GroupBallot>,
    /// Whether what conflicts with it is ordered after it by who leads here.
    pub is_fixed: bool,
    /// A command before it that is not learned, for which it waits.
    pub awaits: Option<CommandId>,
    /// When somebody is to see to it, if it has not come to its end by then; 0: it has.
    pub suspected: Nanos,
    /// How often a ballot was begun for it from here.
    pub attempts: u32,
}

impl VotedCommand {
    pub fn new(first: GroupBallot, suspected: Nanos) -> VotedCommand {
        VotedCommand {
            stored: StoredVote {
                phase: LearningPhase::Named,
                ballot: first,
                value: OrderedAfter { command: None, dependencies: IdSet::new() },
                is_nothing: false,
            },
            refused: None,
            is_fixed: false,
            awaits: None,
            suspected,
            attempts: 0,
        }
    }

    pub fn is_learned(&self) -> bool {
        self.stored.phase == LearningPhase::Learned
    }

    pub fn is_known(&self) -> bool {
        self.stored.value.command.is_some()
    }

    /// Whether a leader's order of it was accepted in a ballot.
    pub fn is_accepted_in(&self, ballot: GroupBallot) -> bool {
        self.stored.phase == LearningPhase::Accepted && self.stored.ballot == ballot
    }

    /// Whether this member has voted on it in a ballot, and accepted nothing since.
    pub fn is_voted_in(&self, ballot: GroupBallot) -> bool {
        self.stored.phase == LearningPhase::Voted && self.stored.ballot == ballot
    }

    /// Whether it has a place under this ballot, or is nothing.
    pub fn is_ordered_in(&self, ballot: GroupBallot) -> bool {
        self.is_learned() || self.is_accepted_in(ballot)
    }

    /// Whether others are ordered by where it is, under this ballot.
    pub fn fixes(&self, ballot: GroupBallot) -> bool {
        self.is_ordered_in(ballot) && self.is_known() && !self.stored.is_nothing
    }

    /// What of its invariants does not hold.
    pub fn unsound(&self, id: CommandId) -> Option<&'static str> {
        let StoredVote { phase, value, is_nothing, .. } = &self.stored;
        let depends = value.dependencies.contains(id);
        let is_ordered = *phase >= LearningPhase::Accepted;
        let may_be_unknown = *phase == LearningPhase::Named || (is_ordered && *is_nothing);
        let conditions = [
            (!depends, "it comes after itself"),
            (self.is_known() || may_be_unknown, "what is ordered is something"),
            (!*is_nothing || is_ordered, "it is nothing too early"),
            (self.awaits.is_none() || self.is_learned(), "it waits too early"),
        ];
        conditions.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
    }

    pub fn assert_invariants(&self, id: CommandId) {
        assert_eq!(self.unsound(id), None, "{id}: {self:?}");
    }
}
