//! Muesli over TCP: the driver whose nodes are processes.
//!
//! # The problem
//! The same nodes that run embedded and simulated are to run on machines that crash, hang, send
//! garbage and lose each other, and a slow one among them must not make the others' memory grow.
//!
//! # The idea
//! One loop per process ([`dispatch`]) is one node, over one poller. A turn reads once from each
//! connection, steps the node, and writes once per destination, so that system calls, which are
//! what such a driver costs, are shared by all messages of the turn. Client processes run the
//! same loop with no repositories: their transactions are coordinated there, and servers are
//! spoken to directly.
//!
//! # Why it keeps the contract
//! A link between two nodes is one TCP connection: messages arrive in order, and when it breaks,
//! an unknown suffix is lost. What cannot be sent (no connection, too long for a frame) is lost
//! like a suffix; protocols say it again. Effects leave in order, and one that depends on a log
//! position waits until the [log](storage::log) says that it is stable. Bytes are judged as they
//! come: frames carry checksums, decoders are safe on any bytes, and messages that name what is
//! not there are left out.
//!
//! # Layout
//! Each part uses only those before it. [`spaces`]: the map of a cluster. [`wire`]: what goes over
//! connections. [`storage`]: what survives. `mailbox`: what waits on its way into a loop and out of
//! it. `connections`: who is connected. `node`: the state machine with what performs its effects.
//! `dispatch`: the loop that takes everything to who handles it. [`admission`]: who may connect,
//! and what they may take. `control`: what drivers settle among themselves. [`lifecycle`]: servers,
//! clients, and which configurations can be. Beside them stand [`formats`], the versions of what is
//! written and sent, and [`network`], the limits and times of connections.

pub mod admission;
mod connections;
mod control;
mod dispatch;
pub mod formats;
#[cfg(test)]
mod golden;
pub mod lifecycle;
mod mailbox;
pub mod network;
mod node;
pub mod spaces;
pub mod storage;
pub mod wire;

pub use control::status::{NumberKind, STATUS_NUMBERS, StatusNumber};
pub use dispatch::failure::LoopFailure;
pub use lifecycle::client::{Client, ConnectError, SpaceError};
pub use lifecycle::client_options::ClientOptions;
pub use lifecycle::options::{Durability, ServerOptions};
pub use lifecycle::process::{Process, StopAll};
pub use lifecycle::server::{Server, StopServer};
pub use lifecycle::start_error::StartError;
pub use mailbox::entry_point::Job;
pub use network::Network;
pub use node::loop_state::LoopCounts;
pub use spaces::map::{Deal, Map};
pub use storage::timestamp_lease::LeaseError;
pub use wire::ids::{ClusterId, DataId};
pub use wire::proof::read_secret;
