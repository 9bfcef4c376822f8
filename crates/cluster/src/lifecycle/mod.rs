//! Processes from their start to their end.
//!
//! [`server`] and [`client`] put a loop together and run it, and [`process`] runs the loops of one
//! process. [`rules`] and `group_rules` say which configurations can be, and `open_files` how many
//! connections the system allows. [`visit`] is a connection without a loop: to ask a server
//! something. `lookout` uses it for a server whom nobody tells of changes.

pub mod client;
pub(crate) mod group_rules;
pub(crate) mod lookout;
pub(crate) mod open_files;
pub mod options;
pub mod process;
pub mod rules;
pub mod server;
pub mod start_error;
pub mod visit;
