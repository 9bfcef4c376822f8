//! Several commands of a member ordered as one.
//!
//! # The idea
//! What a command costs that a broadcast orders hardly hangs on what it says: messages, their
//! answers, an entry for each at each member. So commands that come while others are under way
//! *wait*, and leave together: a *batch* is one command of the broadcast below, that touches all
//! that its commands touch, and says what they say. Where a batch is delivered its commands are
//! delivered one after the other.
//!
//! # Which commands go together
//! A batch has to wait for all of its objects. So only those commands are in one that are decided
//! at the same member anyway, as far as the broadcast [says](Broadcast::decided_at): under M²Paxos,
//! where one member owns all objects of all of them. Others leave by themselves, each at once.
//!
//! # When they leave
//! With the step in which they came ([`Broadcast::flush`]), if not as many batches are
//! [open](BatchLimits::open) already; else once one of these is delivered. There is no time that
//! is waited for more: where nothing is under way a command leaves alone, and the more commands
//! come, the larger batches are.
//!
//! # Names
//! Commands have names of their own, which are not those of the commands below. A batch says the
//! numbers of its commands, and from which on and up to which others of its member may be open, or
//! in earlier batches; so what a command's name stands for need not be kept once all members have
//! delivered it.
//!
//! # What is stored
//! Commands that wait are written down nowhere: a member that crashes has not proposed them, and
//! names others as it would have named them. So who writes down by itself what it has proposed asks
//! after a crash which of it is [proposed](Broadcast::proposed); [epochs](crate::epochs) do not,
//! and have batches of their own.

mod batch;
mod checkpoint;
mod delivered;
mod switches;

use std::collections::{BTreeMap, VecDeque};

use muesli_core::sabotage::Broken;
use muesli_core::{Nanos, Rejection};

use crate::broadcast::{Broadcast, BroadcastSettings, EffectsOf};
use crate::command::{Command, CommandId, MemberId};
use crate::effects::{BroadcastEffect, BroadcastEffects, DeliveredCommand};
use crate::member::checkpoint::CheckpointError;
pub(crate) use batch::BatchFill;
pub use batch::BatchLimits;
use batch::{CommandBatch, NumberedCommand};
use delivered::DeliveredBatches;
pub use switches::{BatchSwitch, BatchedSwitches};

/// A batch of this member that is neither delivered nor given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OpenBatch {
    /// Where it is decided; unknown after a crash, and of commands that leave by themselves.
    decided_at: Option<MemberId>,
    batch: CommandBatch,
}

/// A member of a broadcast whose members order several commands as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batched<B> {
    me: MemberId,
    limits: BatchLimits,
    broken: Broken<BatchSwitch>,
    inside: B,
    /// The number of the last own command.
    named: u64,
    /// The largest number of an own command that was in a batch.
    batched: u64,
    /// Own commands that wait, by where they are decided.
    waiting: BTreeMap<MemberId, VecDeque<NumberedCommand>>,
    /// Own batches, by their names below.
    open: BTreeMap<CommandId, OpenBatch>,
    delivered: DeliveredBatches,
    /// Of a checkpoint, that of the broadcast below has come.
    is_restored: bool,
}

impl<B: Broadcast> Batched<B> {
    /// The broadcast that orders batches.
    pub fn inside(&self) -> &B {
        &self.inside
    }

    /// How many commands and batches it keeps, those that are delivered and may be asked for still
    /// among them.
    pub fn kept(&self) -> usize {
        let waiting: usize = self.waiting.values().map(VecDeque::len).sum();
        self.open.len() + waiting + self.delivered.len()
    }

    /// The batch with which a command was delivered here, until all members have delivered it.
    pub fn batch_of(&self, id: CommandId) -> Option<CommandId> {
        self.delivered.batch_of(id)
    }

    /// Whether a command was delivered here, or is nothing.
    pub fn has_delivered(&self, id: CommandId) -> bool {
        self.delivered.has(id)
    }

    /// Whether a command of this member waits, and is written down nowhere.
    pub fn waits(&self, id: CommandId) -> bool {
        let mut waiting = self.waiting.values().flatten();
        id.leader == self.me && waiting.any(|it| it.sequence == id.sequence)
    }

    /// Has the broadcast below do something, and takes what it delivers apart.
    fn act(&mut self, out: &mut EffectsOf<Self>, act: impl FnOnce(&mut B, &mut EffectsOf<B>)) {
        let mut inside = BroadcastEffects::at(out.now);
        act(&mut self.inside, &mut inside);
        self.take_apart(inside, out);
    }

    fn take_apart(&mut self, inside: EffectsOf<B>, out: &mut EffectsOf<Self>) {
        for effect in inside.effects {
            match effect {
                BroadcastEffect::Deliver(delivered) => self.deliver(delivered, out),
                BroadcastEffect::GivenUp(id) => self.give_up(id, out),
                other @ (BroadcastEffect::Send { .. } | BroadcastEffect::Log(_)) => {
                    out.effects.push(other);
                }
            }
        }
    }

    /// Delivers the commands of a batch, one after the other.
    fn deliver(&mut self, delivered: DeliveredCommand, out: &mut EffectsOf<Self>) {
        let DeliveredCommand { id, command, predecessors } = delivered;
        let own = self.open.remove(&id).map(|own| own.batch);
        let batch = own.unwrap_or_else(|| CommandBatch::of(&command));
        self.take_numbers(id, &batch);
        let mut predecessors = self.delivered.commands(&predecessors);
        self.delivered.add(id, &batch, &predecessors);
        let meets_itself =
            batch.meets_itself(&command) && self.broken.keeps(BatchSwitch::NamesWithin);
        for NumberedCommand { sequence, command } in batch.commands {
            let id = CommandId { sequence, ..id };
            // Each names the one before it, and that one what all come after.
            let next = match meets_itself {
                true => std::iter::once(id).collect(),
                false => predecessors.clone(),
            };
            let predecessors = std::mem::replace(&mut predecessors, next);
            let it = DeliveredCommand { id, command, predecessors };
            out.effects.push(BroadcastEffect::Deliver(it));
        }
    }

    fn give_up(&mut self, id: CommandId, out: &mut EffectsOf<Self>) {
        let Some(own) = self.open.remove(&id) else { return };
        for NumberedCommand { sequence, .. } in own.batch.commands {
            out.effects.push(BroadcastEffect::GivenUp(CommandId { sequence, ..id }));
        }
    }

    /// A batch names commands, perhaps of this member.
    fn take_numbers(&mut self, id: CommandId, batch: &CommandBatch) {
        let last = batch.commands.last().filter(|_| id.leader == self.me);
        if let Some(last) = last.filter(|_| self.broken.keeps(BatchSwitch::RemembersNumbers)) {
            self.batched = self.batched.max(last.sequence);
            self.named = self.named.max(last.sequence);
        }
    }

    /// Knows its own batches that are open below: after a replay nobody else does.
    fn take_own(&mut self) {
        let open = &self.open;
        let new = self.inside.proposed().filter(|(id, _)| !open.contains_key(id));
        let new: Vec<_> = new.map(|(id, it)| (id, CommandBatch::of(it))).collect();
        for (id, batch) in new {
            self.take_numbers(id, &batch);
            self.open.insert(id, OpenBatch { decided_at: None, batch });
        }
    }

    /// Forgets what all members have delivered.
    fn forget(&mut self) {
        self.delivered.forget(|id| self.inside.has_forgotten(id));
    }

    /// The number up to which all own commands have been begun.
    fn begun(&self) -> u64 {
        let waiting = self.waiting.values().filter_map(VecDeque::front).map(|it| it.sequence);
        waiting.min().unwrap_or(self.named + 1)
    }

    /// Proposes commands as one.
    fn propose_batch(
        &mut self,
        commands: Vec<NumberedCommand>,
        decided_at: Option<MemberId>,
        out: &mut EffectsOf<Self>,
    ) {
        let first = commands.first().expect("a batch has a command").sequence;
        let last = commands.last().expect("a batch has a command").sequence;
        let (begun, upto) = (self.begun().min(first), self.batched.max(last));
        let batch = CommandBatch { begun, upto, commands };
        let mut inside = BroadcastEffects::at(out.now);
        let id = self.inside.propose(batch.command(), &mut inside);
        self.take_numbers(id, &batch);
        self.open.insert(id, OpenBatch { decided_at, batch });
        self.take_apart(inside, out);
    }

    /// The next batch of those that wait for one member.
    fn take_waiting(&mut self, decided_at: MemberId) -> Option<Vec<NumberedCommand>> {
        let waiting = self.waiting.get_mut(&decided_at)?;
        let mut fill = BatchFill::default();
        // Objects may have moved since.
        let stays = |it: &NumberedCommand| self.inside.decided_at(&it.command) == Some(decided_at);
        let fits = |it: &&NumberedCommand| fill.adds(&it.command, &self.limits) && stays(it);
        let count = waiting.iter().take(self.limits.commands).take_while(fits).count().max(1);
        let batch = waiting.drain(..count).collect();
        if waiting.is_empty() {
            self.waiting.remove(&decided_at);
        }
        Some(batch)
    }

    /// Proposes what waits, as far as it may.
    fn leave(&mut self, out: &mut EffectsOf<Self>) {
        let all: Vec<MemberId> = self.waiting.keys().copied().collect();
        for decided_at in all {
            let open = |it: &&OpenBatch| it.decided_at == Some(decided_at);
            while self.open.values().filter(open).count() < self.limits.open
                && let Some(commands) = self.take_waiting(decided_at)
            {
                self.propose_batch(commands, Some(decided_at), out);
            }
        }
    }
}

impl<B: Broadcast> Broadcast for Batched<B> {
    const NAME: &'static str = B::NAME;
    type Message = B::Message;
    type Record = B::Record;
    type Switches = BatchedSwitches<B::Switches>;

    fn new(
        me: MemberId,
        members: usize,
        settings: &BroadcastSettings,
        switches: &Self::Switches,
    ) -> Batched<B> {
        let limits = switches.limits;
        let least = limits.commands.min(limits.open);
        assert!(least > 0, "{limits:?} let nothing leave");
        Batched {
            me,
            limits,
            broken: switches.broken,
            inside: B::new(me, members, settings, &switches.inside),
            named: 0,
            batched: 0,
            waiting: BTreeMap::new(),
            open: BTreeMap::new(),
            delivered: DeliveredBatches::new(members),
            is_restored: false,
        }
    }

    fn orders_everything(&self) -> bool {
        self.inside.orders_everything()
    }

    fn decided_at(&self, command: &Command) -> Option<MemberId> {
        self.inside.decided_at(command)
    }

    fn propose(&mut self, command: Command, out: &mut EffectsOf<Self>) -> CommandId {
        self.named += 1;
        let numbered = NumberedCommand { sequence: self.named, command };
        let id = CommandId { leader: self.me, sequence: self.named };
        let is_alone = self.limits.leaves_alone(&numbered.command);
        match self.inside.decided_at(&numbered.command).filter(|_| !is_alone) {
            Some(decided_at) => self.waiting.entry(decided_at).or_default().push_back(numbered),
            None => self.propose_batch(vec![numbered], None, out),
        }
        id
    }

    fn flush(&mut self, out: &mut EffectsOf<Self>) {
        self.leave(out);
    }

    fn proposed(&self) -> impl Iterator<Item = (CommandId, &Command)> {
        let open = self.open.values().flat_map(|it| &it.batch.commands);
        let waiting = self.waiting.values().flatten();
        let all: BTreeMap<u64, &Command> =
            open.chain(waiting).map(|it| (it.sequence, &it.command)).collect();
        let leader = self.me;
        all.into_iter().map(move |(sequence, it)| (CommandId { leader, sequence }, it))
    }

    fn is_behind(&self) -> bool {
        self.inside.is_behind()
    }

    fn has_forgotten(&self, id: CommandId) -> bool {
        let batch = self.delivered.batch_of(id);
        self.delivered.has(id) && batch.is_none_or(|batch| self.inside.has_forgotten(batch))
    }

    fn judge(&self, from: MemberId, message: &Self::Message) -> Result<(), Rejection> {
        self.inside.judge(from, message)
    }

    fn receive(&mut self, from: MemberId, message: Self::Message, out: &mut EffectsOf<Self>) {
        self.act(out, |it, inside| it.receive(from, message, inside));
    }

    fn tick(&mut self, out: &mut EffectsOf<Self>) {
        self.act(out, B::tick);
        self.forget();
        self.leave(out);
    }

    /// The batch of a command that waits, or is not known here, is left to its own times.
    fn recover(&mut self, id: CommandId, out: &mut EffectsOf<Self>) {
        let has = |it: &OpenBatch| it.batch.commands.iter().any(|it| it.sequence == id.sequence);
        let own = self.open.iter().find(|(_, it)| id.leader == self.me && has(it));
        if let Some(batch) = own.map(|(batch, _)| *batch) {
            self.act(out, |it, inside| it.recover(batch, inside));
        }
    }

    fn replay(&mut self, record: Self::Record, out: &mut EffectsOf<Self>) {
        self.act(out, |it, inside| it.replay(record, inside));
        self.take_own();
        self.forget();
    }

    fn checkpoint(&self) -> impl Iterator<Item = Vec<u8>> {
        self.pieces()
    }

    fn restore(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
        self.take_piece(piece, now)
    }

    fn assert_invariants(&self) {
        self.inside.assert_invariants();
        self.delivered.assert_invariants();
        assert!(self.batched <= self.named, "{} was named, of {}", self.batched, self.named);
        let below = self.inside.proposed().map(|(id, _)| id);
        assert!(below.eq(self.open.keys().copied()), "batches are open that are not: {self:?}");
        for waiting in self.waiting.values() {
            assert!(!waiting.is_empty(), "nobody waits, and has a place: {self:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectSet;
    use crate::m2paxos::M2Paxos;

    /// A member by itself, whose commands are delivered as soon as they leave.
    fn member() -> Batched<M2Paxos> {
        Batched::new(MemberId(0), 1, &BroadcastSettings::default(), &BatchedSwitches::default())
    }

    fn command(objects: &[u64]) -> Command {
        let objects = ObjectSet::writes(objects.iter().copied()).into();
        Command { objects, payload: [9; 4].as_slice().into() }
    }

    /// What is delivered, with what it comes after.
    fn delivered(out: EffectsOf<Batched<M2Paxos>>) -> Vec<(u64, Vec<u64>)> {
        let of = |effect| match effect {
            BroadcastEffect::Deliver(it) => Some(it),
            _ => None,
        };
        let all = out.effects.into_iter().filter_map(of);
        let numbers = |it: DeliveredCommand| {
            (it.id.sequence, it.predecessors.iter().map(|id| id.sequence).collect())
        };
        all.map(numbers).collect()
    }

    #[test]
    fn what_stands_for_nothing_hides_nobody_that_comes_before_it() {
        let mut member = member();
        let mut out = BroadcastEffects::at(Nanos(0));
        member.propose(command(&[1]), &mut out);
        // A member that lies: this is no batch.
        member.act(&mut out, |it, inside| _ = it.propose(command(&[1]), inside));
        member.propose(command(&[1]), &mut out);
        member.propose(command(&[1]), &mut out);
        member.flush(&mut out);
        // The second names the first by what stands between them, the third the one before it.
        assert_eq!(delivered(out), [(1, vec![]), (2, vec![1]), (3, vec![2])]);
        member.assert_invariants();
        // All of it comes back.
        let mut back = self::member();
        for piece in member.checkpoint() {
            back.restore(&piece, Nanos(0)).expect("a checkpoint");
        }
        assert_eq!(back.delivered, member.delivered);
        assert_eq!((back.named, back.batched), (3, 3));
    }
}
