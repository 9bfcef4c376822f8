//! Whether a message can be what it says.

use muesli_core::Rejection;
use muesli_core::judgement::ensure;

use super::EpochMember;
use super::list::{GroupEpoch, MemberList, MemberName};
use super::message::{EpochMessage, SnapshotHead};
use super::take::PIECES_AHEAD;
use crate::broadcast::Broadcast;
use crate::command::CommandId;

/// No snapshot has so many pieces.
const PIECES_MOST: u32 = 1 << 31;

impl<B: Broadcast> EpochMember<B> {
    /// Whether a message can be what it says: that it names members that there are, and numbers
    /// that can be.
    ///
    /// # Errors
    /// It is to be left out, for this reason.
    pub fn judge(
        &self,
        from: MemberName,
        message: &EpochMessage<B::Message>,
    ) -> Result<(), Rejection> {
        match message {
            EpochMessage::Ordered { epoch, message } => self.judge_ordered(from, *epoch, message),
            EpochMessage::Running(list) => self.judge_list(list),
            EpochMessage::State { head, .. } => self.judge_head(head),
            EpochMessage::AskState { from } => ensure(*from <= GroupEpoch::LAST, Rejection::Range),
            EpochMessage::AskPieces { first, count, .. } => {
                let are_few = *first < PIECES_MOST && *count <= PIECES_AHEAD;
                ensure(are_few, Rejection::Range)
            }
            EpochMessage::Piece { number, .. } => ensure(*number < PIECES_MOST, Rejection::Range),
            EpochMessage::Refused | EpochMessage::NotGiven { .. } | EpochMessage::Taken { .. } => {
                Ok(())
            }
        }
    }

    fn judge_ordered(
        &self,
        from: MemberName,
        epoch: GroupEpoch,
        message: &B::Message,
    ) -> Result<(), Rejection> {
        ensure(epoch <= GroupEpoch::LAST, Rejection::Range)?;
        let current = self.current.as_ref().filter(|_| epoch == self.list.epoch);
        let previous = self.previous.as_ref().filter(|previous| previous.list.epoch == epoch);
        let (ordered, list) = match (current, previous) {
            (Some(current), _) => (current, &self.list),
            (None, Some(previous)) => (&previous.ordered, &previous.list),
            (None, None) => return Ok(()), // It is answered that another epoch is running.
        };
        let is_other = from != self.me;
        let place = list.place_of(from).filter(|_| is_other).ok_or(Rejection::Sender)?;
        ordered.judge(place, message)
    }

    fn judge_list(&self, list: &MemberList) -> Result<(), Rejection> {
        ensure(list.members.len() == self.members && list.is_sound(), Rejection::Range)
    }

    fn judge_head(&self, head: &SnapshotHead) -> Result<(), Rejection> {
        self.judge_list(&head.list)?;
        let is_number = |id: CommandId| {
            id.leader.place() < self.members && id.sequence <= CommandId::SEQUENCE_MAX
        };
        ensure(head.delivered.last_of_each().all(is_number), Rejection::Range)
    }
}
