//! A member of a plan: its broadcast, with or without batches.

use muesli_broadcast::{
    BatchLimits, Batched, BatchedSwitches, Broadcast as _, BroadcastEffects, ChosenBroadcast,
    ChosenMessage, ChosenRecord, Command, CommandId, MemberId,
};
use muesli_core::Rejection;

use crate::load::CommandPlan;

/// What a member wants done.
pub(crate) type Effects = BroadcastEffects<ChosenMessage, ChosenRecord>;

/// A member that orders commands one by one, or several as one.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are as many as nodes")]
pub(crate) enum OrderingMember {
    Single(ChosenBroadcast),
    Batched(Batched<ChosenBroadcast>),
}

/// Does the same with a member of either kind.
macro_rules! either {
    ($member:expr, $it:ident => $done:expr) => {
        match $member {
            OrderingMember::Single($it) => $done,
            OrderingMember::Batched($it) => $done,
        }
    };
}

impl OrderingMember {
    pub fn new(me: MemberId, plan: &CommandPlan) -> OrderingMember {
        let (members, settings) = (plan.load.nodes, plan.settings());
        match plan.batch {
            1 => OrderingMember::Single(ChosenBroadcast::new(
                me,
                members,
                &settings,
                &plan.broadcast,
            )),
            commands => {
                let limits = BatchLimits { commands, open: plan.batches, ..BatchLimits::default() };
                let switches = BatchedSwitches::new(limits, plan.broadcast.clone());
                OrderingMember::Batched(Batched::new(me, members, &settings, &switches))
            }
        }
    }

    pub fn propose(&mut self, command: Command, out: &mut Effects) -> CommandId {
        either!(self, it => it.propose(command, out))
    }

    pub fn judge(&self, from: MemberId, message: &ChosenMessage) -> Result<(), Rejection> {
        either!(self, it => it.judge(from, message))
    }

    pub fn receive(&mut self, from: MemberId, message: ChosenMessage, out: &mut Effects) {
        either!(self, it => it.receive(from, message, out));
    }

    pub fn tick(&mut self, out: &mut Effects) {
        either!(self, it => it.tick(out));
    }

    pub fn flush(&mut self, out: &mut Effects) {
        either!(self, it => it.flush(out));
    }

    /// The command that this one was ordered with, if it was ordered with others.
    pub fn batch_of(&self, id: CommandId) -> Option<CommandId> {
        match self {
            OrderingMember::Single(_) => None,
            OrderingMember::Batched(it) => it.batch_of(id),
        }
    }
}
