//! The loop: what has come is taken to who handles it, and what that leads to leaves.
//!
//! `event_loop` is the loop as a value, and `tick` one turn of it: `arrivals` reads, `frames` takes
//! each frame to who handles it, `jobs` are those of other threads, `departures` writes. `stopping`
//! is how a loop ends that was told to, and `failure` why one ends by itself.

pub(crate) mod arrivals;
pub(crate) mod departures;
pub(crate) mod event_loop;
pub(crate) mod failure;
pub(crate) mod frames;
pub(crate) mod jobs;
pub(crate) mod stopping;
pub(crate) mod tick;
