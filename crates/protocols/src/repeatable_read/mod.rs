//! Repeatable read, as the base of comparison in GMU's evaluation (Peluso and others, 2012,
//! section VI): what the data grid below GMU offered before.
//!
//! # The idea
//! A read takes the newest version there is, wherever it is, and is in step with no other; the
//! transaction keeps what it saw, so that it sees it again. At the commit the keys written are
//! locked at all their replicas, in two phases; what was read is checked by nobody.
//!
//! # What it promises
//! Nothing of aborted transactions and nothing half written is seen, no read changes within a
//! transaction, and writes of two transactions are in one order everywhere: locks are held from
//! the vote to the end, so that the later one votes after the earlier was applied. Updates can
//! still be lost, sums be wrong, and write skews pass; the checker shows them at any stronger
//! level.
//!
//! # Deviations
//! * Locks are taken when the commit prepares, not with each write: here writes are buffered, and
//!   a client is not held up by them. That moves when conflicts are met, and not what is promised.

use muesli_core::{Isolation, Timestamp};

use crate::two_phase::{Rules, Scalar, ScalarTime, TwoPhase, Variant};

/// The protocol.
pub type RepeatableRead = TwoPhase<NewestVersions>;

/// Its way: the newest versions are read, and never looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewestVersions {}

impl Variant for NewestVersions {
    const NAME: &'static str = "rr";
    const ISOLATION: Isolation = Isolation::RepeatableRead;
    type Rules = Rules;
    type Keeper = ();
    type Reader = ();
    type Snapshot = Timestamp;
    type Yes = Timestamp;
    type Place = Timestamp;
    type Time = ScalarTime;

    const SNAPSHOTS: bool = false;
    const VALIDATES_READS: bool = false;

    fn rules(rules: &Rules) -> Rules {
        *rules
    }

    fn keeper(_rules: &Rules, _hash_seed: u64) {}
}

impl Scalar for NewestVersions {}
