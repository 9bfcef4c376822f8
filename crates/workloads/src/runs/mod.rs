//! Runs of a workload, whichever it is: [`embedded`], [`simulated`] with models of
//! [`machines`] in [`racks`], and [`connected`] to a cluster under faults; how dense they are ([`tempo`]), who
//! comes and goes meanwhile, whose messages wait for each other, and what each protocol promises of
//! the outcome.

pub(crate) mod batches;
pub mod connected;
pub mod embedded;
pub(crate) mod guarantees;
pub(crate) mod guest;
pub(crate) mod lingering;
pub mod machines;
pub(crate) mod pauses;
pub mod racks;
pub mod simulated;
pub mod tempo;
