//! Bodies of transactions: which run, and how often they were tried.

pub mod attempts;
pub mod running;
pub mod task_attempts;
