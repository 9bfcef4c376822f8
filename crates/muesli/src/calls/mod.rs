//! One-round transactions: calls of procedures, and what else is asked of the protocol itself.

pub(crate) mod invocation;
mod partitions;
