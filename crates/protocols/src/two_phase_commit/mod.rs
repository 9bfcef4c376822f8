//! Two-phase commit with locks over multi-version optimistic validation: the base of comparison
//! "2PC+Locking" of Amaro's thesis (2018, appendix C).
//!
//! # The problem
//! What does a protocol gain over the plain way? This is the plain way: read versions at a
//! snapshot, and at the commit lock everything that was read or written, wherever it is, check
//! that nothing of it has changed, write, and unlock.
//!
//! # The idea
//! The first read fixes the snapshot; reads take the newest version at or below it, and wait for
//! tentative versions that may come to lie there. The commit goes to every repository with a key
//! that was read or written, for readers too: each *tries* to lock, without waiting, and checks
//! that the versions read are the newest. Its timestamp is above the snapshot and above what it
//! used before; the largest is final. A decided transaction is applied as its decision arrives:
//! there is no queue.
//!
//! # Why it is safe
//! At the moment at which the last vote is cast, all locks are held and everything read is the
//! newest there is: the transaction takes effect at that moment, readers too. So it is strictly
//! serializable. The timestamps order versions and serve the snapshots; without the queue, only
//! the waiting reads keep a snapshot whole, which is enough (see SCORe's rules).
//!
//! # Deviations
//! * As printed, a read does not raise a partition's clock, and the check compares the newest
//!   version with the snapshot. A partition whose clock is behind the snapshot can then install a
//!   version below it after it was read: the check passes, and an update is lost. Here reads raise
//!   the clock, so that nothing is installed below a snapshot that was read at.
//! * As printed, the first object's version is the snapshot, however old. Here it is the
//!   repository's clock; the reader of an old object would else find nothing but old versions.
//! * As printed, a client decides alone and a decision is sent once. Here votes are stable,
//!   decisions are repeated until they are acknowledged, and participants finish what a dead
//!   coordinator left, as everywhere in the family.
//!
//! `--protocol two-phase-commit-waiting` lets prepares wait for the locks of what they write, up to
//! `lock_wait`. A key that was read and is locked by a writer is refused all the same: it could
//! succeed only if the writer aborts.

use muesli_core::{Isolation, NoService};

use crate::two_phase::policy::{ApplyOrder, Policies, Validation, WaitPolicy};
use crate::two_phase::{self, Scalar, TwoPhase, Variant};

mod switches;

pub use switches::{Switches, WriteLocks};

/// The protocol.
pub type TwoPhaseCommit = TwoPhase<TryLocks>;

/// Its way: locks are tried, never waited for; everybody is validated; nobody queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryLocks {}

impl Variant for TryLocks {
    const NAME: &'static str = "two-phase-commit";
    const POLICIES: Policies = Policies {
        waiting: WaitPolicy::ForWritesOrNone,
        validation: Validation::EveryTransaction,
        order: ApplyOrder::AsDecided,
        ..Policies::SCORE
    };
    const ISOLATION: Isolation = Isolation::Serializable;
    type Service = NoService;
    type Switches = Switches;
    type ProtocolState = ();
    type Reader = ();

    two_phase::goes_by_timestamps!();

    fn waits_for_locks(switches: &Switches) -> bool {
        switches.choice == WriteLocks::WaitedFor
    }
}

impl Scalar for TryLocks {}
