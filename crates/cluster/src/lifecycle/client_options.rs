//! What whoever connects to a cluster can choose.

use std::path::PathBuf;
use std::time::Duration;

use muesli_core::recorder::Sampling;
use muesli_core::{Actions, Batching, Limits, NodeId, Procedures, Secret};

use crate::network::Network;
use crate::wire::ids::ClusterId;

/// How a client connects.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Addresses of servers, `host:port`; one that answers is enough.
    pub addresses: Vec<String>,
    /// Servers that this client reaches at other addresses than the map says, as behind a proxy.
    pub dial: Vec<(NodeId, String)>,
    /// The cluster; zero takes whichever answers.
    pub cluster: ClusterId,
    /// The protocol, by name.
    pub protocol: String,
    /// Number of the database in this process, as the engine of the loop answers to it.
    pub database: u64,
    /// Size limits, checked here before anything is sent.
    pub limits: Limits,
    /// The procedures that it calls: what is declared of them chooses the class of a call.
    pub procedures: Procedures,
    /// The delayed actions that it asks for, as the servers know them.
    pub actions: Actions,
    /// How many messages to a server leave together, and how long they wait for each other.
    pub batching: Batching,
    /// Whether copies of repositories are kept here, for readers that take the nearest one.
    pub caches: bool,
    /// The server with data that this client is nearest to: what it writes moves there, under
    /// protocols that move data. `None`: it stays where it is.
    pub near: Option<NodeId>,
    /// Whether what transactions do is recorded.
    pub history: bool,
    /// Which transactions are recorded whole, where they are.
    pub sampling: Sampling,
    /// The cluster's secret: both sides prove that they know it. Needed only where the servers ask
    /// clients for it, or where this client wants to know that they are the servers.
    pub secret: Option<Secret>,
    /// The file of the [timestamp lease](crate::storage::timestamp_lease), if the client keeps
    /// one: it lies after all that a client with this file has seen before. Under protocols whose
    /// timestamps follow clocks ([`muesli_registry::with_timestamp_leases`]).
    pub timestamp_lease: Option<PathBuf>,
    /// How far a lease goes ahead of what it has to cover, in the time of timestamps.
    pub timestamp_lease_ahead: Duration,
    /// How long to look for the servers.
    pub connect_within: Duration,
    /// A request that was not answered for so long is sent again.
    pub retry_after: Duration,
    /// How long an operation may wait for its answer.
    pub give_up_after: Duration,
    /// How long open transactions may take to end when the client is closed.
    pub close_within: Duration,
    /// How long to wait for the server that keeps the map when a space is made.
    pub space_within: Duration,
    /// Limits and times of connections.
    pub network: Network,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            addresses: Vec::new(),
            dial: Vec::new(),
            cluster: ClusterId(0),
            protocol: "score".to_owned(),
            database: 0,
            limits: Limits::default(),
            procedures: Procedures::default(),
            actions: Actions::default(),
            batching: Batching::default(),
            caches: false,
            near: None,
            history: false,
            sampling: Sampling::ALL,
            secret: None,
            timestamp_lease: None,
            timestamp_lease_ahead: Duration::from_secs(1),
            connect_within: Duration::from_secs(5),
            retry_after: Duration::from_millis(20),
            give_up_after: Duration::from_secs(10),
            close_within: Duration::from_secs(1),
            space_within: Duration::from_secs(5),
            network: Network::default(),
        }
    }
}
