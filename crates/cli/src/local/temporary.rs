//! A local cluster for as long as somebody needs it.

use muesli_workloads::machines::racks::RackModel;

use super::{ClusterPlan, LocalCluster, RackProxies};

/// A cluster that is stopped when this is dropped.
pub struct Temporary {
    pub cluster: LocalCluster,
    /// What goes between its racks, if it has some.
    pub links: Option<RackProxies>,
    _dir: tempfile::TempDir,
}

impl Temporary {
    /// Starts a cluster in a folder of its own.
    ///
    /// # Errors
    /// It does not come up.
    pub fn up(plan: &ClusterPlan) -> anyhow::Result<Temporary> {
        Temporary::up_in_racks(plan, RackModel::default())
    }

    /// The same in racks, if `racks` says so.
    ///
    /// # Errors
    /// It does not come up, or does not fill the racks.
    pub fn up_in_racks(plan: &ClusterPlan, racks: RackModel) -> anyhow::Result<Temporary> {
        let dir = tempfile::Builder::new().prefix("muesli-").tempdir()?;
        let cluster = LocalCluster::lay_out(dir.path(), plan.nodes, plan.loops)?;
        let links = match racks.nodes {
            0 => None,
            _ => Some(RackProxies::between(cluster.addresses(), racks)?),
        };
        let reached = links.as_ref().map(|links| links.reached().clone());
        let plan = ClusterPlan { reached, ..plan.clone() };
        if let Err(error) = cluster.start_all(&plan) {
            let _ = cluster.down(); // What came up in part; the first error is told.
            return Err(error);
        }
        Ok(Temporary { cluster, links, _dir: dir })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = self.cluster.down() {
            eprintln!("muesli: {error:#}");
        }
    }
}
