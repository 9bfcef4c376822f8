//! Commands alone: how many a broadcast orders, how fast, and whether in one order.
//!
//! # The problem
//! Broadcasts are compared by what they themselves can do (Turcu 2015, section 10.3): commands are
//! ordered that nobody executes, without transactions above and disks below.
//!
//! # The idea
//! A [plan](CommandPlan) says which broadcast, what clients issue, and for how long. It is run in
//! one of two ways, by the same state machines: [simulated], on up to 99 nodes whose work costs
//! virtual time, the same for all broadcasts, and to the byte the same again with the same seed; or
//! [real], on threads of this machine that speak TCP, in the frames of the cluster's driver.
//!
//! Each run is [checked](OrderCheck) while it goes on: members deliver conflicting commands in one
//! order, and at its end all have delivered all commands. A run that orders wrongly is an error.

mod failure;
mod load;
mod member;
mod order;
mod outcome;
pub mod real;
pub mod simulated;

pub use failure::RunError;
pub use load::{CommandLoad, CommandPlan, NoPlan, PARAMETERS};
pub use order::{CommandDigest, OrderCheck, WrongOrder};
pub use outcome::{BusyShares, CommandLatency, CommandOutcome};
