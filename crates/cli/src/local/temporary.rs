//! A local cluster for as long as somebody needs it.

use std::sync::Arc;

use tempfile::TempDir;

use super::interrupted::{Ending, end_with_process, locked};
use super::namespaces::Namespaces;
use super::{ClusterPlan, LinkModel, LinkPlan, LocalCluster};

/// Where all servers and clients are that have no networks of their own.
const LOOPBACK: &str = "127.0.0.1";

/// What joins the servers of a local cluster.
#[derive(Clone, Debug, Default)]
pub struct LocalNetwork {
    /// The racks that they stand in, or the sites.
    pub links: LinkModel,
    /// Whether each has a network namespace of its own.
    pub namespaces: bool,
}

/// A cluster that is stopped when this is dropped, or the process is interrupted.
pub struct Temporary {
    pub cluster: LocalCluster,
    /// What goes between its racks or sites, if it has some.
    pub links: Option<LinkPlan>,
    running: Arc<Ending>,
}

/// What is stopped and removed, in this order.
struct StartedCluster {
    cluster: LocalCluster,
    _namespaces: Option<Namespaces>,
    _dir: TempDir,
}

impl Temporary {
    /// Starts a cluster in a folder of its own.
    ///
    /// # Errors
    /// It does not come up.
    pub fn up(plan: &ClusterPlan) -> anyhow::Result<Temporary> {
        Temporary::up_on(plan, LocalNetwork::default())
    }

    /// The same on a network.
    ///
    /// # Errors
    /// It does not come up, does not fill the racks or sites, or namespaces cannot be made.
    pub fn up_on(plan: &ClusterPlan, network: LocalNetwork) -> anyhow::Result<Temporary> {
        let running: Arc<Ending> = Arc::default();
        // Held until it serves: who interrupts this process waits for that, and ends all of it.
        let mut starting = locked(&running);
        end_with_process(&running)?;
        let dir = tempfile::Builder::new().prefix("muesli-").tempdir()?;
        let namespaces = network.namespaces.then(|| Namespaces::make(plan.nodes)).transpose()?;
        let cluster = match &namespaces {
            Some(namespaces) => LocalCluster::lay_out_in(dir.path(), namespaces.homes())?,
            None => LocalCluster::lay_out(dir.path(), plan.nodes, plan.loops)?,
        };
        let host = namespaces.as_ref().map(|it| it.names().clients_address());
        let host = host.as_deref().unwrap_or(LOOPBACK);
        let links = match network.links {
            LinkModel::None => None,
            model => Some(LinkPlan::between(cluster.addresses(), model, host)?),
        };
        links.iter().try_for_each(LinkPlan::carry)?;
        let reached = links.as_ref().map(LinkPlan::reached);
        let plan = ClusterPlan { reached, ..plan.clone() };
        let parts = StartedCluster { cluster: cluster.clone(), _namespaces: namespaces, _dir: dir };
        *starting = Some(Box::new(parts));
        cluster.start_all(&plan)?; // What came up in part is stopped.
        drop(starting);
        Ok(Temporary { cluster, links, running })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        drop(locked(&self.running).take());
    }
}

impl Drop for StartedCluster {
    fn drop(&mut self) {
        if let Err(error) = self.cluster.down() {
            eprintln!("muesli: {error:#}");
        }
    }
}
