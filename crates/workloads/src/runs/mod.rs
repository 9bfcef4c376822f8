//! Runs of a workload, whichever it is: [`embedded`], [`simulated`] with models of
//! [`machines`], and [`connected`] to a cluster under faults; how dense they are ([`tempo`]), who
//! comes and goes meanwhile, whose messages wait for each other, what trees there are, and what
//! each protocol promises of the outcome.

pub(crate) mod batches;
pub mod connected;
pub mod embedded;
pub(crate) mod guarantees;
pub(crate) mod guest;
pub(crate) mod lingering;
pub mod machines;
pub(crate) mod pauses;
pub mod simulated;
pub mod tempo;
pub(crate) mod trees;
