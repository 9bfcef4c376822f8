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
//! # Rooms
//! [`coordinator`] is the client's proxy, with [`calls`] (one-round transactions), [`interactive`]
//! and [`commit`] (the others, on top), and [`pending`] (requests under way); [`master`] makes it
//! one that decides, for Sinfonia, and [`cases`] one that decides for others. [`participant`] keeps
//! a repository, with `active` (what it has taken up), [`requests`] (proposals and votes), `queue`
//! and `streams` (who waits for whom, and what votes imply), [`telling`] (what participants are
//! told of each other's data), [`turns`] and [`tasks`] (what is done when its turn has come),
//! [`passing`] (before its turn has come), [`together`] (at the same time as others), [`locking`],
//! [`blocked`] (a participant stays away), [`nearby`] (readers at copies), [`feed`] and [`copies`]
//! (caches), `memory`, [`replay`]
//! and [`checkpoint`]. Partitions move: [`owners`] (who holds which), [`mover`] (who has it done),
//! [`loading`] (the keys) and [`moving`] (the move itself). `ballots` is about clients that lie;
//! `sizes` and `wire` are about bytes.

use muesli_core::contract::{Isolation, Protocol};
use muesli_core::{Address, Catalog, Nanos, NodeId, Rejection, Sender, View};

mod active;
mod ballots;
pub mod blocked;
mod budget;
pub mod calls;
pub mod cases;
pub mod checkpoint;
mod clock;
pub mod commit;
pub mod coordinator;
pub mod copies;
mod early;
pub mod feed;
mod here;
pub mod interactive;
mod judge;
mod judge_record;
mod leaving;
mod limits;
pub mod loading;
pub mod locking;
mod looked;
pub mod master;
mod memory;
pub mod message;
pub mod mover;
pub mod moving;
pub mod nearby;
pub mod owners;
mod pages;
pub mod participant;
pub mod passing;
pub mod pending;
mod queue;
pub mod replay;
pub mod requests;
mod rules;
mod silent;
mod sizes;
mod streams;
pub mod tasks;
pub mod telling;
pub mod together;
pub mod turns;
mod wire;

pub use coordinator::Coordinator;
pub use message::{Message, Record};
pub use participant::Participant;
pub use rules::{Rules, WayBack};

/// The protocol.
#[derive(Clone, Copy, Debug)]
pub enum Granola {}

impl Protocol for Granola {
    const NAME: &'static str = "granola";
    const ISOLATION: Isolation = Isolation::Serializable;
    const TIMESTAMP_STEP: Option<Nanos> = Some(Nanos(1 << clock::STEP_BITS));
    const KEEPS_OLD_VERSIONS: bool = false;
    type Message = Message;
    type Record = Record;
    type Rules = Rules;
    type Coordinator = Coordinator;
    type Participant = Participant;

    fn wire_bytes(message: &Message) -> usize {
        message.wire_bytes()
    }

    fn record_bytes(record: &Record) -> usize {
        record.bytes()
    }

    fn is_about(message: &Message, catalog: &Catalog) -> bool {
        wire::is_about(message, catalog)
    }

    fn judge(
        message: &Message,
        from: Address,
        sender: Sender,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        judge::judge(message, from, sender, view)
    }

    fn as_client(message: &Message, node: NodeId) -> Option<Message> {
        judge::as_client(message, node)
    }

    /// Timestamps come from clocks, and a session knows but its own highest: the order keeps real
    /// time as far as clocks agree (4.4.3), which is no promise. A minitransaction holds all its
    /// locks from before its decision until after it, whatever the clocks say.
    fn offers_strict(rules: &Rules) -> bool {
        rules.master
    }

    fn has_masters(rules: &Rules) -> bool {
        rules.master
    }

    fn is_for_all(_: &Message) -> bool {
        false
    }

    fn is_for_any(message: &Message) -> bool {
        matches!(message, Message::Request(request) if request.nearby)
    }

    fn message_name(message: &Message) -> &'static str {
        message.name()
    }
}
