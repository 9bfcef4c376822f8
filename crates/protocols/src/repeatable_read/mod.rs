//! Repeatable read, as the base of comparison in GMU's evaluation (Peluso and others, 2012,
//! section VI): what the data grid below GMU offered before.
//!
//! # The idea
//! A read takes the newest version there is, wherever it is, and is in step with no other; the
//! transaction keeps what it saw, so that it sees it again. A key is locked at all its replicas as
//! it is written (`two_phase/participant/encounter_locks.rs`), and its client waits for that, up to
//! `lock_wait`: circles of waits end so. At the commit the locks pass to the prepare, in two
//! phases; what was read is checked by nobody.
//!
//! # What it promises
//! Nothing of aborted transactions and nothing half written is seen, no read changes within a
//! transaction, and writes of two transactions are in one order everywhere: locks are held from
//! the vote to the end, so that the later one votes after the earlier was applied. Updates can
//! still be lost, sums be wrong, and write skews pass; the checker shows them at any stronger
//! level.
//!
//! # Deviations
//! * A running transaction's locks go when nothing was heard of it for `in_doubt_after`: its
//!   coordinator may be dead. The prepare then takes them anew.
//!
//! `--protocol repeatable-read-at-commit` takes locks when the commit prepares, as this protocol
//! did before: then a client is not held up by its writes, and locks are held for a shorter time.

use muesli_core::{Isolation, NoService};

use crate::two_phase::policy::{LockPolicy, Policies, ReadPolicy, Validation};
use crate::two_phase::{self, Reader, Scalar, TwoPhase, Variant};

mod switches;

pub use switches::{LockTime, Switches};

/// The protocol.
pub type RepeatableRead = TwoPhase<NewestVersions>;

/// Its way: the newest versions are read, and never looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewestVersions {}

impl Variant for NewestVersions {
    const NAME: &'static str = "repeatable-read";
    const POLICIES: Policies = Policies {
        reading: ReadPolicy::NewestOnce,
        locking: LockPolicy::AtWriteOrPrepare,
        validation: Validation::NoTransaction,
        ..Policies::SCORE
    };
    const ISOLATION: Isolation = Isolation::RepeatableRead;
    type Service = NoService;
    type Switches = Switches;
    type ProtocolState = ();
    type Reader = Reader;

    two_phase::goes_by_timestamps!();

    fn locks_at_writes(switches: &Switches) -> bool {
        switches.choice == LockTime::Write
    }
}

impl Scalar for NewestVersions {}
