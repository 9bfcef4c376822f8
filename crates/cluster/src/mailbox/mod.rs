//! What waits on its way into a loop and out of it.
//!
//! Other threads hand jobs and commands over by the `entry_point`, whose `signal` wakes the loop;
//! `tasks` are the jobs that have begun. What a loop has for a connection waits in `outgoing`, and
//! `flow` counts what of it the other end has taken. A `pipe` is between two loops of one process.

pub(crate) mod entry_point;
pub(crate) mod flow;
pub(crate) mod outgoing;
pub(crate) mod pipe;
pub(crate) mod signal;
pub(crate) mod tasks;
