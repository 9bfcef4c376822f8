//! Data split over shards, each kept at several sites by a broadcast of its own; a transaction over
//! several shards gets one timestamp at all of them, and each certifies its own keys.
//!
//! # The problem
//! Under the [certified protocols](crate::certified) each site has all data, and all commits pass
//! one broadcast. Data that is large, or whose parts are wanted in different places, is to be
//! split; then a broadcast orders the commits of a part only. Orders that are chosen independently
//! form cycles: of two transactions that touch two parts one may come first in the one part, and
//! the other one in the other part. Neither part can see that, and what both have read is newest in
//! each.
//!
//! # The idea
//! Repositories that keep the same keys are a *shard*. Its members agree by a broadcast on one
//! order of all commands of the shard, and so on all of its state. A part of that is a clock, which
//! commands alone change. A transaction is prepared in each shard of its keys: where its command is
//! delivered, it is given the next value of that clock. The shards tell each other, and the largest
//! of these is its timestamp. (Fritzke and others 1998 order messages to several groups so; Skeen
//! to several processes.) A shard certifies a transaction once its clock has come to that timestamp
//! and all transactions below that are in its way have ended. It tells the others whether it
//! objects. The transaction commits if none does. Then its end is put into the order of each shard,
//! after which the other shards need not remember it for that one.
//!
//! # The argument
//! *One order.* Whatever is prepared later in a shard gets a timestamp above its clock. So once the
//! clock has come to a transaction's timestamp, all that will ever be below it are known there, and
//! those in its way have ended before it is certified. Each shard thus certifies as if
//! transactions came one by one in the order of timestamps, which is one order over all shards. No
//! two have the same: each is a proposal of one shard, with that shard's number, and a shard
//! proposes each counter once.
//!
//! *One outcome.* What a shard proposes, and whether it objects, follows from its order alone and
//! from outcomes of earlier transactions: all of its members say the same. So it does not matter
//! which of them is asked, nor who asks again, and nobody is waited for but a majority of each
//! shard. A shard to which a transaction never came refuses it when it is asked by one that waits:
//! a command like others, so that either it or the preparation comes first. By a refusal another
//! shard ends a transaction only through its own order. A shard that has forgotten a transaction
//! might refuse it again; it forgets only what has ended in the orders of all.
//!
//! *Nobody waits in a circle.* A transaction waits for timestamps, which wait for nobody, and for
//! ends of transactions with smaller timestamps.
//!
//! *Reads.* All reads of a transaction are at one timestamp. A member answers once its clock has
//! come there and no transaction at or below it is in the way of what is read, so the answer holds
//! for ever. A transaction that only reads is therefore part of the same order, and ends without a
//! message. One that writes has its reads certified at its own timestamp.
//!
//! *Sessions.* A transaction says which timestamps its client has seen; it reads, and is given
//! proposals, beyond these. Order in real time between clients is not kept: two shards' clocks have
//! nothing to do with each other before somebody uses both. A transaction that asks for that order
//! first has each shard, and not only those of its keys, put a command into its order, and goes on
//! beyond the clocks at which these come: whatever was answered before lies below one of them.
//!
//! # Where it departs from the certified protocols
//! * The broadcast orders all commands of a shard totally, whatever they touch: its clock needs
//!   that. What may go on beside each other is seen after the order, by the same objects.
//! * Versions are named by timestamps, and a snapshot is one.
//! * Any member answers for its shard, so that a coordinator goes to another one at any time.
//! * Who waits for a change is told by one member of each shard.

pub mod coordinator;
mod judge;
pub mod locator;
pub mod message;
pub mod participant;
mod switches;

use muesli_core::{
    Catalog, Isolation, NoService, NodeId, Protocol, Rejection, ServiceId, StalenessSupport, View,
};

pub use coordinator::ShardedCoordinator;
pub use message::{Message, Record};
pub use participant::ShardMember;
pub use switches::{ShardedSwitch, Switches};

pub(crate) type Context<'a> = muesli_core::Context<'a, Sharded>;

/// Certification in shards, each ordered by the broadcast that its [switches](Switches) name.
#[derive(Clone, Copy, Debug)]
pub struct Sharded;

impl Protocol for Sharded {
    const NAME: &'static str = "sharded";
    const REPLICATES_ITSELF: bool = true;
    type Message = Message;
    type Record = Record;
    type Switches = Switches;
    type Coordinator = ShardedCoordinator;
    type Participant = ShardMember;
    type Service = NoService;
    const TIMESTAMP_STEP: Option<muesli_core::Nanos> = None;
    const KEEPS_OLD_VERSIONS: bool = true;
    const KEEPS_COPIES: bool = false;

    fn isolation(_: &Switches) -> Isolation {
        Isolation::Serializable
    }

    fn services(_: &Switches, _: NodeId, _: &Catalog) -> Vec<ServiceId> {
        Vec::new()
    }

    muesli_core::protocol_measured_by_encoding!();

    fn is_about(message: &Message, catalog: &Catalog) -> bool {
        judge::is_about(message, catalog)
    }

    fn judge(message: &Message, view: View<'_>) -> Result<(), Rejection> {
        judge::judge(message, view)
    }

    fn as_client(_: &Message, _: NodeId) -> Option<Message> {
        None
    }

    fn offers_strict(_: &Switches) -> bool {
        true
    }

    fn staleness(_: &Switches) -> StalenessSupport {
        StalenessSupport::Bounded
    }

    fn has_shards(_: &Switches) -> bool {
        true
    }

    fn has_masters(_: &Switches) -> bool {
        false
    }

    fn is_for_all(_: &Message) -> bool {
        false
    }

    fn is_for_any(_: &Message) -> bool {
        false
    }
}
