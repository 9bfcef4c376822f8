//! Who is connected to a loop, and whom it has to connect to.
//!
//! `connection` is one connection and how far it has come; `targets` are those to be dialled;
//! `stream` is what it reads from and writes to, a socket or a `pipe` to another loop of the
//! process (`neighbours`); `peers` has all of them, with what a process knows about itself and the
//! others.

pub(crate) mod connection;
pub(crate) mod heights;
pub(crate) mod neighbours;
pub(crate) mod peers;
pub(crate) mod stream;
pub(crate) mod targets;
