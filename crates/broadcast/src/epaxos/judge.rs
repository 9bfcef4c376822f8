//! Whether a message can be what it says.

use muesli_core::Rejection;
use muesli_core::judgement::ensure;

use super::message::{CommandBallot, CommandPhase, Message, StoredCommand};
use crate::command::{CommandId, MemberId};
use crate::dependencies::OrderedAfter;
use crate::member::judge::NameJudge;

/// No member takes a command over so often.
const ROUND_MAX: u32 = 1 << 30;

/// Whether a message names members that there are and numbers that can be, and its sender may say
/// it.
pub(super) fn judge(
    names: NameJudge<'_>,
    from: MemberId,
    message: &Message,
) -> Result<(), Rejection> {
    let judge = InstanceJudge { names, from };
    match message {
        Message::PreAccept { id, dependencies, .. } => {
            judge.leads(*id, CommandBallot::first(*id))?;
            judge.names.ids(dependencies)
        }
        Message::AckPreAccept { id, dependencies } => {
            judge.names.id(*id)?;
            judge.names.ids(dependencies)
        }
        Message::Accept { id, ballot, value } | Message::Validate { id, ballot, value } => {
            judge.leads(*id, *ballot)?;
            judge.names.ids(&value.dependencies)
        }
        Message::AckAccept { id, ballot } | Message::Superseded { id, ballot } => {
            judge.ballot(*id, *ballot)
        }
        Message::Commit { id, value } => {
            judge.names.id(*id)?;
            judge.names.ids(&value.dependencies)
        }
        Message::Recover { id, ballot } => judge.leads(*id, *ballot),
        Message::Recovered { id, ballot, stored } => {
            judge.ballot(*id, *ballot)?;
            let StoredCommand {
                accepted, value: OrderedAfter { dependencies, .. }, initial, ..
            } = stored;
            judge.ballot(*id, *accepted)?;
            let is_known =
                stored.phase != CommandPhase::PreAccepted || stored.value.command.is_some();
            ensure(is_known, Rejection::Range)?;
            judge.names.ids(dependencies)?;
            judge.names.ids(initial)
        }
        Message::Validated { id, ballot, invalidating } => {
            judge.ballot(*id, *ballot)?;
            invalidating.iter().try_for_each(|it| judge.names.id(it.id))
        }
        Message::Waiting { id, agreeing } => {
            judge.names.id(*id)?;
            ensure(usize::from(*agreeing) <= names.members, Rejection::Range)
        }
        Message::Delivered { delivered: ids } | Message::Missing { ended: ids } => {
            judge.names.ids(ids)
        }
    }
}

/// What is known of a message's sender, and of who judges.
pub(super) struct InstanceJudge<'a> {
    pub names: NameJudge<'a>,
    pub from: MemberId,
}

impl InstanceJudge<'_> {
    pub fn ballot(&self, id: CommandId, ballot: CommandBallot) -> Result<(), Rejection> {
        self.names.id(id)?;
        self.names.member(ballot.member)?;
        ensure(ballot.round <= ROUND_MAX, Rejection::Range)?;
        ensure(ballot.round > 0 || ballot.member == id.leader, Rejection::Range)
    }

    /// Who leads speaks for itself.
    fn leads(&self, id: CommandId, ballot: CommandBallot) -> Result<(), Rejection> {
        self.ballot(id, ballot)?;
        ensure(ballot.member == self.from, Rejection::Sender)
    }
}
