//! What a driver gives the nodes of a process: options, batching, memory, secrets, cores.

pub mod batching;
pub mod memory;
pub mod options;
pub mod parallel;
pub mod secret;
