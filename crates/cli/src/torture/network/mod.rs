//! What joins the servers and clients of a round, and is taken apart by a partition.
//!
//! Two means: [network namespaces](namespaces), where the system itself loses the packets,
//! and TCP does what it does when a cable is pulled; and a [proxy](proxy) of the torture's
//! own, which needs no rights.

mod links;
mod namespaces;
mod proxy;

use std::fmt;
use std::path::Path;

use clap::ValueEnum;
use links::ProxyLinks;
use namespaces::CuttableNamespaces;

use super::plan::{Break, Party};
use crate::local::{LocalCluster, ProxyAddresses};

/// What joins a round's parties.
pub trait CuttableNetwork: Sync {
    /// How the nodes are reached; `None`: at the addresses that they listen on.
    fn reached(&self) -> Option<ProxyAddresses>;

    /// Cuts `party` off from another, or from all others.
    ///
    /// # Errors
    /// The system does not do it.
    fn part(&self, party: Party, from: Option<Party>, how: Break) -> anyhow::Result<()>;

    /// Everything is carried again.
    ///
    /// # Errors
    /// The system does not do it.
    fn heal(&self) -> anyhow::Result<()>;
}

/// Which means is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PartitionMeans {
    /// Namespaces if this process may make them, or else the proxy
    Auto,
    /// A network namespace for each server; for root, with the commands ip and ss
    Namespaces,
    /// A proxy of the torture's own
    Proxy,
}

/// What partitions are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    Namespaces,
    Proxy,
}

impl PartitionMeans {
    /// Which means it comes to, after trying whether it works, and a line about that.
    ///
    /// # Errors
    /// Namespaces are asked for and cannot be made.
    pub fn settle(self) -> anyhow::Result<(Means, String)> {
        let spaces = "partitions are made with network namespaces".to_owned();
        let proxy = "partitions are made with a proxy";
        Ok(match self {
            PartitionMeans::Proxy => (Means::Proxy, proxy.to_owned()),
            PartitionMeans::Namespaces => {
                namespaces::try_out()?;
                (Means::Namespaces, spaces)
            }
            PartitionMeans::Auto => match namespaces::try_out() {
                Ok(()) => (Means::Namespaces, spaces),
                Err(error) => (Means::Proxy, format!("{proxy}; not with namespaces: {error:#}")),
            },
        })
    }
}

impl Means {
    /// A cluster in `dir` that is not started, and what joins its nodes.
    ///
    /// # Errors
    /// There are no ports left, or the system does not make the namespaces.
    pub fn lay_out(
        self,
        dir: &Path,
        nodes: usize,
    ) -> anyhow::Result<(LocalCluster, Box<dyn CuttableNetwork>)> {
        Ok(match self {
            Means::Proxy => {
                let cluster = LocalCluster::lay_out(dir, nodes, 1)?;
                let links = ProxyLinks::between(cluster.addresses())?;
                (cluster, Box::new(links))
            }
            Means::Namespaces => {
                let namespaces = CuttableNamespaces::make(nodes)?;
                (LocalCluster::lay_out_in(dir, namespaces.homes())?, Box::new(namespaces))
            }
        })
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Means::Namespaces => "namespaces",
            Means::Proxy => "proxy",
        })
    }
}
