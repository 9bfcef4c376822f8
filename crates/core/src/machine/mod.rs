//! Where a node's effects are performed, for every driver alike.
//!
//! A node never does anything itself: it appends effects, and here they are performed, in order.
//! *Log before speak* is kept here: what depends on log position N waits until whoever keeps the
//! log says that N is stable; what still waits when the process dies was never said. A message to
//! the node itself that had to wait is delivered here, and what follows from it is performed too.
//! Timers without delay are kept until the driver has time for them.
//!
//! Where a link has [batches](crate::batching), what may be said over it is held back once more, in
//! [`batches`], until enough of it is there or it has waited for long. Where none has, which is the
//! default, a message for another node meets one question more, and nothing else does.
//!
//! What only a driver can do it does as the machine's [`Outside`]: it sends, appends to the log,
//! arms timers and tells clients. So what the simulator tests is what servers run.
//!
//! A driver that is compiled once meets the machine of whatever protocol as an [`AnyMachine`], and
//! is its [`Driver`]: messages and records pass between the two as bytes. An [`AnyProtocol`] makes
//! such machines.

mod any;
mod batches;
mod driver;
mod making;
mod records;
mod recoverable;

pub use any::AnyMachine;
pub use batches::BatchCounts;
pub use driver::{Driver, Encode, Note, OutgoingMessage};
pub use making::{AnyProtocol, MessageInfo, Typed, has_validators};
pub use records::{Decoding, Records};
pub use recoverable::RecoverableMachine;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use batches::{Batches, Next};

use crate::contract::{Answer, Effect, Effects, Envelope, Operation, Protocol};
use crate::deadlines::Due;
use crate::ids::{NodeId, OpId};
use crate::judgement::{Rejection, Sender};
use crate::node::Node;
use crate::outcome::Failure;
use crate::positions::LogPosition;
use crate::roles::Role;
use crate::time::Nanos;
use crate::timers::MachineTimer;

/// What a driver does for the machine of a node.
pub trait Outside<P: Protocol> {
    /// What the driver keeps with an answer while that waits for the log.
    type Note;
    /// The [list](Effects::list) of effects is going to be performed.
    fn begin(&mut self, effects: &mut Effects<P>);
    /// Sends a message to another node.
    fn send(&mut self, node: &Node<P>, envelope: Envelope<P::Message>);
    /// Appends a record to the log.
    fn append(&mut self, role: Role, record: P::Record);
    /// Has the machine's [`timer`](Machine::timer) called `after` so long, which is not at once.
    fn arm(&mut self, now: Nanos, timer: MachineTimer, after: Nanos);
    /// An operation is answered; whether the answer waits for the log.
    fn note(&mut self, result: &Result<Answer, Failure>, waits: bool) -> Self::Note;
    /// Tells a client the answer to its operation, which was [noted](Self::note).
    fn answer(
        &mut self,
        effects: &Effects<P>,
        op: OpId,
        result: Result<Answer, Failure>,
        note: Self::Note,
    );
}

#[derive(Clone, Debug)]
enum Gated<M, N> {
    Message(Envelope<M>),
    Answer(OpId, Result<Answer, Failure>, N),
}

/// A node, and what it said that waits; `N` is what the driver keeps with answers.
pub struct Machine<P: Protocol, N = ()> {
    /// The node. What is asked of it directly is to be [performed](Self::perform).
    pub node: Node<P>,
    /// What the node is given and appends to.
    pub effects: Effects<P>,
    stable: LogPosition,
    /// Clients are answered what depends on the log up to here: as far as that is stable, or all.
    answerable: LogPosition,
    gated: BTreeMap<LogPosition, Vec<Gated<P::Message, N>>>,
    left_over: VecDeque<(Role, u32)>,
    /// What may be said and is held back; `None`: nothing ever is.
    batches: Option<Box<Batches<P::Message>>>,
}

/// What can make a difference to what it does next, but for the time.
impl<P: Protocol, N: fmt::Debug> fmt::Debug for Machine<P, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { node, effects, stable, answerable: _, gated, left_over, batches } = self;
        let log = (&effects.positions, stable);
        let mut shown = f.debug_struct("Machine");
        shown.field("node", node).field("log", &log).field("gated", gated);
        shown.field("left_over", left_over);
        if let Some(batches) = batches {
            shown.field("batches", batches);
        }
        shown.finish_non_exhaustive()
    }
}

impl<P: Protocol, N: Clone> Clone for Machine<P, N>
where
    Node<P>: Clone,
{
    fn clone(&self) -> Machine<P, N> {
        Machine {
            node: self.node.clone(),
            effects: self.effects.clone(),
            stable: self.stable,
            answerable: self.answerable,
            gated: self.gated.clone(),
            left_over: self.left_over.clone(),
            batches: self.batches.clone(),
        }
    }
}

impl<P: Protocol, N> Machine<P, N> {
    /// The machine of a node that has replayed its log, of which nothing is left to be said.
    pub fn new(node: Node<P>, effects: Effects<P>) -> Machine<P, N> {
        let (gated, left_over) = (BTreeMap::new(), VecDeque::new());
        let batches = Batches::new(node.settings().batching);
        let (stable, answerable) = (LogPosition(0), LogPosition(0));
        Machine { node, effects, stable, answerable, gated, left_over, batches }
    }

    /// From here on clients are answered before the log is stable: what they were told may be lost
    /// with the process, the newest first. What roles say to each other waits as always, so that
    /// no transaction is torn.
    pub fn answer_at_once(&mut self) {
        self.answerable = LogPosition(u64::MAX);
    }

    /// Performs what the node asked for.
    #[inline]
    pub fn perform(&mut self, outside: &mut impl Outside<P, Note = N>) {
        if !self.effects.list.is_empty() {
            self.perform_all(outside);
        }
    }

    fn perform_all(&mut self, outside: &mut impl Outside<P, Note = N>) {
        // Speaking to the node itself makes further effects.
        while !self.effects.list.is_empty() {
            outside.begin(&mut self.effects);
            let mut list = std::mem::take(&mut self.effects.list);
            for effect in list.drain(..) {
                self.perform_one(effect, outside);
            }
            if self.effects.list.is_empty() {
                self.effects.list = list;
            }
        }
    }

    fn perform_one(
        &mut self,
        effect: Effect<P::Message, P::Record>,
        outside: &mut impl Outside<P, Note = N>,
    ) {
        match effect {
            Effect::Send { envelope, after } if after <= self.stable => {
                self.route(envelope, outside);
            }
            Effect::Send { envelope, after } => self.gate(after, Gated::Message(envelope)),
            Effect::Complete { op, result, after } => {
                let waits = after > self.answerable;
                let note = outside.note(&result, waits);
                match waits {
                    true => self.gate(after, Gated::Answer(op, result, note)),
                    false => outside.answer(&self.effects, op, result, note),
                }
            }
            Effect::Log { role, record } => outside.append(role, record),
            Effect::SetTimer { role, timer, after: Nanos(0) } => {
                self.left_over.push_back((role, timer));
            }
            Effect::SetTimer { role, timer, after } => {
                outside.arm(self.effects.now, MachineTimer::Role(role, timer), after);
            }
        }
    }

    fn gate(&mut self, after: LogPosition, gated: Gated<P::Message, N>) {
        self.gated.entry(after).or_default().push(gated);
    }

    fn route(&mut self, envelope: Envelope<P::Message>, outside: &mut impl Outside<P, Note = N>) {
        match envelope.to.node == self.node.id() {
            true => self.node.deliver(envelope, &mut self.effects),
            false if self.batches.is_none() => outside.send(&self.node, envelope),
            false => self.hold_back(envelope, outside),
        }
    }

    /// Takes a message for another node to the queue of its link.
    #[cold]
    fn hold_back(
        &mut self,
        envelope: Envelope<P::Message>,
        outside: &mut impl Outside<P, Note = N>,
    ) {
        let Machine { node, effects, batches: Some(batches), .. } = self else { return };
        let (now, to) = (effects.now, envelope.to.node);
        let placement = node.catalog().placement;
        let bytes = P::wire_bytes(&envelope.message);
        match batches.take(now, (envelope, bytes), placement, |to| node.link_class(to)) {
            Next::Wait => {}
            Next::Leave => batches.release(now, to, &mut |it| outside.send(node, it)),
            Next::Arm(number, after) => outside.arm(now, MachineTimer::Batches(number), after),
        }
    }

    /// Sends what is held back for batches, without waiting for more: a driver does so while its
    /// node ends. Whether there was anything.
    pub fn send_held(&mut self, outside: &mut impl Outside<P, Note = N>) -> bool {
        let Machine { node, effects, batches: Some(batches), .. } = self else { return false };
        let any = !batches.is_empty();
        batches.release_all(effects.now, &mut |it| outside.send(node, it));
        any
    }

    /// The link to a node is gone: what is held back for it goes the way of what was said before,
    /// and the node is told.
    pub fn unlinked(&mut self, other: NodeId, outside: &mut impl Outside<P, Note = N>) {
        let Machine { node, effects, batches, .. } = self;
        if let Some(batches) = batches {
            batches.unlinked(effects.now, other, &mut |it| outside.send(node, it));
        }
        node.unlinked(other, effects);
        self.perform(outside);
    }

    /// What became of messages that were held back for batches.
    pub fn batch_counts(&self) -> BatchCounts {
        self.batches.as_ref().map_or_else(BatchCounts::default, |batches| batches.counts())
    }

    /// The log is stable up to here.
    pub fn learn_stable(&mut self, stable: LogPosition) {
        self.stable = self.stable.max(stable);
        self.answerable = self.answerable.max(stable);
    }

    /// Says what waited for what is stable, in the order of what it waited for, and performs what
    /// follows. Whether there was anything.
    pub fn let_go(&mut self, outside: &mut impl Outside<P, Note = N>) -> bool {
        let mut any = false;
        while let Some(entry) = self.gated.first_entry()
            && *entry.key() <= self.stable
        {
            any = true;
            for gated in entry.remove() {
                match gated {
                    Gated::Message(envelope) => self.route(envelope, outside),
                    Gated::Answer(op, result, note) => {
                        outside.answer(&self.effects, op, result, note);
                    }
                }
            }
        }
        self.perform(outside);
        any
    }

    /// Up to where the log must be stable for everything to be said that waits; `None`: nothing
    /// does.
    pub fn waits_for(&self) -> Option<LogPosition> {
        self.gated.last_key_value().map(|(after, _)| *after)
    }

    /// Up to where the log must be stable for the first of that to be said.
    pub fn waits_first_for(&self) -> Option<LogPosition> {
        self.gated.first_key_value().map(|(after, _)| *after)
    }

    /// Whether something waits for the log that the node says to itself.
    pub fn sends_to_itself(&self) -> bool {
        let own = |gated: &Gated<P::Message, N>| match gated {
            Gated::Message(envelope) => envelope.to.node == self.node.id(),
            Gated::Answer(..) => false,
        };
        self.gated.values().flatten().any(own)
    }

    /// Up to where the log is stable.
    pub fn stable(&self) -> LogPosition {
        self.stable
    }

    /// Takes another process's message to the node, which judges it, and performs what follows.
    ///
    /// # Errors
    /// It is left out, for this reason, which the node has counted.
    pub fn receive(
        &mut self,
        sender: Sender,
        envelope: Envelope<P::Message>,
        outside: &mut impl Outside<P, Note = N>,
    ) -> Result<(), Rejection> {
        self.node.receive(sender, envelope, &mut self.effects)?;
        self.perform(outside);
        Ok(())
    }

    /// A timer that was [armed](Outside::arm) has come.
    pub fn timer(&mut self, timer: MachineTimer, outside: &mut impl Outside<P, Note = N>) {
        match timer {
            MachineTimer::Role(role, timer) => self.node.timer(role, timer, &mut self.effects),
            MachineTimer::Batches(number) => self.batch_timer(number, outside),
        }
        self.perform(outside);
    }

    fn batch_timer(&mut self, number: u32, outside: &mut impl Outside<P, Note = N>) {
        let Machine { node, effects, batches: Some(batches), .. } = self else { return };
        let next = batches.on_timer(effects.now, number, &mut |it| outside.send(node, it));
        if let Some((number, after)) = next {
            outside.arm(effects.now, MachineTimer::Batches(number), after);
        }
    }

    /// Does what was due at a deadline that has come.
    pub fn meet(&mut self, due: Due, outside: &mut impl Outside<P, Note = N>) {
        match due {
            Due::Wake(waker) => waker.wake(),
            Due::Abort(txn, after_ms) => {
                let abort = Operation::Abort(txn, Failure::TransactionTimeout { after_ms });
                self.node.operate(abort, &mut self.effects);
                self.perform(outside);
            }
        }
    }

    /// Whether a timer without delay is left over.
    pub fn has_left_over(&self) -> bool {
        !self.left_over.is_empty()
    }

    /// Calls the next timer without delay; false: there is none. A driver asks for these after what
    /// was said has left, for no longer than [`SLICE`](crate::operations::SLICE) at a time.
    pub fn go_on(&mut self, outside: &mut impl Outside<P, Note = N>) -> bool {
        let next = self.left_over.pop_front();
        if let Some((role, timer)) = next {
            self.timer(MachineTimer::Role(role, timer), outside);
        }
        next.is_some()
    }
}
