//! The handle of a database.

pub(crate) mod handle;
