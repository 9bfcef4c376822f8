//! A loop's node with what surrounds it: what a process does for the machine of its node.

use std::sync::Arc;

use muesli_core::issuance::{Issuer, Proof};
use muesli_core::operations::{Alarm, Alarms, PendingOperations};
use muesli_core::{
    Address, Answer, AnyMachine, Catalog, Driver, Encode, Environment, Failure, MachineTimer,
    Nanos, NodeId, Note, OpId, OutgoingMessage, Reader, Rejection, Role, Sender, Timestamp,
    Traffic, WireError,
};

use crate::mailbox::outgoing::{Outbox, Proves};
use crate::storage::log::{Log, LogFailure};
use crate::storage::node_log::NodeLog;
use crate::storage::timestamp_lease::{LeaseError, TimestampLease};

/// What the machine did, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCounts {
    /// What was said to others and asked of the system.
    pub traffic: Traffic,
    /// Messages to nodes that were not connected: lost, as a broken link loses them.
    pub unsent: u64,
    /// Messages that do not fit into a frame.
    pub oversize: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
}

/// A node and what surrounds it in a process.
pub(crate) struct LoopState {
    pub machine: Box<dyn AnyMachine>,
    pub outside: Process,
    pub random: fastrand::Rng,
    /// Of a client that has one: what it may have seen, on the disk.
    pub lease: Option<TimestampLease>,
}

/// What a process does for its node.
pub(crate) struct Process {
    pub operations: PendingOperations,
    pub alarms: Alarms,
    pub outbox: Outbox,
    pub counts: LoopCounts,
    pub(crate) log: Option<NodeLog>,
    /// The key that servers share; clients have none.
    pub issuer: Option<Issuer>,
    /// Of a client: the largest proof that a server gave it.
    pub proven: Proof,
    frame_bytes_max: usize,
}

impl Process {
    /// What is said from now on to the other side, where one of the two is a client, proves this.
    fn proves(&self, issued: impl Fn() -> Timestamp) -> Proves {
        match self.issuer {
            Some(issuer) => Proves::Issued(issuer, issued()),
            None => Proves::Shown(self.proven),
        }
    }
}

impl Driver for Process {
    fn begin(&mut self, _: &mut Environment) {}

    fn send(&mut self, outgoing_message: OutgoingMessage<'_>) {
        let OutgoingMessage { from, to, message, issued, .. } = outgoing_message;
        let Some(place) = self.outbox.place_of(to.node) else {
            self.counts.unsent += 1;
            return;
        };
        let most = self.frame_bytes_max;
        if self.outbox.at(place).proves.is_some() {
            self.outbox.at(place).proves = Some(self.proves(issued));
        }
        if self.outbox.to(place).message(from.role, to.role, message, most) {
            self.counts.traffic.messages += 1;
        } else {
            self.counts.oversize += 1;
        }
    }

    fn append(&mut self, role: Role, record: &dyn Encode, _bytes: usize) {
        if let Some(log) = &mut self.log {
            log.append(role, record);
        }
    }

    fn arm(&mut self, now: Nanos, timer: MachineTimer, after: Nanos) {
        self.alarms.set(now + after, Alarm::Timer(timer));
    }

    fn note(&mut self, _: &Result<Answer, Failure>, _waits: bool) -> Note {
        Note::default()
    }

    fn answer(&mut self, _: &Environment, op: OpId, result: Result<Answer, Failure>, _: Note) {
        self.operations.answer(op, result);
    }
}

impl LoopState {
    pub fn new(
        machine: Box<dyn AnyMachine>,
        log: Box<dyn Log>,
        frame_bytes_max: usize,
    ) -> LoopState {
        let outside = Process {
            operations: PendingOperations::default(),
            alarms: Alarms::default(),
            outbox: Outbox::default(),
            counts: LoopCounts::default(),
            log: Some(NodeLog::new(log)),
            issuer: None,
            proven: Proof::default(),
            frame_bytes_max,
        };
        LoopState { machine, outside, random: fastrand::Rng::new(), lease: None }
    }

    /// Begins: the repositories set their timers.
    pub fn start(&mut self) {
        self.machine.start(&[]);
        self.machine.perform(&mut self.outside);
    }

    /// Takes another process's message to the node, which judges it, and performs what follows.
    /// What is left out is counted by the node, and its sender says it again if it matters.
    ///
    /// # Errors
    /// The bytes are no message. Inside: it is left out, for this reason.
    pub fn receive(
        &mut self,
        sender: Sender,
        addresses: (Address, Address),
        message: &mut Reader<'_>,
    ) -> Result<Result<(), Rejection>, WireError> {
        self.machine.receive(sender, addresses, message, &mut self.outside)
    }

    /// Who sent messages that came from a client, by the proof that came with them.
    pub fn client(&self, proof: Proof) -> Sender {
        let proven = self.outside.issuer.map_or(Timestamp::ZERO, |issuer| issuer.proven(proof));
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
        self.outside.proven = self.outside.proven.max(proof);
        Ok(())
    }

    /// Messages pass between the node and `node`, over the connection at `place`: `proven` where
    /// one of them is a client.
    pub fn link(&mut self, place: usize, node: NodeId, proven: bool) {
        let LoopState { machine, outside, .. } = self;
        outside.outbox.name(place, node);
        outside.outbox.at(place).proves = proven.then(|| outside.proves(|| machine.issued()));
        machine.linked(node, outside);
    }

    /// The connection at `place` is gone.
    pub fn unlink(&mut self, place: usize, node: Option<NodeId>) {
        let LoopState { machine, outside, .. } = self;
        let was_reached = node.filter(|node| outside.outbox.place_of(*node) == Some(place));
        // First, so that what a role says to it now goes to a new connection.
        outside.outbox.close(place, node);
        if let Some(node) = was_reached {
            machine.environment_mut().links.clear(node);
            machine.unlinked(node, outside);
        }
    }

    /// No connection to `node` could be made.
    pub fn miss(&mut self, node: NodeId) {
        let LoopState { machine, outside, .. } = self;
        if outside.outbox.place_of(node).is_none() {
            machine.unlinked(node, outside);
        }
    }

    /// What was sent to `node` up to now, at `place`, has been counted.
    pub fn note_sent(&mut self, place: usize, node: NodeId, now: Nanos) {
        let outgoing = self.outside.outbox.at(place);
        let is_open = outgoing.is_open();
        if !is_open && outgoing.flow.is_outstanding() {
            outgoing.flow.mark(now);
        }
        if (is_open || outgoing.flow.is_outstanding())
            && self.machine.environment().links.since(node).is_none()
        {
            self.machine.environment_mut().links.set(node, now);
        }
    }

    /// `node`, at `place`, has taken so many bytes of messages since its connection came up.
    pub fn note_taken(&mut self, place: usize, node: NodeId, bytes: u64) {
        let outgoing = self.outside.outbox.at(place);
        let upto = outgoing.flow.take(bytes);
        if !outgoing.flow.is_outstanding() && !outgoing.is_open() {
            self.machine.environment_mut().links.clear(node);
        } else if let Some(upto) = upto {
            self.machine.environment_mut().links.set(node, upto + Nanos(1));
        }
    }

    /// The node goes by this catalog, as far as it is newer.
    pub fn place(&mut self, catalog: Arc<Catalog>) {
        self.machine.place(catalog, &mut self.outside);
    }

    /// Rings the alarms that are due; true if there were any.
    pub fn ring_alarms(&mut self) -> bool {
        let LoopState { machine, outside, .. } = self;
        let mut any = false;
        for due in outside.alarms.deadlines.due(machine.environment().now) {
            any = true;
            machine.meet(due, outside);
        }
        while let Some(alarm) = outside.alarms.due(machine.environment().now) {
            any = true;
            match alarm {
                Alarm::Sleep(op) => outside.operations.answer(op, Ok(Answer::Awake)),
                Alarm::Timer(timer) => machine.timer(timer, outside),
            }
        }
        any
    }

    /// Ends the transactions that take operations.
    pub fn abort_open(&mut self) {
        self.machine.abort_open(&mut self.outside);
    }

    /// The process ends in an orderly way: says what others need not keep for it.
    pub fn leave(&mut self) {
        self.machine.leave(&mut self.outside);
    }

    /// Sends what is held back for batches.
    pub fn send_held(&mut self) {
        self.machine.send_held(&mut self.outside);
    }

    /// Up to which record of all lives of the process its log is stable.
    pub fn kept(&self) -> u64 {
        self.outside.log.as_ref().map_or(0, |log| log.kept())
    }

    /// Whether something is to be said or answered that waits for the log.
    pub fn is_gated(&self) -> bool {
        self.machine.waits_for().is_some()
    }

    /// Does the next of what is left over; false: nothing is.
    pub fn go_on(&mut self) -> bool {
        self.machine.go_on(&mut self.outside)
    }

    /// When something is to be done next.
    pub fn next(&self) -> Option<Nanos> {
        match self.machine.has_left_over() {
            true => Some(Nanos(0)),
            false => self.outside.alarms.next(),
        }
    }

    /// Begins to make stable what something waits for, and lets go what waited for what is stable
    /// now.
    ///
    /// # Errors
    /// The log failed: the process must stop.
    pub fn settle_log(&mut self) -> Result<(), LogFailure> {
        loop {
            let (waits_for, logged) = (self.machine.waits_for(), self.machine.logged());
            let Some(log) = &mut self.outside.log else { return Ok(()) };
            let Some(stable) = log.settle(waits_for, logged)? else { return Ok(()) };
            self.machine.learn_stable(stable);
            if !self.machine.let_go(&mut self.outside) {
                return Ok(());
            }
        }
    }

    /// Begins to make stable what nothing waits for, too.
    ///
    /// # Errors
    /// As [`settle_log`](Self::settle_log).
    pub fn settle_all(&mut self) -> Result<(), LogFailure> {
        let logged = self.machine.logged();
        self.outside.log.as_mut().map_or(Ok(()), |log| log.settle_all(logged))
    }

    /// Begins a checkpoint where one is due, or goes on with the one under way.
    ///
    /// # Errors
    /// The disk failed.
    pub fn go_on_with_checkpoint(&mut self) -> Result<(), LogFailure> {
        let now = self.now();
        let Some(log) = &mut self.outside.log else { return Ok(()) };
        if log.go_on_with_checkpoint(&mut *self.machine, now)? {
            self.outside.counts.checkpoints += 1;
        }
        Ok(())
    }

    /// Whether the loop should not sleep for long: there are pieces of a checkpoint to be handed
    /// over.
    pub fn is_checkpointing(&self) -> bool {
        self.outside.log.as_ref().is_some_and(NodeLog::is_checkpointing)
    }

    /// Whether so much waits for the log that no new work is taken.
    pub fn is_congested(&self) -> bool {
        self.outside.log.as_ref().is_some_and(NodeLog::is_congested)
    }

    /// Makes stable what was logged, and ends the log.
    ///
    /// # Errors
    /// The log failed.
    pub fn close_log(&mut self) -> Result<(), LogFailure> {
        self.outside.log.take().map_or(Ok(()), NodeLog::close)
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
        self.machine.environment().now
    }
}
