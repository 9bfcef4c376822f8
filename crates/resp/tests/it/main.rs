//! The server with clients over TCP.

mod blocking;
mod client;
mod clusters;
mod commands;
mod connections;
mod limits;
mod manual;
mod real_client;
mod restarts;
mod transactions;
