//! Granola: one-round transactions, ordered by timestamps that their participants agree on
//! (Cowling's thesis, MIT 2012).
//!
//! # The problem
//! Locks and aborts are what transactions over several repositories cost. Most of what a busy
//! application does needs neither: a short procedure whose keys are known when it is called, that
//! either never refuses or refuses everywhere alike.
//!
//! # The idea
//! A client sends such a transaction to its participants in one round. Each proposes a timestamp
//! above all that it has done and all that the session has seen, writes the request to its log,
//! and sends the proposal to the others; the highest one is the transaction's place, the same for
//! all. Each does its transactions in the order of their places, one after the other, and answers.
//! There are no locks, no conflicts and no coordinator: three message delays and one write to a
//! log. A transaction that must be able to refuse at one repository by data that only it has, needs
//! votes on that, too, and locks while they are under way: a repository that takes part in one is
//! in *locking mode* until it is over.
//!
//! # Folders
//! [`message`] is what the roles say to each other and what they log, with its bytes, its sizes and
//! the evidence that clients show. `locator` says which repository holds which partition, `judge`
//! what is refused as it comes in, and [`Switches`] are the switches. [`coordinator`] is the
//! client's proxy: one-round transactions and interactive ones on top, the requests under way, and,
//! for Sinfonia, the master that decides. [`participant`] keeps a repository:
//!
//! - [`votes`](participant::votes): how participants agree on a timestamp;
//! - [`modes`](participant::modes): in which order transactions are done, in timestamp mode and in
//!   locking mode;
//! - `execution`: how their parts are run over the keys that are here;
//! - `outcomes`: what is remembered of those that are over;
//! - [`copies`](participant::copies): what readers at copies are answered from;
//! - [`migration`](participant::migration): how a partition moves to another repository;
//! - [`failures`](participant::failures): checkpoints, replay, and clients that are gone.
//!
//! No two of these use each other: a test in `tests/project_rules` draws the graph.

use muesli_core::contract::{Isolation, Protocol};
use muesli_core::{Catalog, Nanos, NodeId, Rejection, View};

pub mod coordinator;
mod judge;
pub mod locator;
pub mod message;
pub mod participant;
mod switches;

pub use coordinator::Coordinator;
pub use message::{Message, Record};
pub use participant::Participant;
pub use switches::{GranolaSwitch, LockingExit, Ordering, SharedData, Switches};

/// The protocol.
#[derive(Clone, Copy, Debug)]
pub enum Granola {}

impl Protocol for Granola {
    const NAME: &'static str = "granola";
    const TIMESTAMP_STEP: Option<Nanos> = Some(Nanos(1 << participant::clock::STEP_BITS));
    const REPLICATES_ITSELF: bool = false;
    const KEEPS_COPIES: bool = true;
    const KEEPS_EVERYWHERE: bool = true;
    const KEEPS_OLD_VERSIONS: bool = false;
    type Message = Message;
    type Record = Record;
    type Switches = Switches;
    type Coordinator = Coordinator;
    fn isolation(_: &Self::Switches) -> Isolation {
        Isolation::Serializable
    }

    muesli_core::protocol_without_services!();
    type Participant = Participant;

    fn wire_bytes(message: &Message) -> usize {
        message.wire_bytes()
    }

    fn record_bytes(record: &Record) -> usize {
        record.bytes()
    }

    fn is_about(message: &Message, catalog: &Catalog) -> bool {
        message::wire::is_about(message, catalog)
    }

    fn judge(message: &Message, view: View<'_>) -> Result<(), Rejection> {
        judge::judge(message, view)
    }

    fn as_client(message: &Message, node: NodeId) -> Option<Message> {
        judge::as_client(message, node)
    }

    /// Timestamps come from clocks, and a session knows but its own highest: the order keeps real
    /// time as far as clocks agree (4.4.3), which is no promise. A minitransaction holds all its
    /// locks from before its decision until after it, whatever the clocks say.
    fn offers_strict(switches: &Switches) -> bool {
        switches.has_master()
    }

    fn has_masters(switches: &Switches) -> bool {
        switches.has_master()
    }

    fn is_for_all(_: &Message) -> bool {
        false
    }

    fn is_for_any(message: &Message) -> bool {
        matches!(message, Message::Request(request) if request.follower_read)
    }

    fn message_name(message: &Message) -> &'static str {
        message.name()
    }
}
