//! SCORe: a scalable one-copy serializable partial replication protocol (Peluso, Romano and
//! Quaglia, Middleware 2012; described in Diegues and Romano's Bumper paper, section IV-A, and in
//! Turcu's dissertation, section 3.4).
//!
//! # The problem
//! Transactions read and write keys that live on several repositories, each key on some of them.
//! All transactions must seem to run one after the other, those that only read must never abort,
//! and only repositories that hold a key of a transaction may take part in it.
//!
//! # The idea
//! Every key keeps several versions, tagged by the timestamp of their transaction. A transaction
//! reads at one *snapshot*, fixed by its first read: the newest versions at or below it. An update
//! transaction commits in two phases: every repository that holds a key it read or wrote locks its
//! keys, checks that what was read is still newest, and *proposes* a timestamp above everything it
//! has served; the largest proposal is final (Skeen's rule), and every repository applies its
//! transactions in the order of their final timestamps, from a commit queue.
//!
//! # Why it is safe
//! Order transactions by final timestamp, each reader after everything at or below its snapshot.
//! Updates that conflict meet under conflicting locks at some repository, and the second one
//! prepares after the first was applied, so it is proposed a larger timestamp. A reader that was
//! served an old version of a key pushed the repository's clock to its snapshot first, so whoever
//! overwrites the key later is proposed more; and if a writer had proposed less before, the reader
//! waits until that writer is decided. So a snapshot is exactly the transactions at or below it.
//!
//! # Deviations
//! * Timestamps are pairs (counter, repository). The paper's plain integers can tie, and then one
//!   of two tied transactions can be applied and published before the other: a torn snapshot.
//! * A read waits for a lock only while its holder's *proposal* is at or below the snapshot, which
//!   contains the paper's escape (commitId at or above the snapshot) as a special case.
//! * A read of a locked key whose holder would make it stale is refused at prepare instead of
//!   waiting: it could succeed only if the holder aborts. Blind writes, and writes of keys that
//!   others have locked for reading, do wait, bounded.
//! * A transaction whose keys all live at one repository on the coordinator's node commits in one
//!   step, below whatever is queued there if there is room ([`ScalarClock::free_below`]), past it
//!   if not: readers wait by proposals, so nothing rests on the order of application.
//! * The coordinator keeps nothing stable. Votes are stable, the outcome is a function of them,
//!   and any participant can gather them ([`termination`]).
//!
//! [`termination`]: crate::two_phase::participant
//! [`ScalarClock::free_below`]: muesli_core::parts::clock::ScalarClock::free_below
//!
//! # Folders
//! Most of SCORe is what it shares with its family, in [`two_phase`](crate::two_phase); here stands
//! what is its own: a vote is a timestamp, the largest is final.

use muesli_core::{Isolation, NoService};

use crate::two_phase::policy::Policies;
use crate::two_phase::{self, Scalar, TwoPhase, Variant};

pub mod message;

pub use two_phase::{FamilySwitch, Switches};

/// The protocol.
pub type Score = TwoPhase<Snapshots>;
/// What is said.
pub type Message = two_phase::Message<Snapshots>;
/// What is kept.
pub type Record = two_phase::Record<Snapshots>;

/// SCORe's way: everything is read at a snapshot and lies at the largest timestamp proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {}

impl Variant for Snapshots {
    const NAME: &'static str = "score";
    const POLICIES: Policies = Policies::SCORE;
    const ISOLATION: Isolation = Isolation::Serializable;
    type Service = NoService;
    type Switches = Switches;
    type ProtocolState = ();
    type Reader = ();

    two_phase::goes_by_timestamps!();
}

impl Scalar for Snapshots {}
