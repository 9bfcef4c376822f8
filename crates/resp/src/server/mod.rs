//! The server: connections, clients and their state, and what runs their commands.

mod blocked;
mod channels;
mod client;
mod config;
mod execute;
mod front;
pub(crate) mod options;
mod own;
pub(crate) mod running;
mod serve;
mod shared;
mod stats;
mod waker_thread;
