//! What goes over a connection, as bytes and as values.
//!
//! Everything travels in [frames](frame). The first ones are those of the handshake ([`hello`]),
//! with proofs of the cluster's secret ([`proof`]); afterwards frames carry the protocol's
//! messages, signs of life, and what drivers say to each other ([`control`]). `judgement` tests
//! the latter before anything changes. Nothing here reads or writes a socket.

pub mod challenge;
pub mod control;
pub mod frame;
pub mod hello;
pub mod ids;
pub(crate) mod judgement;
pub mod progress;
pub mod proof;
pub(crate) mod protocol_name;
pub mod refusal;
