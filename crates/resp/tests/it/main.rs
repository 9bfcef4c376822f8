//! The server with clients over TCP.

mod blocking;
mod client;
mod clusters;
mod commands;
mod connections;
#[cfg(feature = "scripts")]
mod functions;
mod limits;
mod manual;
mod real_client;
mod restarts;
#[cfg(feature = "scripts")]
mod script_limits;
#[cfg(feature = "scripts")]
mod script_retries;
#[cfg(feature = "scripts")]
mod scripts;
mod times;
mod transactions;
mod users;
