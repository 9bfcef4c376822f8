//! Whether a message can be what it says.

use muesli_core::Rejection;
use muesli_core::judgement::ensure;

use super::entry::CommandEpoch;
use super::message::{Accept, Message, Propose, Stable};
use crate::command::{CommandId, MemberId};
use crate::member::judge::NameJudge;

/// No position is higher.
const POSITION_MAX: u64 = 1 << 62;

/// No member takes a command over so often.
const ROUND_MAX: u32 = 1 << 30;

/// Whether a message names members that there are and numbers that can be, and its sender may say
/// it.
pub(super) fn judge(
    names: NameJudge<'_>,
    from: MemberId,
    message: &Message,
) -> Result<(), Rejection> {
    let judge = LeaderJudge { names, from };
    match message {
        Message::Propose(Propose { id, epoch, position, dependencies, .. })
        | Message::Accept(Accept { id, epoch, position, dependencies, .. }) => {
            judge.leads(*id, *epoch)?;
            judge.position(*position)?;
            judge.names.ids(dependencies)
        }
        Message::AckPropose { id, epoch, position, dependencies } => {
            judge.epoch(*id, *epoch)?;
            judge.position(*position)?;
            judge.names.ids(dependencies)
        }
        Message::AckAccept { id, epoch, dependencies } => {
            judge.epoch(*id, *epoch)?;
            judge.names.ids(dependencies)
        }
        Message::Stable(Stable { id, position, dependencies, .. }) => {
            judge.names.id(*id)?;
            judge.position(*position)?;
            judge.names.ids(dependencies)
        }
        Message::Prepare { id, epoch } => judge.leads(*id, *epoch),
        Message::Superseded { id, epoch } => judge.epoch(*id, *epoch),
        Message::Promise { id, epoch, stored } => {
            judge.epoch(*id, *epoch)?;
            stored.accepted.map_or(Ok(()), |accepted| judge.epoch(*id, accepted))?;
            judge.number(stored.position)?;
            judge.number(stored.first_position)?;
            judge.names.ids(&stored.dependencies)
        }
        Message::Delivered { delivered: ids } | Message::Missing { ended: ids } => {
            judge.names.ids(ids)
        }
    }
}

/// What is known of a message's sender, and of who judges.
pub(super) struct LeaderJudge<'a> {
    pub names: NameJudge<'a>,
    pub from: MemberId,
}

impl LeaderJudge<'_> {
    pub fn number(&self, position: u64) -> Result<(), Rejection> {
        ensure(position <= POSITION_MAX, Rejection::Range)
    }

    fn position(&self, position: u64) -> Result<(), Rejection> {
        ensure(position > 0, Rejection::Range)?;
        self.number(position)
    }

    pub fn epoch(&self, id: CommandId, epoch: CommandEpoch) -> Result<(), Rejection> {
        self.names.id(id)?;
        self.names.member(epoch.member)?;
        ensure(epoch.round <= ROUND_MAX, Rejection::Range)?;
        let is_first = epoch.round > 0 || epoch.member == id.leader;
        ensure(is_first, Rejection::Range)
    }

    /// Who leads speaks for itself.
    fn leads(&self, id: CommandId, epoch: CommandEpoch) -> Result<(), Rejection> {
        self.epoch(id, epoch)?;
        ensure(epoch.member == self.from, Rejection::Sender)
    }
}
