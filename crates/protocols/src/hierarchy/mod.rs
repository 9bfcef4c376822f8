//! Hierarchical deferred validation with timestamps (Amaro, *A Distributed and
//! Hierarchical Architecture for Deferred Validation of Transactions in Key-Value Stores*, 2018,
//! chapter 3): votes climb a tree of validators, and nobody is refused for a key that others
//! are about to write.
//!
//! # The problem
//! With [locks](crate::hierarchy_locking) whoever writes a key that an undecided update reads or
//! writes is refused, and votes are under way for as long as they climb.
//!
//! # The idea
//! A vote is an interval. It proposes a timestamp p, and says up to which one, u, what was read
//! here stays the newest: until the end is known, the leaf puts whoever writes such a key above u.
//! Validators merge votes to the largest p and the least u, and the update commits at the largest
//! p, if that is not above the least u. Several may be about to write a key; each version goes
//! where it lies, whoever is decided first.
//!
//! # Why it is safe
//! * Snapshots are whole, as with locks: proposals are above the snapshots that were served, and a
//!   read waits for each writer of its key that was proposed at or below its snapshot.
//! * A read of an update at f is the newest up to f: it was when the leaf voted, and nobody was
//!   about to write it, for then the leaf refuses; who writes the key later, while the update is
//!   undecided, comes to lie above u, which is not below f; and after that above f, which the
//!   leaf's clock has passed.
//! * So updates at their timestamps, with the readers at theirs, are a serial order. Two updates
//!   that read nothing of each other may write the same key: the later version is the later one.
//!
//! # Deviations
//! Those of the variant with locks; and the interval is not in the thesis, whose leaf refuses too
//! little: `docs/inside/protocols/hierarchy.md`.

use muesli_core::{Isolation, Timestamp};

use crate::two_phase::policy::{
    ApplyOrder, DecidePolicy, LockPolicy, Policies, TreeChoice, WaitPolicy,
};
use crate::two_phase::validator::Validator;
use crate::two_phase::{Scalar, ScalarTime, TwoPhase, ValidationResult, Variant};

mod place;
mod state;
mod switches;

pub use place::IntervalVote;
pub use state::LeafState;
pub use switches::Switches;

/// The protocol.
pub type HierarchyByIntervals = TwoPhase<Intervals>;

/// Its way: votes are intervals, and validators decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intervals {}

impl Variant for Intervals {
    const NAME: &'static str = "hierarchy";
    const POLICIES: Policies = Policies {
        locking: LockPolicy::ByIntervals,
        waiting: WaitPolicy::ForWritesOrNone,
        order: ApplyOrder::AsDecided,
        deciding: DecidePolicy::AsChosen,
        ..Policies::SCORE
    };
    const ISOLATION: Isolation = Isolation::Serializable;
    type Service = Validator<Intervals>;
    type Switches = Switches;
    type ProtocolState = LeafState;
    type Reader = ();
    type Snapshot = Timestamp;
    type Yes = IntervalVote;
    type Place = Timestamp;
    type Time = ScalarTime;

    fn waits_for_locks(_: &Switches) -> bool {
        false
    }

    #[inline]
    fn tree(switches: &Switches) -> TreeChoice {
        switches.choice
    }
}

impl Scalar for Intervals {
    fn yes(proposal: Timestamp, validation: &ValidationResult) -> IntervalVote {
        IntervalVote::new(proposal, validation.has_read.then_some(validation.reach))
    }

    fn reads_hold_until(yes: IntervalVote) -> Timestamp {
        yes.upper_bound
    }

    fn can_be(yes: IntervalVote) -> bool {
        yes.proposal < yes.upper_bound
    }

    fn may_decide(yes: IntervalVote, place: Timestamp) -> bool {
        place <= yes.upper_bound
    }
}
