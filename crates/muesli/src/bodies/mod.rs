//! Bodies of transactions: run, bounded in time, and run again after a conflict.

pub(crate) mod attempts;
pub(crate) mod direct;
pub(crate) mod failure;
pub(crate) mod handed;
pub(crate) mod in_state;
mod pooling;
pub(crate) mod timeout;
mod transact;
