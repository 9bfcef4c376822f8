//! Processes from their start to their end.
//!
//! [`server`] and [`client`] put a loop together and run it, and [`process`] runs the loops of one
//! process. [`validation`] and `group_validation` say which configurations can be, and `open_files`
//! how many connections the system allows. [`visit`] is a connection without a loop: to ask a
//! server something. `lookout` uses it for a server whom nobody tells of changes.

pub mod client;
pub mod client_options;
pub(crate) mod group_validation;
pub(crate) mod lookout;
pub(crate) mod open_files;
pub mod options;
pub mod process;
pub mod server;
pub mod start_error;
pub mod validation;
pub mod visit;
