//! Hierarchical deferred validation (Amaro, *A Distributed and Hierarchical Architecture for
//! Deferred Validation of Transactions in Key-Value Stores*, 2018, chapter 3): votes climb a tree
//! of validators, and the lowest one that covers a transaction decides it.
//!
//! # The problem
//! In two-phase commit a coordinator is told by every participant, and tells every one: in a large
//! database each link carries a vote now and then, in a message of its own. Most transactions touch
//! few repositories that are near each other.
//!
//! # The idea
//! Repositories are the leaves of a tree. A leaf validates what it holds, votes to the
//! [validator](crate::two_phase::validator) above it, and each validator passes on what is not its
//! own to decide, one vote for all below. Votes of many transactions go up the same few links, and
//! share messages. Readers have snapshots, and are not validated.
//!
//! How a leaf keeps others from replacing what an undecided update has read is for the user to
//! [choose](Exclusion); this is where the thesis has two variants.
//!
//! *By locks.* Until its end is known, an update holds the locks of what it read, shared, and of
//! what it writes, alone. Whoever meets one is refused.
//!
//! *By intervals* (the thesis: timestamps). A vote is an interval: it proposes a timestamp p, and
//! says up to which one, u, what was read here stays the newest. Until the end is known, the leaf
//! puts whoever writes such a key above u. Validators merge votes to the largest p and the least u,
//! and the update commits at the largest p, if that is not above the least u. Several may be about
//! to write a key; each version goes where it lies, whoever is decided first.
//!
//! # Why it is safe
//! * A read at a snapshot raises the leaf's clock to it before it is answered, and every later
//!   proposal is above: whoever writes a key later comes to lie above the snapshot. Who has voted
//!   already, and may lie within it, was proposed at or below the snapshot, and is waited for. So a
//!   snapshot has exactly what lies at or below it.
//! * With locks, what an update read is the newest up to where it lies, and no key has versions out
//!   of order: the leaf's clock passes its final timestamp before its locks are released.
//! * With intervals, a read of an update at f is the newest up to f: it was when the leaf voted,
//!   and nobody was about to write it, for then the leaf refuses; who writes the key later, while
//!   the update is undecided, comes to lie above u, which is not below f; and after that above f,
//!   which the leaf's clock has passed. So updates at their timestamps, with the readers at theirs,
//!   are a serial order. Two updates that read nothing of each other may write the same key: the
//!   later version is the later one.
//! * The final timestamp is the largest proposal, and a leaf that refuses ends it: both are
//!   functions of stable votes, whoever gathers them. Locks carry their owners.
//!
//! Updates need no order of application, as who shares a key is kept apart, or reads a snapshot.
//!
//! # Deviations
//! As printed neither variant is serializable, and the queue of stable timestamps is not live;
//! `docs/inside/protocols/hierarchy.md` has the reasons. Here the commit request names who takes
//! part, a validator waits for those of them that are below it, values do not climb the tree, and
//! what was decided is applied as it comes. The interval is not in the thesis, whose leaf refuses
//! too little.

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

pub use crate::two_phase::policy::Exclusion;

/// The protocol.
pub type HierarchicalValidation = TwoPhase<Leaves>;

/// Its way: leaves validate what they hold, and validators decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {}

impl Variant for Leaves {
    const NAME: &'static str = "hierarchy";
    const POLICIES: Policies = Policies {
        locking: LockPolicy::AtPrepareOrNever,
        waiting: WaitPolicy::ForWritesOrNone,
        order: ApplyOrder::AsDecided,
        deciding: DecidePolicy::AsChosen,
        ..Policies::SCORE
    };
    const ISOLATION: Isolation = Isolation::Serializable;
    type Service = Validator<Leaves>;
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

impl Scalar for Leaves {
    fn yes(proposal: Timestamp, validation: &ValidationResult) -> IntervalVote {
        IntervalVote::new(proposal, validation.reach.filter(|_| validation.has_read))
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
