//! In which order a repository does its transactions, and the two modes that decide it.
//!
//! In *timestamp mode* transactions stand in a [`queue`] and are [applied](apply) in the order of
//! their timestamps, one after the other; where nothing conflicts, [out of order](out_of_order) or
//! in [parallel]. In [*locking mode*](locking) nothing waits for its turn, and what is under way
//! locks what it touches. [`unresponsive`] says when a repository goes into locking mode because
//! another one does not answer, `local` what is done in the call that asks for it. `active` is what
//! both know of a transaction under way.

pub(super) mod active;
pub mod apply;
mod local;
pub mod locking;
pub mod out_of_order;
pub mod parallel;
pub(super) mod queue;
pub mod unresponsive;

use muesli_core::{RepositoryId, Timestamp, TxnId};

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitQueue {
    /// Its place is known.
    Placed,
    /// It waits for votes, and the next one of this repository will lie above what is known of it;
    /// of `None` nothing is known.
    Behind(Option<RepositoryId>),
}

/// A timestamp with the transaction that stands there.
pub(super) type QueueKey = (Timestamp, TxnId);
