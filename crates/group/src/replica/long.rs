//! Long messages: a member says that it takes one in before it does.
//!
//! To take in a transaction of tens of megabytes, to write it down and to send it on keeps a loop
//! from all else for longer than an election takes, and what it sends keeps heartbeats behind it.
//! The others would elect another leader, which has not got the entry, and to which the coordinator
//! sends the transaction once more: so it would never end. So a member puts a long message aside,
//! says to the others how long it is ([`Message::Long`]), and takes it in once that has left. Until
//! they hear from it again they look for no other leader, for a time that goes by the length. If
//! the member dies meanwhile, it is followed by another one only after that time.
//!
//! A member that has a long entry itself, which is not decided, has longer rounds of heartbeats,
//! also for one round after the decision: others replay it then.

use muesli_core::links::patience_for;
use muesli_core::{Address, Protocol};

use super::{ELECTION_TICKS, Replica};
use crate::agreement::ledger::ReplicaState;
use crate::inside::Context;
use crate::protocol::{GroupSettings, Grouped, Message};
use crate::timers::{InnerTimer, MemberTimer};

/// Messages of so many bytes are long.
const LONG_BYTES: usize = 1 << 20;
/// The others wait for a member for so many times as long as its message may take once.
const WAITS: u64 = 2;
/// No message counts as longer than this.
const LONG_BYTES_MAX: u64 = 128 << 20;

impl<P: Protocol> Replica<P> {
    /// Takes a message; what was put aside before it comes first.
    pub(super) fn take_in_order(
        &mut self,
        from: Address,
        message: Message<P::Message>,
        cx: &mut Context<'_, P>,
    ) {
        self.take_long(cx);
        let is_work = match &message {
            Message::Inside { .. } => self.leading.is_some(),
            Message::Consensus(..) => true,
            _ => false,
        };
        let bytes = if is_work { Grouped::<P>::wire_bytes(&message) } else { 0 };
        if bytes < LONG_BYTES {
            return self.on_message(from, message, cx);
        }
        self.long.push((from, message));
        self.tell_others(&Message::Long(bytes as u64), cx);
        cx.defer(MemberTimer::<InnerTimer<P>>::Long);
    }

    /// Takes in what was put aside.
    pub(super) fn take_long(&mut self, cx: &mut Context<'_, P>) {
        for (from, message) in std::mem::take(&mut self.long) {
            self.on_message(from, message, cx);
        }
    }

    /// Another member takes in a message of so many bytes.
    pub(super) fn on_long(&mut self, member: u16, bytes: u64) {
        let bytes = bytes.min(LONG_BYTES_MAX) as usize;
        let ticks = WAITS * patience_for(bytes).0 / self.group_settings.tick.0.max(1);
        self.busy.insert(member, self.ticks + ticks);
    }

    /// Whether this tick is one of the consensus.
    pub(super) fn is_consensus_tick(&mut self) -> bool {
        let ticks = self.ticks;
        self.busy.retain(|_, until| ticks < *until);
        let patience = self.patience();
        self.busy.is_empty() && ticks.is_multiple_of(patience)
    }

    /// How many ticks are one of the consensus: more than one while an entry is under way that is
    /// longer than all that a leader else has undecided, and for a round after that.
    pub(super) fn patience(&mut self) -> u64 {
        let GroupSettings { tick, limits, .. } = &self.group_settings;
        let undecided = self.ledger.look(ReplicaState::undecided_bytes);
        let beyond = undecided.saturating_sub(limits.undecided_bytes_max);
        let round = ELECTION_TICKS * tick.0.max(1);
        let patience = 1 + patience_for(beyond as usize).0 / round;
        let (longer, until) = self.patient;
        if patience > 1 && (patience >= longer || self.ticks >= until) {
            self.patient = (patience, self.ticks + ELECTION_TICKS * patience);
        }
        let (longer, until) = self.patient;
        if self.ticks < until { longer.max(patience) } else { patience }
    }
}
