//! The family of protocols that commit in two phases, with a coordinator and scalar timestamps.
//!
//! # What is shared
//! A coordinator runs transactions for the clients of its node: it reads keys here by a call and
//! elsewhere by requests that are repeated, to another replica each time, until they are answered;
//! buffers writes; and at the commit divides the transaction among the repositories that hold its
//! keys, gathers their votes, and tells all of them the decision until each has acknowledged it. A
//! participant keeps the versions and locks of a repository, the queue of what it has voted yes
//! on, and what it voted for as long as anybody may ask. Where a coordinator dies, the others find
//! the outcome by themselves ([`participant`]): it is a function of the votes, which are stable.
//!
//! # What differs
//! A [`Variant`] says what a read leaves behind, when it waits, what a vote tells, what the votes
//! decide, and which versions are then installed. It is a type parameter: what a protocol does not
//! need is not in its code.
//!
//! # Folders
//! Each uses those above it only:
//!
//! * [`policy`] has what a protocol or its user chooses, and the rules that tests break;
//! * `variant` is where a protocol departs from others, and [`time`] in it what a repository knows
//!   of time;
//! * [`message`] has all messages and log records, `wire` their bytes, `sizes` how long they are;
//! * [`scalar`] is the time of a single timestamp;
//! * `table` keeps the transactions that are prepared at a repository, and how others ended;
//! * `shown_votes` are the votes that a client shows with the end of its transaction;
//! * [`participant`] keeps a repository: reads, locks, validation, votes, checkpoints;
//! * [`coordinator`] runs transactions: reads, scans, commits, the watermark;
//! * [`validator`] is an inner node of a tree that votes climb;
//! * [`delayed`] has actions and procedures that are run when their transaction is applied;
//! * `judge` checks messages and records of other processes before they change any state.

use std::fmt;
use std::marker::PhantomData;

use muesli_core::contract::{Isolation, Protocol};
use muesli_core::{Catalog, Nanos, NodeId, Rejection, ServiceId, View};

use self::policy::DecidePolicy;
use self::validator::gathering::Gathering;

pub mod coordinator;
pub mod delayed;
mod judge;
pub mod message;
pub mod participant;
pub mod policy;
pub mod scalar;
mod shown_votes;
mod table;
pub mod validator;
mod variant;

pub use coordinator::Coordinator;
pub use message::{Message, Record};
pub use participant::Participant;
pub use policy::{Breakable, FamilySwitch, LockWaits, Sabotage, Switches, TreeSwitch};
pub(crate) use scalar::goes_by_timestamps;
pub use scalar::{Scalar, ScalarTime};
pub use variant::state::{PreparedKeys, VariantState};
pub use variant::time::{self, CommitPlace, NotServed, Reading, Snapshot, Time};
pub use variant::{DelayedTimeWarp, Key, Reader, ReaderBounds, ValidationResult, Variant};

/// What the machines of the family are given with each input.
type Context<'a, V> = muesli_core::Context<'a, TwoPhase<V>>;

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
    type Message = Message<V>;
    type Record = Record<V>;
    type Switches = V::Switches;
    type Coordinator = Coordinator<V>;
    type Participant = Participant<V>;
    type Service = V::Service;
    const TIMESTAMP_STEP: Option<Nanos> = None;
    const REPLICATES_ITSELF: bool = false;
    const KEEPS_COPIES: bool = false;
    const KEEPS_OLD_VERSIONS: bool = true;

    fn isolation(_: &Self::Switches) -> Isolation {
        V::ISOLATION
    }

    fn services(switches: &V::Switches, node: NodeId, catalog: &Catalog) -> Vec<ServiceId> {
        match V::POLICIES.deciding {
            DecidePolicy::ByCoordinator => Vec::new(),
            DecidePolicy::AsChosen => {
                Gathering::new(V::tree(switches).decider, catalog).living_on(node)
            }
        }
    }

    fn wire_bytes(message: &Message<V>) -> usize {
        message.wire_bytes()
    }

    fn record_bytes(record: &Record<V>) -> usize {
        record.bytes()
    }

    fn is_about(message: &Message<V>, catalog: &Catalog) -> bool {
        message::wire::is_about(message, catalog)
    }

    /// What is validated at the commit is current then, by whatever the protocol validates updates
    /// with: reads of strict readers are, except under a protocol that validates no reads at all.
    fn offers_strict(_: &V::Switches) -> bool {
        V::POLICIES.validation.has_reads()
    }

    fn has_masters(_: &V::Switches) -> bool {
        false
    }

    fn may_start_empty(switches: &V::Switches) -> bool {
        V::POLICIES.moving.may_move() && V::moves(switches)
    }

    fn is_for_all(_: &Message<V>) -> bool {
        false
    }

    fn is_for_any(_: &Message<V>) -> bool {
        false
    }

    fn judge(message: &Message<V>, view: View<'_>) -> Result<(), Rejection> {
        judge::judge(message, view)
    }

    fn as_client(message: &Message<V>, node: NodeId) -> Option<Message<V>> {
        judge::as_client(message, node)
    }

    fn message_name(message: &Message<V>) -> &'static str {
        message.name()
    }
}
