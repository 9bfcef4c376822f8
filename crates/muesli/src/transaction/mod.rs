//! A running transaction: its handle, its operations, and its end.

mod checkpoints;
pub(crate) mod commit;
pub(crate) mod detour;
pub(crate) mod explicit;
pub(crate) mod level_objects;
mod nested;
pub(crate) mod open;
pub(crate) mod operation;
pub(crate) mod results;
pub(crate) mod retrying;
pub(crate) mod tx;
