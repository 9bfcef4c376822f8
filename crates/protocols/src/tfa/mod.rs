//! TFA, the transactional forwarding algorithm for objects with owners (Turcu's dissertation,
//! 2015, chapter 3; Saad and Ravindran, 2011).
//!
//! # The problem
//! Data that one node uses for a while is best kept there. So each object has one owner, and there
//! is one version of it, the newest: no snapshot can be read from the past. What does a running
//! transaction see, and who commits?
//!
//! # The idea
//! A transaction starts at the time of its node. A read takes the newest version, and leaves the
//! owner's clock at or above the start. Where a version is newer than that, the start is
//! *forwarded* to the owner's clock, if all that was read before is still the newest there is then
//! (early validation); otherwise the transaction is run again. The commit locks what is written,
//! checks that what was read is the newest, and puts the versions above the clocks of all who
//! take part.
//!
//! Who has lost often has an age, and what it reads is kept for it from younger writers
//! ([`KeptKeys`]).

use muesli_core::{Isolation, NoService};

use crate::two_phase::policy::{
    ApplyOrder, MovePolicy, Policies, ReadPolicy, Validation, WaitPolicy,
};
use crate::two_phase::{self, Scalar, TwoPhase, Variant};

mod state;
mod switches;

pub use state::{KeptKeys, TransactionAge};
pub use switches::{Placement, Switches};

/// The protocol.
pub type Tfa = TwoPhase<OwnedObjects>;

/// Its way: one version of each object, read where its owner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedObjects {}

impl Variant for OwnedObjects {
    const NAME: &'static str = "tfa";
    const POLICIES: Policies = Policies {
        reading: ReadPolicy::NewestForwarded,
        waiting: WaitPolicy::ForWritesOrNone,
        validation: Validation::EveryTransaction,
        order: ApplyOrder::AsDecided,
        moving: MovePolicy::ToCommitter,
        ..Policies::SCORE
    };
    const ISOLATION: Isolation = Isolation::StrictSerializable;
    type Service = NoService;
    type Switches = Switches;
    type ProtocolState = KeptKeys;
    type Reader = TransactionAge;

    two_phase::goes_by_timestamps!();

    fn waits_for_locks(_: &Switches) -> bool {
        false
    }

    fn moves(switches: &Switches) -> bool {
        switches.choice == Placement::Moves
    }
}

impl Scalar for OwnedObjects {}
