//! What a driver does for a machine of whatever protocol.

use super::Outside;
use crate::contract::{Answer, Effects, Envelope, Environment, Protocol};
use crate::ids::{OpId, Timestamp};
use crate::node::Node;
use crate::outcome::Failure;
use crate::roles::{Address, Role};
use crate::time::Nanos;
use crate::timers::MachineTimer;
use crate::wire::Wire;

/// Something that can be written as bytes, whatever it is.
pub trait Encode {
    /// Appends it to `out`.
    fn encode_to(&self, out: &mut Vec<u8>);
}

impl<T: Wire> Encode for T {
    fn encode_to(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
}

/// What a driver keeps with an answer while that waits for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note(pub u64);

/// A message to another node.
pub struct OutgoingMessage<'a> {
    /// Who sends it.
    pub from: Address,
    /// Whom it is for.
    pub to: Address,
    /// The name of its kind, for traces.
    pub name: &'static str,
    /// Its size on the wire, in bytes, as [`Protocol::wire_bytes`] has it.
    pub bytes: usize,
    /// What it says.
    pub message: &'a dyn Encode,
    /// Tells the largest timestamp that members are known by the sender's node to have issued.
    pub issued: &'a dyn Fn() -> Timestamp,
}

/// What a driver does for the machine of a node, whatever its protocol: [`Outside`], with messages
/// and records that it can only write.
pub trait Driver {
    /// A batch of effects is going to be performed.
    fn begin(&mut self, environment: &mut Environment);
    /// Sends a message to another node.
    fn send(&mut self, outgoing: OutgoingMessage<'_>);
    /// Appends a record to the log, of so many bytes as [`Protocol::record_bytes`] has it.
    fn append(&mut self, role: Role, record: &dyn Encode, bytes: usize);
    /// Has the machine's [`timer`](super::AnyMachine::timer) called `after` so long, which is not
    /// at once.
    fn arm(&mut self, now: Nanos, timer: MachineTimer, after: Nanos);
    /// An operation is answered; whether the answer waits for the log.
    fn note(&mut self, result: &Result<Answer, Failure>, waits: bool) -> Note;
    /// Tells a client the answer to its operation, which was [noted](Self::note).
    fn answer(
        &mut self,
        environment: &Environment,
        op: OpId,
        result: Result<Answer, Failure>,
        note: Note,
    );
}

/// A driver, as a machine of one protocol sees it.
pub(super) struct Through<'a>(pub &'a mut dyn Driver);

impl<P: Protocol> Outside<P> for Through<'_> {
    type Note = Note;

    fn begin(&mut self, effects: &mut Effects<P>) {
        self.0.begin(&mut effects.environment);
    }

    fn send(&mut self, node: &Node<P>, envelope: Envelope<P::Message>) {
        let Envelope { from, to, message } = envelope;
        self.0.send(OutgoingMessage {
            from,
            to,
            name: P::message_name(&message),
            bytes: P::wire_bytes(&message),
            message: &message,
            issued: &|| node.issued(),
        });
    }

    fn append(&mut self, role: Role, record: P::Record) {
        self.0.append(role, &record, P::record_bytes(&record));
    }

    fn arm(&mut self, now: Nanos, timer: MachineTimer, after: Nanos) {
        self.0.arm(now, timer, after);
    }

    fn note(&mut self, result: &Result<Answer, Failure>, waits: bool) -> Note {
        self.0.note(result, waits)
    }

    fn answer(
        &mut self,
        effects: &Effects<P>,
        op: OpId,
        result: Result<Answer, Failure>,
        note: Note,
    ) {
        self.0.answer(&effects.environment, op, result, note);
    }
}
