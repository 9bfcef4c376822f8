//! A local cluster for as long as somebody needs it.

use super::{ClusterPlan, LocalCluster};

/// A cluster that is stopped when this is dropped.
pub struct Temporary {
    pub cluster: LocalCluster,
    _dir: tempfile::TempDir,
}

impl Temporary {
    /// Starts a cluster in a folder of its own.
    ///
    /// # Errors
    /// It does not come up.
    pub fn up(plan: &ClusterPlan) -> anyhow::Result<Temporary> {
        let dir = tempfile::Builder::new().prefix("muesli-").tempdir()?;
        let cluster = match LocalCluster::up(dir.path(), plan) {
            Ok(cluster) => cluster,
            Err(error) => {
                if let Ok(cluster) = LocalCluster::open(dir.path()) {
                    let _ = cluster.down(); // What came up in part; the first error is told.
                }
                return Err(error);
            }
        };
        Ok(Temporary { cluster, _dir: dir })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = self.cluster.down() {
            eprintln!("muesli: {error:#}");
        }
    }
}
