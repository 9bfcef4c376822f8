//! What a broadcast wants done.

use muesli_core::Nanos;

use crate::command::{Command, CommandId, MemberId};
use crate::id_set::IdSet;

/// A command whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeliveredCommand {
    /// Which.
    pub id: CommandId,
    /// What it says.
    pub command: Command,
    /// Commands that were delivered before it at this member, none that is nothing. Each command
    /// that conflicts with it and was delivered before it here is one of these, or comes before
    /// one of these in the same sense, or is [forgotten](crate::Broadcast::has_forgotten) here, or
    /// comes before one that is. So who applies commands side by side applies each one after its
    /// predecessors, and what is forgotten and not applied yet before all that is delivered then.
    /// Under M²Paxos who reads an object conflicts with all that touch it.
    pub predecessors: IdSet,
}

/// Something to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastEffect<M, R> {
    /// Send a message, once all records before it are stable.
    Send {
        /// To whom; never to the member itself.
        to: MemberId,
        /// What.
        message: M,
    },
    /// Write a record down.
    Log(R),
    /// Apply a command. Nobody may hear of that before all records before it are stable, no more
    /// than of a message: who decides alone, and forgets it, lets others decide otherwise.
    Deliver(DeliveredCommand),
    /// A command of this member was given up by others, who had not heard of what it says, and is
    /// delivered nowhere: it may be proposed anew.
    GivenUp(CommandId),
}

/// What a broadcast wants done in one step, and the time of that step.
#[derive(Clone, Debug)]
pub struct BroadcastEffects<M, R> {
    /// The time of the step.
    pub now: Nanos,
    /// What is to be done, in this order.
    pub effects: Vec<BroadcastEffect<M, R>>,
}

impl<M, R> BroadcastEffects<M, R> {
    /// For a step at this time.
    pub fn at(now: Nanos) -> BroadcastEffects<M, R> {
        BroadcastEffects { now, effects: Vec::new() }
    }

    /// Sends a message.
    pub fn send(&mut self, to: MemberId, message: M) {
        self.effects.push(BroadcastEffect::Send { to, message });
    }

    /// Writes a record down.
    pub fn log(&mut self, record: R) {
        self.effects.push(BroadcastEffect::Log(record));
    }
}
