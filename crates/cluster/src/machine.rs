//! A loop's node with what it waits for and what it has to say: where effects are performed.
//!
//! Log before speak is kept here: an effect that depends on log position N waits in `gated` until
//! the log says that N is stable. What is gated when the process dies was never said.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::deadlines::Due;
use muesli_core::issuance::{Issuer, Proof};
use muesli_core::operations::{Alarm, Alarms, Operations};
use muesli_core::{
    Answer, Catalog, Effect, Effects, Envelope, Failure, LogPosition, Nanos, Node, NodeId, OpId,
    Operation, Protocol, Rejection, Role, Sender, Timestamp, Traffic,
};

use crate::checkpoints::UnderWay;
use crate::log::{Log, LogFailure};
use crate::outgoing::{Outbox, Proves};
use crate::timestamp_lease::{LeaseError, TimestampLease};

/// What the machine did, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// What was said to others and asked of the system.
    pub traffic: Traffic,
    /// Messages to nodes that were not connected: lost, as a broken link loses them.
    pub unsent: u64,
    /// Messages that do not fit into a frame.
    pub oversize: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
}

enum Gated<M> {
    Message(Envelope<M>),
    Answer(OpId, Result<Answer, Failure>),
}

/// A node and its surroundings.
pub(crate) struct Machine<P: Protocol> {
    pub node: Node<P>,
    pub effects: Effects<P>,
    pub operations: Operations,
    pub alarms: Alarms,
    pub outbox: Outbox,
    pub counts: Counts,
    pub random: fastrand::Rng,
    pub(crate) log: Option<Box<dyn Log<P>>>,
    pub(crate) checkpoint: Option<UnderWay>,
    /// A checkpoint could not begin, and is not tried before.
    pub(crate) checkpoint_again: Nanos,
    /// So much waits for the log that no new work is taken.
    pub congested: bool,
    /// Why the log cannot be relied on any more: nothing that waits for it leaves.
    pub failure: Option<LogFailure>,
    /// Up to where a sync was asked for.
    asked: LogPosition,
    /// The key that servers share; clients have none.
    pub issuer: Option<Issuer>,
    /// Of a client: the largest proof that a server gave it.
    pub proven: Proof,
    /// Of a client that has one: what it may have seen, on the disk.
    pub lease: Option<TimestampLease>,
    gated: BTreeMap<LogPosition, Vec<Gated<P::Message>>>,
    stable: LogPosition,
    frame_bytes_max: usize,
}

impl<P: Protocol> Machine<P> {
    pub fn new(
        node: Node<P>,
        effects: Effects<P>,
        log: Box<dyn Log<P>>,
        frame_bytes_max: usize,
    ) -> Machine<P> {
        Machine {
            node,
            effects,
            operations: Operations::default(),
            alarms: Alarms::default(),
            outbox: Outbox::default(),
            counts: Counts::default(),
            random: fastrand::Rng::new(),
            log: Some(log),
            checkpoint: None,
            checkpoint_again: Nanos(0),
            congested: false,
            failure: None,
            asked: LogPosition(0),
            issuer: None,
            proven: Proof::default(),
            lease: None,
            gated: BTreeMap::new(),
            stable: LogPosition(0),
            frame_bytes_max,
        }
    }

    /// Takes another process's message to the node, which judges it, and performs what follows.
    /// What is left out is counted by the node, and its sender says it again if it matters.
    ///
    /// # Errors
    /// It is left out, for this reason.
    pub fn receive(
        &mut self,
        sender: Sender,
        envelope: Envelope<P::Message>,
    ) -> Result<(), Rejection> {
        self.node.receive(sender, envelope, &mut self.effects)?;
        self.perform();
        Ok(())
    }

    /// Who sent messages that came from a client, by the proof that came with them.
    pub fn client(&self, proof: Proof) -> Sender {
        let proven = self.issuer.map_or(Timestamp::ZERO, |issuer| issuer.proven(proof));
        Sender::Client { issued: proven }
    }

    /// A server proves to this client with a frame that timestamps up to one were issued, which is
    /// no less than any that its messages tell. When this returns, the client's lease covers it.
    ///
    /// # Errors
    /// The lease could not be written: the messages must not be taken.
    pub fn learn_issued(&mut self, proof: Proof) -> Result<(), LeaseError> {
        if let Some(lease) = &mut self.lease {
            lease.cover(proof.upto)?;
        }
        self.proven = self.proven.max(proof);
        Ok(())
    }

    /// Messages pass between the node and `node`, over the connection at `place`: `proven` where
    /// one of them is a client.
    pub fn link(&mut self, place: usize, node: NodeId, proven: bool) {
        self.outbox.name(place, node);
        self.outbox.at(place).proves = proven.then(|| self.proves());
        self.node.linked(node, &mut self.effects);
        self.perform();
    }

    /// What is said from now on to the other side, where one of the two is a client, proves this.
    fn proves(&self) -> Proves {
        match self.issuer {
            Some(issuer) => Proves::Issued(issuer, self.node.issued()),
            None => Proves::Shown(self.proven),
        }
    }

    /// The connection at `place` is gone.
    pub fn unlink(&mut self, place: usize, node: Option<NodeId>) {
        if let Some(node) = node.filter(|node| self.outbox.place_of(*node) == Some(place)) {
            self.effects.links.clear(node);
            self.node.unlinked(node);
        }
        self.outbox.close(place, node);
    }

    /// What was sent to `node` up to now, at `place`, has been counted.
    pub fn note_sent(&mut self, place: usize, node: NodeId, now: Nanos) {
        let outgoing = self.outbox.at(place);
        let is_open = outgoing.is_open();
        if !is_open && outgoing.flow.is_outstanding() {
            outgoing.flow.mark(now);
        }
        if (is_open || outgoing.flow.is_outstanding()) && self.effects.links.since(node).is_none() {
            self.effects.links.set(node, now);
        }
    }

    /// `node`, at `place`, has taken so many bytes of messages since its connection came up.
    pub fn note_taken(&mut self, place: usize, node: NodeId, bytes: u64) {
        let outgoing = self.outbox.at(place);
        let upto = outgoing.flow.take(bytes);
        if !outgoing.flow.is_outstanding() && !outgoing.is_open() {
            self.effects.links.clear(node);
        } else if let Some(upto) = upto {
            self.effects.links.set(node, upto + Nanos(1));
        }
    }

    /// The node goes by this catalog, as far as it is newer.
    pub fn place(&mut self, catalog: Arc<Catalog>) {
        self.node.place(catalog, &mut self.effects);
        self.perform();
    }

    /// Performs what the node asked for.
    #[inline]
    pub fn perform(&mut self) {
        // Speaking to the node itself makes further effects.
        while !self.effects.list.is_empty() {
            let mut list = std::mem::take(&mut self.effects.list);
            for effect in list.drain(..) {
                self.perform_one(effect);
            }
            if self.effects.list.is_empty() {
                self.effects.list = list;
            }
        }
    }

    fn perform_one(&mut self, effect: Effect<P::Message, P::Record>) {
        match effect {
            Effect::Send { envelope, after } if after <= self.stable => self.speak(envelope),
            Effect::Send { envelope, after } => self.gate(after, Gated::Message(envelope)),
            Effect::Complete { op, result, after } if after <= self.stable => {
                self.operations.answer(op, result);
            }
            Effect::Complete { op, result, after } => {
                self.gate(after, Gated::Answer(op, result));
            }
            Effect::Log { repository, record } => {
                if let (Some(log), None) = (&mut self.log, &self.failure) {
                    self.failure = log.append(repository, &record).err();
                }
            }
            Effect::SetTimer { role, timer, after } => {
                self.alarms.set_timer(self.effects.now, role, timer, after);
            }
        }
    }

    fn gate(&mut self, after: LogPosition, gated: Gated<P::Message>) {
        self.gated.entry(after).or_default().push(gated);
    }

    fn speak(&mut self, envelope: Envelope<P::Message>) {
        let Envelope { from, to, message } = envelope;
        if to.node == self.node.id() {
            self.node.deliver(Envelope { from, to, message }, &mut self.effects);
            return;
        }
        let Some(place) = self.outbox.place_of(to.node) else {
            self.counts.unsent += 1;
            return;
        };
        let most = self.frame_bytes_max;
        if self.outbox.at(place).proves.is_some() {
            self.outbox.at(place).proves = Some(self.proves());
        }
        if self.outbox.to(place).message(from.role, to.role, &message, most) {
            self.counts.traffic.messages += 1;
        } else {
            self.counts.oversize += 1;
        }
    }

    /// Rings the alarms that are due; true if there were any.
    pub fn ring_alarms(&mut self) -> bool {
        let mut any = self.meet_deadlines();
        while let Some(alarm) = self.alarms.due(self.effects.now) {
            any = true;
            match alarm {
                Alarm::Sleep(op) => self.operations.answer(op, Ok(Answer::Awake)),
                Alarm::Timer(role, timer) => self.timer(role, timer),
            }
        }
        any
    }

    /// Does what is due at deadlines that have come; true if there were any.
    fn meet_deadlines(&mut self) -> bool {
        let due = self.alarms.deadlines.due(self.effects.now);
        let any = !due.is_empty();
        for due in due {
            match due {
                Due::Wake(waker) => waker.wake(),
                Due::Abort(txn, after_ms) => {
                    let why = Failure::TransactionTimeout { after_ms };
                    self.node.operate(Operation::Abort(txn, why), &mut self.effects);
                    self.perform();
                }
            }
        }
        any
    }

    /// Ends the transactions that take operations.
    pub fn abort_open(&mut self) {
        self.node.abort_open(&mut self.effects);
        self.perform();
    }

    /// The process ends in an orderly way: says what others need not keep for it.
    pub fn leave(&mut self) {
        self.node.leave(&mut self.effects);
        self.perform();
    }

    /// Up to which record of all lives of the process its log is stable.
    pub fn kept(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.kept())
    }

    /// Whether something is to be said or answered that waits for the log.
    pub fn is_gated(&self) -> bool {
        !self.gated.is_empty()
    }

    /// Does the next of what is left over; false: nothing is.
    pub fn go_on(&mut self) -> bool {
        let left_over = self.alarms.left_over();
        if let Some((role, timer)) = left_over {
            self.timer(role, timer);
        }
        left_over.is_some()
    }

    fn timer(&mut self, role: Role, timer: u32) {
        self.node.timer(role, timer, &mut self.effects);
        self.perform();
    }

    /// Begins to make stable what something waits for, and lets go what waited for what is stable
    /// now.
    ///
    /// # Errors
    /// The log failed: the process must stop.
    pub fn settle_log(&mut self) -> Result<(), LogFailure> {
        loop {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            let waits = self.gated.last_key_value().is_some_and(|(after, _)| *after > self.asked);
            if waits || self.congested {
                self.sync()?;
            }
            let Some(log) = self.log.as_mut().filter(|_| !self.gated.is_empty()) else {
                return Ok(());
            };
            self.stable = self.stable.max(log.stable()?);
            if !self.let_go() {
                return Ok(());
            }
        }
    }

    /// Begins to make stable what nothing waits for, too.
    ///
    /// # Errors
    /// As [`settle_log`](Self::settle_log).
    pub fn settle_all(&mut self) -> Result<(), LogFailure> {
        if self.effects.logged > self.asked { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), LogFailure> {
        let Some(log) = &mut self.log else { return Ok(()) };
        self.asked = self.effects.logged;
        self.congested = log.sync()?;
        Ok(())
    }

    /// Says what waited for what is stable; false if there was nothing.
    fn let_go(&mut self) -> bool {
        let mut any = false;
        while let Some(entry) = self.gated.first_entry()
            && *entry.key() <= self.stable
        {
            any = true;
            for gated in entry.remove() {
                match gated {
                    Gated::Message(envelope) => self.speak(envelope),
                    Gated::Answer(op, result) => self.operations.answer(op, result),
                }
            }
            self.perform();
        }
        any
    }

    /// Makes stable what was logged, and ends the log.
    ///
    /// # Errors
    /// The log failed.
    pub fn close_log(&mut self) -> Result<(), LogFailure> {
        self.log.take().map_or(Ok(()), Log::close)
    }

    /// Ends the log, and the lease of a client. Without that the lease is longer than it needs to
    /// be, which does no harm: a failure is not told.
    ///
    /// # Errors
    /// The log failed.
    pub fn close_files(&mut self) -> Result<(), LogFailure> {
        if let Some(mut lease) = self.lease.take() {
            let _ = lease.give_back();
        }
        self.close_log()
    }

    /// The time of this turn.
    pub fn now(&self) -> Nanos {
        self.effects.now
    }
}
