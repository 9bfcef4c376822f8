//! The family of protocols that commit in two phases, with a coordinator and scalar timestamps.
//!
//! # What is shared
//! A coordinator runs transactions for the clients of its node: it reads keys here by a call and
//! elsewhere by requests that are repeated, to another replica each time, until they are answered;
//! buffers writes; and at the commit divides the transaction among the repositories that hold its
//! keys, gathers their votes, and tells all of them the decision until each has acknowledged it. A
//! participant keeps the versions and locks of a repository, the queue of what it has voted yes
//! on, and what it voted for as long as anybody may ask. Where a coordinator dies, the others find
//! the outcome by themselves ([`finish`]): it is a function of the votes, which are stable.
//!
//! # What differs
//! A [`Variant`] says what a read leaves behind, when it waits, what a vote tells, what the votes
//! decide, and which versions are then installed. It is a type parameter: what a protocol does not
//! need is not in its code.
//!
//! # Rooms
//! [`coordinator`] runs transactions, with [`operations`] (what its clients ask for), [`requests`]
//! (what is asked elsewhere), [`scans`] (ranges put together) and [`commit`]; [`participant`] keeps
//! a repository, with [`reads`], [`prepare`] (locks and validation), `waits` (who may wait for
//! whom), [`one_step`] (both phases in one), [`finish`] and [`checkpoint`]; [`gossip`] moves the
//! watermark; [`message`] has all that is said, and `judge` what is asked of it when it
//! comes from another process, with `ballots` where a client says how a transaction ended.

use std::fmt;
use std::marker::PhantomData;

use muesli_core::contract::{Isolation, Protocol};
use muesli_core::{Address, Catalog, Nanos, NodeId, Rejection, Sender, View};

mod answers;
mod ballots;
mod calls;
pub mod checkpoint;
pub mod commit;
pub mod coordinator;
pub mod delayed;
mod encounter;
mod failed;
pub mod finish;
pub mod gossip;
mod judge;
mod judge_record;
mod limits;
mod memory;
pub mod message;
pub mod one_step;
pub mod operations;
mod pages;
pub mod participant;
pub mod prepare;
pub mod reads;
pub mod requests;
mod rules;
pub mod scalar;
pub mod scans;
mod slot;
mod table;
pub mod time;
mod turns;
mod variant;
mod waiting_prepares;
mod waiting_reads;
mod waits;
mod wire;

pub use coordinator::Coordinator;
pub use message::{Message, Record};
pub use participant::Participant;
pub use rules::Rules;
pub use scalar::{Scalar, ScalarTime};
pub use time::{Snapshot, Time};
pub use variant::{DelayedInThePast, Key, Standing, Variant, Word};

/// The protocol of a variant.
#[derive(Clone, Copy)]
pub struct TwoPhase<V>(PhantomData<V>);

impl<V: Variant> fmt::Debug for TwoPhase<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(V::NAME)
    }
}

impl<V: Variant> Protocol for TwoPhase<V> {
    const NAME: &'static str = V::NAME;
    const ISOLATION: Isolation = V::ISOLATION;
    type Message = Message<V>;
    type Record = Record<V>;
    type Rules = V::Rules;
    type Coordinator = Coordinator<V>;
    type Participant = Participant<V>;
    const TIMESTAMP_STEP: Option<Nanos> = None;
    const KEEPS_OLD_VERSIONS: bool = true;

    fn wire_bytes(message: &Message<V>) -> usize {
        message.wire_bytes()
    }

    fn record_bytes(record: &Record<V>) -> usize {
        record.bytes()
    }

    fn is_about(message: &Message<V>, catalog: &Catalog) -> bool {
        wire::is_about(message, catalog)
    }

    /// What is validated at the commit is current then, by whatever the protocol validates updates
    /// with: reads of strict readers are, except under a protocol that validates no reads at all.
    fn offers_strict(_: &V::Rules) -> bool {
        V::VALIDATES_READS
    }

    fn has_masters(_: &V::Rules) -> bool {
        false
    }

    fn is_for_all(_: &Message<V>) -> bool {
        false
    }

    fn is_for_any(_: &Message<V>) -> bool {
        false
    }

    fn judge(
        message: &Message<V>,
        from: Address,
        sender: Sender,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        judge::judge(message, from, sender, view)
    }

    fn as_client(message: &Message<V>, node: NodeId) -> Option<Message<V>> {
        judge::as_client(message, node)
    }

    fn message_name(message: &Message<V>) -> &'static str {
        message.name()
    }
}
