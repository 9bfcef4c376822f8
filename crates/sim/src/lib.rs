//! x
pub mod latency;
pub mod network;
pub mod node;
pub mod queue;
pub mod random;
pub mod time;
pub mod topology;
