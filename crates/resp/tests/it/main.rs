//! The server with clients over TCP.

mod blocking;
mod client;
mod clusters;
mod commands;
mod connections;
#[cfg(feature = "scripts")]
mod functions;
mod importing;
mod limits;
mod manual;
mod real_client;
mod restarts;
#[path = "../../../rdb/tests/it/sample.rs"]
mod sample;
#[cfg(feature = "scripts")]
mod script_limits;
#[cfg(feature = "scripts")]
mod script_retries;
#[cfg(feature = "scripts")]
mod scripts;
mod times;
mod transactions;
mod users;
#[allow(dead_code)] // One encoding is enough here.
#[path = "../../../rdb/tests/it/writer.rs"]
mod writer;
