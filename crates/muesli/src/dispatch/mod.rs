//! How work gets to a loop from other threads, and its answer back.

pub(crate) mod oneshot;
pub(crate) mod report;
pub(crate) mod shipped;
