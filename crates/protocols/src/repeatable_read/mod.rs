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

use muesli_core::{Isolation, NodeId, Txn};

use crate::bumper::Reader;
use crate::two_phase::policy::{installing, locking, order, participation, reading, validation};
use crate::two_phase::{self, Scalar, TwoPhase, Variant};

/// The protocol.
pub type RepeatableRead = TwoPhase<NewestVersions>;

/// When keys are locked that a transaction writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockTime {
    /// With each write, while the transaction runs (encounter time).
    #[default]
    Write,
    /// When the commit prepares.
    Commit,
}

/// What its users choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The family's choices.
    pub family: two_phase::Rules,
    /// When keys are locked.
    pub lock_time: LockTime,
}

#[cfg(feature = "sabotage")]
impl two_phase::Sabotage<two_phase::FamilySwitch> for Rules {
    fn set(&mut self, rule: two_phase::FamilySwitch, holds: bool) {
        self.family.set(rule, holds);
    }
}

impl Rules {
    /// Locks are taken at the commit.
    pub fn at_commit() -> Rules {
        Rules { lock_time: LockTime::Commit, ..Rules::default() }
    }
}

/// Its way: the newest versions are read, and never looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewestVersions {}

impl Variant for NewestVersions {
    const NAME: &'static str = "repeatable-read";
    const ISOLATION: Isolation = Isolation::RepeatableRead;
    type Rules = Rules;
    type Reader = Reader;
    type Reading = reading::NewestOnce;
    type Participation = participation::Genuine;
    type Locking = locking::AtWriteOrPrepare;
    type Validation = validation::NoTransaction;
    type Order = order::ByTimestamp;
    type Installing = installing::AtCommitTimestamp;

    two_phase::keeps_nothing!();
    two_phase::goes_by_timestamps!();

    fn rules(rules: &Rules) -> two_phase::Rules {
        rules.family
    }

    fn locks_at_writes(rules: &Rules) -> bool {
        rules.lock_time == LockTime::Write
    }

    fn reader(node: NodeId, incarnation: u32, txn: Txn) -> Reader {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        (pair(node.0, incarnation), pair(txn.slot, txn.generation))
    }
}

impl Scalar for NewestVersions {}
