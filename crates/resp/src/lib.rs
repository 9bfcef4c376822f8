//! Redis clients for Muesli: a server that speaks RESP, and whose commands are serializable
//! transactions of the database, in one process or on a cluster.
//!
//! `docs/using/redis.md` has what it can do, `docs/inside/redis.md` how that is done.

mod call;
mod clock;
mod commands;
#[cfg(feature = "scripts")]
mod engine;
pub mod import;
mod keyspace;
pub mod protocol;
mod server;
mod users;

pub use commands::page::page;
pub use server::options::RespOptions;
pub use server::running::{RespListener, RespServer, RespStartError};
pub use users::{RespUsers, UserRole, UsersError};
