//! x
pub mod clock;
pub mod costs;
pub mod disk;
pub mod fault;
pub mod latency;
pub mod network;
pub mod plan;
pub mod processor;
pub mod queue;
pub mod random;
pub mod time;
pub mod topology;
pub mod trace;
