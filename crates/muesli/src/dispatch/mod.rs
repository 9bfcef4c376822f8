//! How work gets to a loop from other threads, and its answer back.

pub(crate) mod block_on;
pub(crate) mod oneshot;
pub(crate) mod report;
pub(crate) mod shipped;
pub(crate) mod yield_now;
