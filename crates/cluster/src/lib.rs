//! Muesli over TCP: the driver whose nodes are processes.
//!
//! # The problem
//! The same nodes that run embedded and simulated are to run on machines that crash, hang, send
//! garbage and lose each other, and a slow one among them must not make the others' memory grow.
//!
//! # The idea
//! One loop per process ([`turn`]) is one node, over one poller. A turn reads once from each
//! connection, steps the node, and writes once per destination, so that system calls, which are
//! what such a driver costs, are shared by all messages of the turn. Client processes run the
//! same loop with no repositories: their transactions are coordinated there, and servers are
//! spoken to directly.
//!
//! # Why it keeps the contract
//! A link between two nodes is one TCP connection: messages arrive in order, and when it breaks,
//! an unknown suffix is lost. What cannot be sent (no connection, too long for a frame) is lost
//! like a suffix; protocols say it again. Effects leave in order, and one that depends on a log
//! position waits until the [`log`] says that it is stable. Bytes are judged at the door: frames
//! carry checksums, decoders are safe on any bytes, and messages that name what is not there are
//! left out.
//!
//! # Rooms
//! [`frame`], [`hello`], [`map`], [`control`]: what goes over the wire. `connection`, `outgoing`,
//! `peers`, `targets`, `handshake`, `admission`, `budget`, [`proof`]: connections and their lives.
//! `loop_state`, `operations`, `station`, `tasks`, `signal`: the node and the clients polled beside
//! it. `judgement`: what drivers may say to each other. `spaces`, [`space_limits`], `placement`:
//! the map as it changes. [`log`], [`folder`],
//! [`formats`], `durable`, `checkpoints`, `replaying`, `small_files`: what survives; [`heights`]
//! notices where less did, and [`repair`] is for people whose disk has lied;
//! [`timestamp_lease`]: what survives of a client. [`server`], [`process`] and [`client`] put
//! them together, and [`rules`] says which configurations can be.

mod admission;
mod budget;
mod checkpoints;
pub mod client;
mod clock;
mod connection;
pub mod control;
mod door;
mod durable;
mod files;
mod flow;
pub mod folder;
pub mod formats;
pub mod frame;
#[cfg(test)]
mod golden;
mod group_rules;
mod handshake;
pub mod heights;
pub mod hello;
mod judgement;
pub mod log;
mod lookout;
mod loop_state;
pub mod map;
pub mod network;
mod outgoing;
mod peers;
mod placement;
pub mod process;
pub mod proof;
mod reading;
pub mod register;
pub mod repair;
mod replaying;
pub mod rules;
pub mod server;
mod signal;
mod small_files;
pub mod space_limits;
mod spaces;
mod station;
mod targets;
mod tasks;
pub mod timestamp_lease;
pub mod trouble;
mod turn;
pub mod visit;

pub use client::{Client, ClientOptions, ConnectError, SpaceError};
pub use door::Job;
pub use hello::{ClusterId, Life};
pub use loop_state::Counts;
pub use map::{Deal, Map};
pub use network::Network;
pub use process::{Process, StopAll};
pub use proof::read_secret;
pub use server::{Durability, Server, ServerOptions, StartError, StopServer};
pub use timestamp_lease::LeaseError;
pub use turn::Failed;
