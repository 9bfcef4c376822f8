//! Why a server cannot be started, in words for whoever starts it.

use std::net::SocketAddr;

use muesli_registry::{NoMasters, NoProtocol, NoShards, NoTree};
use muesli_threads::ThreadsError;
use thiserror::Error;

use crate::spaces::error::MapError;
use crate::storage::folder::FolderError;

/// Why a server cannot be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// Everybody who can reach the server could pass for a server or an administrator.
    #[error(
        "{address} can be reached from other machines, and there is no secret: whoever connects \
         could pass for a server of the cluster or for its administrator. Give all servers the \
         same `secret_file` (as made by `openssl rand -hex 32`), listen on a loopback address, or, \
         on a network that you trust, set `trust_network = true`"
    )]
    Unprotected {
        /// Where it would listen.
        address: SocketAddr,
    },
    /// Rules that the options break, all of them.
    #[error("this configuration cannot be: {}", .0.join("; "))]
    Invalid(Vec<String>),
    /// Servers, repositories or replicas that cannot be.
    #[error(transparent)]
    Map(#[from] MapError),
    /// It is none of its own cluster's servers.
    #[error("node {0} is none of the servers of its cluster")]
    NotListed(u32),
    /// A number that means something else.
    #[error("cluster 0 stands for any cluster; give another number")]
    Cluster,
    /// Nobody can join where repositories stay where they are.
    #[error("a server can join a cluster of groups only: `group` is 1")]
    Joins,
    /// No such protocol.
    #[error(transparent)]
    Protocol(#[from] NoProtocol),
    /// Masters that the protocol does not have.
    #[error(transparent)]
    Masters(#[from] NoMasters),
    /// A tree that the protocol does not go by.
    #[error(transparent)]
    Tree(#[from] NoTree),
    /// The protocol has no shards whose sites could be named.
    #[error(transparent)]
    Shards(#[from] NoShards),
    /// The server's files.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The map that was kept is another one than the one configured.
    #[error("the data in this folder belong to another cluster, which cannot be changed here: {0}")]
    OtherMap(String),
    /// It was taken off the cluster's list.
    #[error("{0}")]
    Left(String),
    /// Several loops need ports that can be counted up.
    #[error("{0}: with several loops, an address must end in a port above 0, counted up by loop")]
    Ports(String),
    /// Threads that there cannot be.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// The system lets the process open too few files.
    #[error(
        "the limit of open files (`ulimit -n`) is {limit}, and {used} are open: {capacity} are \
         left for connections beside those that the log needs; at least {least} are wanted"
    )]
    Files {
        /// The limit.
        limit: u64,
        /// How many are open already.
        used: u64,
        /// How many are left for connections.
        capacity: u64,
        /// How many there must be.
        least: u64,
    },
    /// The system has no poller.
    #[error("the system refused to wait for connections: {0}")]
    Poll(std::io::Error),
}
