//! Hierarchical deferred validation with locks (Amaro, *A Distributed and
//! Hierarchical Architecture for Deferred Validation of Transactions in Key-Value Stores*, 2018,
//! chapter 3): votes climb a tree of validators, and the lowest one that covers a transaction
//! decides it.
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
//! # Why it is safe
//! * A read at a snapshot raises the leaf's clock to it before it is answered, and every later
//!   proposal is above: whoever writes a key later comes to lie above the snapshot. Who has voted
//!   already, and may lie within it, holds the key's lock with a proposal at or below the snapshot,
//!   and is waited for. So a snapshot has exactly what lies at or below it.
//! * Until its end is known, an update holds the locks of what it read, shared, and of what it
//!   writes, alone; and its leaf's clock passes its final timestamp before they are released. So
//!   what it read is the newest up to where it lies, and no key has versions out of order.
//! * The final timestamp is the largest proposal, and a leaf that refuses ends it: both are
//!   functions of stable votes, whoever gathers them. Locks carry their owners.
//!
//! Updates need no order of application, as what shares no key is read by snapshots alone.
//!
//! # Deviations
//! As printed the variant is not serializable, and its queue of stable timestamps is not live;
//! `docs/inside/protocols/hierarchy.md` has the reasons. Here the commit request names who takes
//! part, a validator waits for those of them that are below it, values do not climb the tree, and
//! what was decided is applied as it comes.

use muesli_core::Isolation;

use crate::hierarchy::LeafState;
use crate::two_phase::policy::{ApplyOrder, DecidePolicy, Policies, TreeChoice, WaitPolicy};
use crate::two_phase::validator::Validator;
use crate::two_phase::{self, Scalar, TwoPhase, Variant};

mod switches;

pub use switches::Switches;

/// The protocol.
pub type HierarchyByLocks = TwoPhase<LockingLeaves>;

/// Its way: leaves lock what they vote on, and validators decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockingLeaves {}

impl Variant for LockingLeaves {
    const NAME: &'static str = "hierarchy-locking";
    const POLICIES: Policies = Policies {
        waiting: WaitPolicy::ForWritesOrNone,
        order: ApplyOrder::AsDecided,
        deciding: DecidePolicy::AsChosen,
        ..Policies::SCORE
    };
    const ISOLATION: Isolation = Isolation::Serializable;
    type Service = Validator<LockingLeaves>;
    type Switches = Switches;
    type ProtocolState = LeafState;
    type Reader = ();

    two_phase::goes_by_timestamps!();

    fn waits_for_locks(_: &Switches) -> bool {
        false
    }

    #[inline]
    fn tree(switches: &Switches) -> TreeChoice {
        switches.choice
    }
}

impl Scalar for LockingLeaves {}
