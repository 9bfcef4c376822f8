//! In which order a repository applies decided transactions.

use std::fmt::Debug;

/// In which order decided transactions are applied.
pub trait ApplyOrder: Copy + Debug + 'static {
    /// Whether they leave a commit queue in the order of their timestamps.
    const QUEUES: bool;
}

/// In the order of their timestamps, from a commit queue.
#[derive(Clone, Copy, Debug)]
pub enum ByTimestamp {}

impl ApplyOrder for ByTimestamp {
    const QUEUES: bool = true;
}

/// As their decisions arrive.
#[derive(Clone, Copy, Debug)]
pub enum AsDecided {}

impl ApplyOrder for AsDecided {
    const QUEUES: bool = false;
}
