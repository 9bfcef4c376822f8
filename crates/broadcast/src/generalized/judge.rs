//! Whether a message can be what it says.

use muesli_core::Rejection;
use muesli_core::judgement::ensure;

use super::message::{FreeVote, GroupBallot, LearningPhase, Message, ReportedVote, StoredVote};
use crate::command::MemberId;
use crate::member::judge::NameJudge;

/// No member begins a ballot so often.
const ROUND_MAX: u32 = 1 << 30;

/// Whether a message names members that there are and numbers that can be, and its sender may say
/// it.
pub(super) fn judge(
    judge: &VoteJudge<'_>,
    from: MemberId,
    message: &Message,
) -> Result<(), Rejection> {
    let leads = |ballot: &GroupBallot| {
        judge.ballot(*ballot)?;
        ensure(ballot.member == from, Rejection::Sender)
    };
    match message {
        Message::Propose { id, vote, .. } => {
            judge.names.id(*id)?;
            ensure(id.leader == from, Rejection::Sender)?;
            vote.iter().try_for_each(|vote| judge.vote(vote))
        }
        Message::Vote { id, vote, .. } => {
            judge.names.id(*id)?;
            judge.vote(vote)
        }
        Message::Ask { id, ballot, .. } => {
            judge.names.id(*id)?;
            leads(ballot)
        }
        Message::Accept { id, ballot, value } => {
            judge.names.id(*id)?;
            leads(ballot)?;
            judge.names.ids(&value.dependencies)
        }
        Message::Refuse { id, ballot } | Message::AckAccept { id, ballot } => {
            judge.names.id(*id)?;
            judge.ballot(*ballot)
        }
        Message::Learned { id, value } => {
            judge.names.id(*id)?;
            judge.names.ids(&value.dependencies)
        }
        Message::Prepare { ballot, ended, after } => {
            leads(ballot)?;
            after.iter().try_for_each(|id| judge.names.id(*id))?;
            judge.names.ids(ended)
        }
        Message::Start { ballot, known } => {
            leads(ballot)?;
            judge.names.ids(known)
        }
        Message::Prepared { ballot, after, next, collected, stored } => {
            judge.ballot(*ballot)?;
            after.iter().chain(next).try_for_each(|id| judge.names.id(*id))?;
            ensure(collected.len() == judge.names.members, Rejection::Range)?;
            stored.iter().try_for_each(|it| judge.reported(it))
        }
        Message::Started { ballot, missing: ids } => {
            judge.ballot(*ballot)?;
            judge.names.ids(ids)
        }
        Message::Superseded { ballot } => judge.ballot(*ballot),
        Message::Delivered { delivered: ids } | Message::Missing { ended: ids } => {
            judge.names.ids(ids)
        }
    }
}

/// What is known of who judges.
pub(super) struct VoteJudge<'a> {
    pub names: NameJudge<'a>,
    /// Who leads the first ballot.
    pub first: MemberId,
}

impl VoteJudge<'_> {
    pub fn ballot(&self, ballot: GroupBallot) -> Result<(), Rejection> {
        self.names.member(ballot.member)?;
        ensure(ballot.round <= ROUND_MAX, Rejection::Range)?;
        ensure(ballot.round > 0 || ballot.member == self.first, Rejection::Range)
    }

    fn vote(&self, vote: &FreeVote) -> Result<(), Rejection> {
        self.ballot(vote.ballot)?;
        ensure(vote.collected.len() == self.names.members, Rejection::Range)?;
        self.names.ids(&vote.dependencies)
    }

    fn reported(&self, reported: &ReportedVote) -> Result<(), Rejection> {
        let ReportedVote { id, stored } = reported;
        let StoredVote { phase, ballot, value, is_nothing } = stored;
        self.names.id(*id)?;
        self.ballot(*ballot)?;
        self.names.ids(&value.dependencies)?;
        let is_ordered = *phase >= LearningPhase::Accepted;
        let is_something = value.command.is_some() && !*is_nothing;
        ensure(is_something || (is_ordered && *is_nothing), Rejection::Range)
    }
}
