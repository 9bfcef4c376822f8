//! In which order a repository does its transactions, and the two modes that decide it.
//!
//! In *timestamp mode* transactions stand in a [`queue`] and are [applied](apply) in the order of
//! their timestamps, one after the other; where nothing conflicts, [out of order](out_of_order) or
//! in [parallel]. In [*locking mode*](locking) nothing waits for its turn, and what is under way
//! locks what it touches. [`unresponsive`] says when a repository goes into locking mode because
//! another one does not answer. `active` is what both know of a transaction under way.

pub(in crate::granola) mod active;
pub mod apply;
pub mod locking;
pub mod out_of_order;
pub mod parallel;
pub(super) mod queue;
pub mod unresponsive;
