//! GMU (Peluso, Ruivo, Romano, Quaglia, Rodrigues: genuine multiversion update-serializable partial
//! data replication): snapshots are vectors, so that no clock is shared.
//!
//! # The problem
//! Under scalar timestamps a repository's clock must pass every snapshot that is read there:
//! whoever reads at a busy repository and then at an idle one moves the idle one's clock, and a
//! read may wait for a writer that it has nothing to do with. Nothing of this is needed for readers
//! to see *some* consistent snapshot.
//!
//! # The idea
//! A repository numbers what it commits, and a transaction carries a vector: how far it depends on
//! the commits of each repository. The first read at a repository takes in all commits there that
//! do not lie after what was read elsewhere, and from then on that entry is fixed. An update is
//! voted on as in the rest of the family; each vote brings what was committed there, and from all
//! of them comes a commit vector with one number for all repositories that hold a key written.
//! There it waits for its turn, by that number. A read waits until its repository has applied what
//! the reader already depends on; it never waits for locks, and a reader never aborts.
//!
//! # Why it is safe
//! * *Vectors are closed.* If a vector has number n of repository i, it is at least the whole
//!   commit vector of whoever got that number: numbers enter vectors only by maxima of whole
//!   commit vectors, and every participant's own entry is replaced by a number that was nobody's
//!   before.
//! * *Dependence goes into the vector.* Whoever reads or replaces a version depends on its writer,
//!   which was applied there, and so is in the vector of every later vote. Whoever replaces what an
//!   update has read prepares after that update was applied, for its shared lock is held as long.
//! * *A reader sees whole updates.* Of two repositories that hold an update's keys, say the reader
//!   reads first at i. If it takes the update in, its clock is at least the update's vector, and
//!   the other repository makes it wait until it has applied that. If it does not, although it was
//!   applied there, it lies after something read before, and the other repository sees that too; if
//!   it was not applied there, its number at i is above the reader's entry, which is fixed, and the
//!   other repository hides it. The same holds along chains of updates.
//! * *Updates* are validated under locks, with exact versions: their order is that of real time.
//!
//! Two readers may take in two unrelated updates in two orders: that is what extended update
//! serializability allows, and serializability does not.
//!
//! # Deviations
//! The algorithm as printed does not give what it promises; `docs/inside/protocols/gmu.md` has the
//! reasons, each a [`GmuSwitch`]: reads on one's own node wait too; visibility goes by whole
//! vectors; maxima are pointwise; only who has answered is marked as read; validation asks whether
//! the newest version was read or is visible at the reader's vector (as is a deletion that the
//! replica which was read had collected); numbers are never two transactions'. And a coordinator
//! begins its transactions where its earlier ones have been, so that sessions there see what they
//! did.

use muesli_core::{Isolation, NoService};

use crate::two_phase::policy::{Policies, ReadPolicy, Validation};
use crate::two_phase::{TwoPhase, Variant};

mod place;
mod snapshot;
mod switches;
mod time;

pub use place::{CommitVector, VectorVote};
pub use snapshot::Reads;
pub use switches::{GmuSwitch, Switches};
pub use time::VectorTime;

/// The protocol.
pub type Gmu = TwoPhase<Vectors>;

/// Its way: snapshots are vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {}

impl Variant for Vectors {
    const NAME: &'static str = "gmu";
    const POLICIES: Policies = Policies {
        reading: ReadPolicy::AtVector,
        validation: Validation::UpdatesAndRows,
        ..Policies::SCORE
    };
    const ISOLATION: Isolation = Isolation::ExtendedUpdateSerializable;
    type Service = NoService;
    type Switches = Switches;
    type ProtocolState = ();
    type Reader = ();
    type Snapshot = Reads;
    type Yes = VectorVote;
    type Place = CommitVector;
    type Time = VectorTime;
}
