//! What a driver gives the nodes of a process: options, memory, secrets, cores.

pub mod memory;
pub mod options;
pub mod parallel;
pub mod secret;
