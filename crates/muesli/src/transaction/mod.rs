//! A running transaction: its handle, its operations, and its end.

pub(crate) mod commit;
pub(crate) mod explicit;
pub mod later;
pub(crate) mod operation;
pub(crate) mod rerun;
pub(crate) mod tx;
