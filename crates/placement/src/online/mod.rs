//! Placement while servers run: which partitions should move to which repositories.
//!
//! # The problem
//! A placement that was right for yesterday's transactions is not for today's. Data can move while
//! they are used, but a move costs work, and one that is made for what was chance costs it for
//! nothing.
//!
//! # The idea
//! Servers [sample](muesli_core::recorder::accesses) which partitions transactions touch, and count
//! exactly how much each partition does. From the samples of all servers, in the order of their
//! timestamps ([`samples`]), refinement finds moves from where partitions are now ([`plan`]), by a
//! [model](work) of what transactions cost repositories. A move must pay for itself within a
//! horizon, and all of them together must be better on transactions that they were not learnt from.
//! Who repeats that is a [`PlacementFollower`]: it measures what came of the last moves, and takes
//! them back where they did not help.
//!
//! # Why a wrong sample does no harm
//! All of this proposes moves of whole partitions, and a move changes where keys are and nothing
//! else. Samples that are wrong, old or made up lead to a placement that is slower, which the next
//! measurement shows.

pub mod follow;
pub mod plan;
pub mod samples;
pub mod work;

pub use follow::{FollowDecision, PeriodShares, PlacementFollower};
pub use plan::{MovePlan, MoveTerms, MoveVerdict, PlannedMove, plan_moves};
pub use samples::{LivePartition, LivePlacement, ServerSamples, merged};
