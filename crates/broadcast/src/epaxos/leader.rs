//! What a member gathers that leads a command.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Nanos;

use super::message::{CommandBallot, StoredCommand};
use crate::command::MemberId;
use crate::dependencies::OrderedAfter;
use crate::id_set::IdSet;
use crate::quorums::Quorums;

/// How many members may be slow, or dead, where commands are committed at once: all that may be,
/// but no more than ⌈(f + 1) / 2⌉, with which 2 f + 1 members are enough.
pub(super) fn slow(quorums: &Quorums) -> usize {
    let f = quorums.failures();
    (f + 1).div_ceil(2).min(f)
}

/// What is waited for where another command may be in the way of one that is taken over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PendingValidation {
    /// What is to be kept.
    pub value: OrderedAfter,
    /// Those who have answered who takes it over.
    pub quorum: BTreeSet<MemberId>,
    /// So many of them have it as its proposer wanted.
    pub agreeing: usize,
    /// Of these: what may be in its way.
    pub answers: BTreeMap<MemberId, BTreeSet<super::message::Invalidating>>,
    /// Whether all have answered, and it waits for others.
    pub waits: bool,
}

/// Answers by member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeadPhase {
    /// What members know to conflict.
    PreAccepting { answers: BTreeMap<MemberId, IdSet> },
    /// Who has accepted its dependencies.
    Accepting { answers: BTreeSet<MemberId> },
    /// What members have stored.
    Recovering { answers: BTreeMap<MemberId, StoredCommand> },
    /// Whether its proposer's dependencies can be kept.
    Validating(PendingValidation),
}

/// A command that this member leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LedInstance {
    pub ballot: CommandBallot,
    pub phase: LeadPhase,
    pub since: Nanos,
}

impl LedInstance {
    pub fn new(ballot: CommandBallot, phase: LeadPhase, now: Nanos) -> LedInstance {
        LedInstance { ballot, phase, since: now }
    }

    /// Whether a member need not be asked again.
    pub fn has_answer_of(&self, member: MemberId) -> bool {
        match &self.phase {
            LeadPhase::PreAccepting { answers } => answers.contains_key(&member),
            LeadPhase::Accepting { answers } => answers.contains(&member),
            LeadPhase::Recovering { answers } => answers.contains_key(&member),
            LeadPhase::Validating(validation) => {
                let is_asked = validation.quorum.contains(&member);
                !is_asked || validation.answers.contains_key(&member)
            }
        }
    }
}
