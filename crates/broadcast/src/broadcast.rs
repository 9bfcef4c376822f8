//! What all broadcasts have in common.

use std::fmt::Debug;

use muesli_core::wire::Wire;
use muesli_core::{Nanos, Rejection};

use crate::command::{Command, CommandId, MemberId};
use crate::effects::BroadcastEffects;
use crate::member::checkpoint::CheckpointError;

/// Times after which a member does something by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BroadcastSettings {
    /// What was not answered is said again.
    pub retry_after: Nanos,
    /// A command whose leader has not brought it to its end is taken over.
    pub suspect_after: Nanos,
    /// Members tell each other what they have delivered.
    pub report_every: Nanos,
    /// A leader goes on with a majority where not enough members have answered for a decision at
    /// once.
    pub fast_within: Nanos,
}

impl Default for BroadcastSettings {
    fn default() -> BroadcastSettings {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        BroadcastSettings {
            retry_after: ms(200),
            suspect_after: ms(1_000),
            report_every: ms(50),
            fast_within: ms(400),
        }
    }
}

/// What a broadcast wants done.
pub type EffectsOf<B> = BroadcastEffects<<B as Broadcast>::Message, <B as Broadcast>::Record>;

/// A member of a group that orders commands: a state machine.
///
/// All of its inputs are calls; what it wants done is in the [effects](BroadcastEffects). Whoever
/// drives it calls [`tick`](Self::tick) now and then, more often than the times of its
/// [settings](BroadcastSettings).
pub trait Broadcast: Clone + Debug + Eq + 'static {
    /// As commands call it.
    const NAME: &'static str;
    /// What members say to each other.
    type Message: Wire + Clone + Debug + Eq + Send;
    /// What must survive a crash.
    type Record: Wire + Clone + Debug + Eq + Send;
    /// Variants of it; the default is as it should be.
    type Switches: Clone + Debug + Default + Eq;

    /// A member without any memory, of so many.
    fn new(
        me: MemberId,
        members: usize,
        settings: &BroadcastSettings,
        switches: &Self::Switches,
    ) -> Self;

    /// Whether a command may touch [everything](crate::ObjectSet::everything).
    fn orders_everything(&self) -> bool {
        false
    }

    /// At which member a command would be decided now, as far as is known here: commands for which
    /// this is the same may be ordered [as one](crate::Batched) as well as one by one. `None`: it
    /// is better ordered by itself.
    fn decided_at(&self, command: &Command) -> Option<MemberId> {
        (!command.objects.is_everything()).then_some(MemberId(0))
    }

    /// Takes a command of this member. It is delivered at last at all members that live, unless
    /// the effects say that it was given up. What touches everything it takes only if it
    /// [orders](Self::orders_everything) that.
    fn propose(&mut self, command: Command, out: &mut EffectsOf<Self>) -> CommandId;

    /// Nothing more is proposed in this step: what waited for more may leave.
    fn flush(&mut self, _out: &mut EffectsOf<Self>) {}

    /// The commands of this member that are neither delivered nor given up here, in the order in
    /// which they were proposed; after a replay, too: so whoever comes back finds out what it had
    /// proposed.
    fn proposed(&self) -> impl Iterator<Item = (CommandId, &Command)>;

    /// What a command says that is among [those](Self::proposed).
    fn proposed_command(&self, id: CommandId) -> Option<&Command> {
        self.proposed().find(|(open, _)| *open == id).map(|(_, command)| command)
    }

    /// Whether another member has said that it has delivered a command that is not delivered here.
    fn is_behind(&self) -> bool;

    /// Whether all members have said that they have delivered a command, or that it is nothing: it
    /// is part of nothing that is said of others any more.
    fn has_forgotten(&self, id: CommandId) -> bool;

    /// Whether a message can be what it says: that it names members that there are, and numbers
    /// that can be; of this member's own commands, those that it has proposed.
    ///
    /// # Errors
    /// It is to be left out, for this reason.
    fn judge(&self, from: MemberId, message: &Self::Message) -> Result<(), Rejection>;

    /// A message from another member, which was [judged](Self::judge).
    fn receive(&mut self, from: MemberId, message: Self::Message, out: &mut EffectsOf<Self>);

    /// Time has passed.
    fn tick(&mut self, out: &mut EffectsOf<Self>);

    /// Takes over a command whose leader seems not to bring it to its end, at once. Any member may
    /// do that at any time; where it does not know the command, nothing comes of it.
    fn recover(&mut self, id: CommandId, out: &mut EffectsOf<Self>);

    /// Takes a record of an earlier life, in the order in which they were written. The effects have
    /// the same deliveries as in that life, and what was given up, and nothing else.
    fn replay(&mut self, record: Self::Record, out: &mut EffectsOf<Self>);

    /// The state of this member as it is now, in pieces of bounded size: what a replay of all its
    /// records would make. Whoever has it stable needs the records after it alone.
    fn checkpoint(&self) -> impl Iterator<Item = Vec<u8>>;

    /// Takes a piece of a checkpoint of this member, in the order in which they were written, into
    /// a member without any memory. True: that was the last one, and records after it can be
    /// replayed.
    ///
    /// # Errors
    /// It is no such piece, or the whole is no checkpoint; the member is of no use any more.
    fn restore(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError>;

    /// Checks what this says of its own state.
    ///
    /// # Panics
    /// Something of that does not hold.
    fn assert_invariants(&self);
}
