//! The database handle: its sessions, its spaces, and the loops that it reaches.

pub(crate) mod compacted;
pub(crate) mod handle;
mod loops;
mod spaces;
mod tokens;
