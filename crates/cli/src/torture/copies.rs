//! Older copies of folders: made, put back, and to be refused.
//!
//! A copy counts as older once the node has written more, all other servers are linked to it, and
//! there was time for signs of life. If that does not come about, nothing is put back, and the run
//! says how often that was so.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::roster::Roster;
use crate::local::LocalCluster;

/// A node answers within this, or is left alone.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// A server gives signs of life much more often.
const REPORTS_WITHIN: Duration = Duration::from_millis(600);
/// A server with an older copy must end within this.
const REFUSED_WITHIN: Duration = Duration::from_secs(10);
/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What a server says whose folder is an older copy.
const OLDER_COPY: &str = "are an older copy";

/// The copies that are there.
#[derive(Debug, Default)]
pub struct FolderCopies {
    /// By node, up to which record of its log a copy goes at most.
    made: Mutex<BTreeMap<usize, u64>>,
}

impl FolderCopies {
    fn made(&self) -> MutexGuard<'_, BTreeMap<usize, u64>> {
        self.made.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Kills a node, copies its folder, and starts it again.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn make(&self, cluster: &LocalCluster, node: usize) -> anyhow::Result<()> {
        cluster.kill(node)?;
        let folder = cluster.folder(node);
        copy(&folder.join("data"), &folder.join("older")).context("cannot copy a folder")?;
        cluster.start(node)?;
        let kept = until(ANSWERS_WITHIN, || status(cluster, node, "log-kept"));
        self.made().extend(kept.map(|kept| (node, kept)));
        Ok(())
    }

    /// Puts the copy of a node's folder back, sees the node refused, and brings the newest folder
    /// back; whether there was an older copy to put back.
    ///
    /// # Errors
    /// It was not refused, or served before it was; or the system does not let it.
    pub fn put_back(
        &self,
        cluster: &LocalCluster,
        node: usize,
        roster: &Roster,
    ) -> anyhow::Result<bool> {
        let folder = cluster.folder(node);
        let [data, older, newest] = ["data", "older", "newest"].map(|name| folder.join(name));
        let made = self.made().remove(&node);
        let others = roster.nodes().len() as u64 - 1;
        let is_older = || {
            let is_linked = status(cluster, node, "servers")? == others;
            let has_more = status(cluster, node, "log-kept")? > made?;
            (is_linked && has_more).then_some(())
        };
        if until(ANSWERS_WITHIN, is_older).is_some() {
            std::thread::sleep(REPORTS_WITHIN);
            cluster.kill(node)?;
            std::fs::rename(&data, &newest).context("cannot put a folder aside")?;
            std::fs::rename(&older, &data).context("cannot put a copy back")?;
            cluster.start(node)?;
            let mut has_served = false;
            let ended = || {
                has_served |= status(cluster, node, "ready") == Some(1);
                cluster.process(node).is_none().then_some(())
            };
            if until(REFUSED_WITHIN, ended).is_none() {
                bail!("server {node} was let in with an older copy of its folder");
            }
            if has_served {
                bail!(
                    "server {node} served with an older copy of its folder before it was refused"
                );
            }
            let printed = cluster.last_output(node);
            if !printed.contains(OLDER_COPY) {
                bail!("server {node} ended with an older copy of its folder, but said: {printed}");
            }
            std::fs::remove_dir_all(&data).context("cannot remove a copy")?;
            std::fs::rename(&newest, &data).context("cannot bring a folder back")?;
            return cluster.start(node).map(|()| true);
        }
        std::fs::remove_dir_all(&older).context("cannot remove a copy").map(|()| false)
    }
}

fn status(cluster: &LocalCluster, node: usize, name: &str) -> Option<u64> {
    cluster.visit(node).ok()?.status_of(name)
}

/// Looks until there is something, for at most so long.
fn until<T>(most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + most;
    loop {
        let found = look();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
