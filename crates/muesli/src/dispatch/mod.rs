//! How work gets to a loop from other threads, and its answer back.

pub(crate) mod access;
pub(crate) mod block_on;
pub(crate) mod in_place;
mod lock_state;
pub(crate) mod oneshot;
pub(crate) mod queued_thread;
pub(crate) mod report;
pub(crate) mod shipped;
pub(crate) mod state_lock;
pub(crate) mod yield_now;
