//! What a member gathers that leads a command.

use std::collections::BTreeMap;

use muesli_core::Nanos;

use super::entry::{CommandEpoch, Stored};
use crate::command::MemberId;
use crate::id_set::IdSet;

/// What a member answered to a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProposeAnswer {
    pub position: u64,
    pub dependencies: IdSet,
}

/// Answers by member: one that says the same twice counts once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeaderPhase {
    /// Positions that members propose in turn.
    Proposing { position: u64, answers: BTreeMap<MemberId, ProposeAnswer> },
    /// What members that have accepted the position know to conflict.
    Accepting { answers: BTreeMap<MemberId, IdSet> },
    /// What members have stored.
    Preparing { promises: BTreeMap<MemberId, Stored> },
}

/// Takes a member's answer. Where answers are not counted by member, one that was given counts no
/// more.
pub(super) fn count_answer<A: PartialEq>(
    answers: &mut BTreeMap<MemberId, A>,
    (from, answer): (MemberId, A),
    by_member: bool,
) {
    if by_member || answers.values().all(|given| *given != answer) {
        answers.insert(from, answer);
    }
}

/// A command that this member leads.
///
/// Invariant: answers are of this epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LedCommand {
    pub epoch: CommandEpoch,
    pub phase: LeaderPhase,
    /// When the phase began.
    pub since: Nanos,
}

impl LedCommand {
    pub fn new(epoch: CommandEpoch, phase: LeaderPhase, now: Nanos) -> LedCommand {
        LedCommand { epoch, phase, since: now }
    }

    /// Whether a member has answered.
    pub fn has_answer_of(&self, member: MemberId) -> bool {
        match &self.phase {
            LeaderPhase::Proposing { answers, .. } => answers.contains_key(&member),
            LeaderPhase::Accepting { answers } => answers.contains_key(&member),
            LeaderPhase::Preparing { promises } => promises.contains_key(&member),
        }
    }
}
