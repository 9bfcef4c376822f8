//! Whether a message can be what it says.

use muesli_core::Rejection;
use muesli_core::judgement::ensure;

use super::collect::NOTHING_MOST;
use super::cut::FrozenPart;
use super::message::{AskedSlot, Message, NamedCommand, ObjectEpoch, PromisedObject};
use crate::command::MemberId;
use crate::member::judge::NameJudge;
use crate::member::own::OwnCommands;

/// No object has more places.
pub(super) const SLOT_MAX: u64 = 1 << 62;

/// No object is acquired so often.
pub(super) const ROUND_MAX: u32 = 1 << 30;

/// Whether a message names members that there are and numbers that can be, and its sender may say
/// it.
pub(super) fn judge(
    names: NameJudge<'_>,
    from: MemberId,
    message: &Message,
) -> Result<(), Rejection> {
    let judge = OwnerJudge { names, from };
    match message {
        Message::Forward(named) | Message::ShowCommand(named) => judge.names.id(named.id),
        Message::Prepare(objects) => objects.iter().try_for_each(|it| {
            judge.slot(it.from)?;
            judge.owns(it.epoch)
        }),
        Message::Promise { objects, commands } => {
            commands.iter().try_for_each(|named| judge.names.id(named.id))?;
            objects.iter().try_for_each(|it| judge.promised(it))
        }
        Message::Accept { value, slots } => {
            value.as_ref().map_or(Ok(()), |named| judge.names.id(named.id))?;
            judge.slots(slots)?;
            slots.iter().try_for_each(|it| judge.owns(it.epoch))
        }
        Message::AckAccept { value, slots } => {
            value.map_or(Ok(()), |id| judge.names.id(id))?;
            judge.slots(slots)
        }
        Message::Refuse(promised) => promised.iter().try_for_each(|it| judge.epoch(it.epoch)),
        Message::Decide { value, slots } => {
            value.map_or(Ok(()), |id| judge.names.id(id))?;
            slots.iter().try_for_each(|it| judge.slot(it.slot))
        }
        Message::Delivered { delivered: ids } | Message::Missing { ended: ids } => {
            judge.names.ids(ids)
        }
        Message::Filled { command, slots } => {
            judge.names.id(command.id)?;
            slots.iter().try_for_each(|it| {
                judge.slot(it.slot)?;
                let most = NOTHING_MOST.min(it.slot - 1);
                ensure(it.nothing_before <= most, Rejection::Range)
            })
        }
        Message::AskCommand(id) => judge.names.id(*id),
    }
}

/// Whether a part of what a member has names members that there are and numbers that can be, by the
/// same measure at all members.
pub(super) fn judge_part(members: usize, part: &FrozenPart) -> Result<(), Rejection> {
    let nobody = OwnCommands::new(MemberId(u16::MAX));
    let names = NameJudge { members, own: &nobody };
    let judge = OwnerJudge { names, from: MemberId(0) };
    let is_plain = |named: &NamedCommand| !named.command.objects.is_everything();
    ensure(part.commands.iter().all(is_plain), Rejection::Range)?;
    part.commands.iter().try_for_each(|named| names.id(named.id))?;
    part.objects.iter().try_for_each(|it| {
        names.member(it.epoch.member)?;
        ensure(it.epoch.round <= ROUND_MAX, Rejection::Range)?;
        judge.places(it)
    })
}

/// What is known of a message's sender, and of who judges.
pub(super) struct OwnerJudge<'a> {
    pub names: NameJudge<'a>,
    pub from: MemberId,
}

impl OwnerJudge<'_> {
    pub fn slot(&self, slot: u64) -> Result<(), Rejection> {
        ensure((1..=SLOT_MAX).contains(&slot), Rejection::Range)
    }

    pub fn epoch(&self, epoch: ObjectEpoch) -> Result<(), Rejection> {
        self.names.member(epoch.member)?;
        ensure((1..=ROUND_MAX).contains(&epoch.round), Rejection::Range)
    }

    /// Whoever owns something, or wants to, speaks for itself.
    fn owns(&self, epoch: ObjectEpoch) -> Result<(), Rejection> {
        self.epoch(epoch)?;
        ensure(epoch.member == self.from, Rejection::Sender)
    }

    fn slots(&self, slots: &[AskedSlot]) -> Result<(), Rejection> {
        ensure(!slots.is_empty(), Rejection::Range)?;
        slots.iter().try_for_each(|it| {
            self.slot(it.slot)?;
            self.epoch(it.epoch)
        })
    }

    fn promised(&self, promised: &PromisedObject) -> Result<(), Rejection> {
        self.epoch(promised.epoch)?;
        self.places(promised)
    }

    fn places(&self, promised: &PromisedObject) -> Result<(), Rejection> {
        promised.votes.iter().try_for_each(|vote| {
            self.slot(vote.slot)?;
            self.epoch(vote.epoch)?;
            vote.value.map_or(Ok(()), |id| self.names.id(id))
        })?;
        promised.decided.iter().try_for_each(|decided| {
            self.slot(decided.slot)?;
            decided.value.map_or(Ok(()), |id| self.names.id(id))
        })
    }
}
