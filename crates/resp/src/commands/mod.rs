//! Redis's commands: one table, of which dispatch, `COMMAND` and the manual are made.

mod bits;
mod generic;
mod hashes;
mod iterating;
mod lists;
pub(crate) mod many_keys;
pub mod page;
pub(crate) mod pattern;
pub(crate) mod roles;
#[cfg(feature = "scripts")]
mod scripting;
mod server;
mod sets;
mod sorted;
pub(crate) mod spec;
mod strings;
pub(crate) mod table;
mod times;
