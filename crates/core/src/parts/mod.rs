//! Parts shared by protocols; each knows none of them.
//!
//! * [`versions`]: the multi-version store of one space in one repository.
//! * [`execution`]: procedures run against the newest versions, their writes kept aside.
//! * [`spaces`]: the stores of a repository, by space.
//! * [`footprint_locks`]: locks on whole footprints, of the few whose fate is not known yet.
//! * [`queued_footprints`]: the same of those who stand in a queue: who may pass whom.
//! * [`locator`]: where things are: static, by owners with epochs, by hints; and copies of them.
//! * [`migration`]: a partition on its way from one repository to another.
//! * [`locks`]: lock words kept inside store entries, range locks, and owners.
//! * [`commit_queue`]: transactions ordered by timestamp, popped when ready and first.
//! * [`clock`]: the scalar clock of a repository.
//! * [`vector_clock`]: a number for every repository: how far its commits are known.
//! * [`commit_log`]: what was applied at a repository, and what of it a reader may see.
//! * [`votes`]: votes gathered from a known set, merged, decided once.
//! * [`read_timestamps`]: when keys were last read, and by whom.
//! * [`transaction`]: read set, write set and scans of a running transaction.
//! * [`levels`]: parts of a running transaction that can be undone alone.
//! * [`open`]: transactions that take operations, at a coordinator that buffers writes.
//! * [`single_repository`]: a coordinator that asks one repository for all, and what that says.
//! * [`watches`]: who waits for a change of what was read.
//! * [`window`]: values by numbers that are given out in order.
//! * [`watermark`]: the oldest snapshot that may still be read.

mod clocks;
mod commits;
pub mod execution;
mod footprints;
pub mod listed;
pub mod locator;
pub mod locks;
pub mod migration;
pub mod single_repository;
pub mod spaces;
mod transactions;
pub mod versions;
pub mod watches;
pub mod window;

pub use clocks::{clock, read_timestamps, vector_clock, watermark};
pub use commits::{commit_log, commit_queue, votes};
pub use footprints::{footprint_locks, queued_footprints};
pub use transactions::{levels, open, transaction};
