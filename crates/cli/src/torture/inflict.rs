//! Carries out the plan: faults begin and end at their times, and processes that died come back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muesli_cluster::lifecycle::visit::Visit;
use muesli_cluster::wire::control::Control;
use muesli_core::ReplicaRole;
use rustix::process::{Resource, Rlimit, Signal, prlimit};

use super::copies::FolderCopies;
use super::network::CuttableNetwork;
use super::plan::{DiskFault, Planned, TortureFault};
use super::roster::Roster;
use crate::local::LocalCluster;

/// What is said behind the name of a fault that did not come about.
pub const NOT_TRIED: &str = ": not tried";
/// How often is looked whether it is time.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// A node whose disk fails is given so long to notice and to stop.
const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// A node that is well says within this which part its members take.
const ANSWERS_WITHIN: Duration = Duration::from_millis(300);
/// What a node says that stops because of its disk, while it serves or while it starts.
const DISK_MESSAGES: [&str; 3] = ["the log failed", "muesli: cannot ", "File too large"];
/// A file may grow so much beyond what it is, for a node's last words.
const LAST_OUTPUT_BYTES: u64 = 4 << 10;

/// A fault that is over.
#[derive(Clone, Debug)]
pub struct Suffered {
    /// Its row in the report.
    pub name: String,
    /// When it was begun.
    pub began: Instant,
    /// When everything was done that could be to end it.
    pub ended: Instant,
    /// A leader died by it, while all members of all groups took part.
    pub deposes: bool,
}

/// A fault that is not over.
struct OpenFault<'a> {
    planned: &'a Planned,
    began: Instant,
    deposes: bool,
}

/// What is tortured.
pub struct Victims<'a> {
    pub cluster: &'a LocalCluster,
    pub roster: &'a Roster,
    pub network: &'a dyn CuttableNetwork,
    pub copies: FolderCopies,
}

impl Victims<'_> {
    /// Carries out `plan`, or as much of it as there is time for until `over`; all is healed in
    /// the end.
    ///
    /// # Errors
    /// A node ended that nobody had killed, or did not end as it should.
    pub fn suffer(&self, plan: &[Planned], over: &AtomicBool) -> anyhow::Result<Vec<Suffered>> {
        let start = Instant::now();
        let mut open: Vec<OpenFault<'_>> = Vec::new();
        let mut waiting = plan.iter().peekable();
        let mut suffered = Vec::new();
        while waiting.peek().is_some() || !open.is_empty() {
            let stopped = over.load(Ordering::Relaxed);
            let now = start.elapsed();
            let is_over = |planned: &Planned| stopped || planned.at + planned.lasts <= now;
            while let Some(place) = open.iter().position(|open| is_over(open.planned)) {
                let OpenFault { planned, began, deposes } = open.remove(place);
                let (ended, happened) = self.end(&planned.fault)?;
                let name = planned.fault.name();
                let name = if happened { name } else { format!("{name}{NOT_TRIED}") };
                suffered.push(Suffered { name, began, ended, deposes });
            }
            if stopped {
                break;
            }
            // On a machine that is behind, the one before it may not be over.
            let is_due = |planned: &Planned, open: &[OpenFault<'_>]| {
                let excludes = |open: &OpenFault<'_>| open.planned.fault.excludes(&planned.fault);
                planned.at <= now && !open.iter().any(excludes)
            };
            while let Some(planned) = waiting.next_if(|planned| is_due(planned, &open)) {
                // Only a node that dies alone need be looked after beforehand.
                let replica_roles =
                    planned.fault.killed().and_then(|node| self.replica_roles(node));
                if matches!(planned.fault, TortureFault::Folder(_)) && replica_roles.is_none() {
                    continue; // Another one forgot, or may not remember: two would be too many.
                }
                let deposes = replica_roles
                    .is_some_and(|replica_roles| replica_roles.contains(&ReplicaRole::Leads));
                let began = Instant::now();
                self.begin(&planned.fault)?;
                open.push(OpenFault { planned, began, deposes });
            }
            self.look_after_the_living(&open)?;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(suffered)
    }

    /// The roles of a node's members, if the members of all nodes take part.
    fn replica_roles(&self, node: usize) -> Option<Vec<ReplicaRole>> {
        let replica_roles = |node: usize| {
            let address = &self.cluster.addresses()[node];
            let visit = Visit::begin(address, ANSWERS_WITHIN);
            match visit.and_then(|mut visit| visit.ask(&Control::AskMembers)) {
                Ok(Control::Members { members, .. }) => {
                    let replica_roles =
                        members.into_iter().map(|(_, role)| role).collect::<Vec<_>>();
                    Some((node, replica_roles))
                }
                _ => None,
            }
        };
        let all: Option<Vec<_>> = self.roster.nodes().into_iter().map(replica_roles).collect();
        let all = all?;
        let take_part =
            all.iter().flat_map(|(_, replica_roles)| replica_roles).all(|role| role.takes_part());
        let (_, replica_roles) = all.into_iter().find(|(it, _)| *it == node)?;
        take_part.then_some(replica_roles)
    }

    fn begin(&self, fault: &TortureFault) -> anyhow::Result<()> {
        let cluster = self.cluster;
        match fault {
            TortureFault::Kill(nodes) => nodes.iter().try_for_each(|&node| cluster.kill(node)),
            TortureFault::Folder(node) => {
                cluster.kill(*node)?;
                let data = cluster.folder(*node).join("data");
                std::fs::remove_dir_all(data).context("cannot empty a server's folder")
            }
            TortureFault::Backup(node) => self.copies.make(cluster, *node),
            TortureFault::Clock { node, ahead, restarts } => {
                if *restarts {
                    cluster.kill(*node)?;
                }
                let file = cluster.trouble_file(*node).with_extension("clock");
                // One that runs can only leap forwards, from where it is.
                let content = std::fs::read_to_string(&file).unwrap_or_default();
                let before = if *restarts { 0 } else { content.trim().parse().unwrap_or(0) };
                std::fs::write(file, (before + ahead).to_string()).context("cannot set a clock")?;
                if *restarts { cluster.start(*node) } else { Ok(()) }
            }
            TortureFault::Pause(node) => cluster.signal(*node, Signal::STOP).map(drop),
            TortureFault::Partition { party, from, how } => self.network.part(*party, *from, *how),
            TortureFault::Disk(node, trouble) => match trouble {
                DiskFault::Slow(by) => self.trouble(*node, &format!("slow {}", by.as_millis())),
                DiskFault::Hang => self.trouble(*node, "hang"),
                DiskFault::Fail => self.trouble(*node, "fail"),
                DiskFault::Full => self.trouble(*node, "full"),
                DiskFault::Limit => self.limit_files(*node),
            },
        }
    }

    /// Ends a fault; the moment from which the cluster could be well again, and whether it came
    /// about at all.
    fn end(&self, fault: &TortureFault) -> anyhow::Result<(Instant, bool)> {
        if let TortureFault::Backup(node) = fault {
            let happened = self.copies.put_back(self.cluster, *node, self.roster)?;
            return Ok((Instant::now(), happened));
        }
        if let TortureFault::Disk(node, DiskFault::Fail | DiskFault::Full | DiskFault::Limit) =
            fault
        {
            self.see_it_stop(*node)?;
        }
        let ended = Instant::now();
        let cluster = self.cluster;
        match fault {
            TortureFault::Kill(nodes) => nodes.iter().try_for_each(|&node| cluster.start(node)),
            TortureFault::Folder(node) => cluster.start(*node),
            TortureFault::Backup(_) | TortureFault::Clock { .. } => Ok(()),
            TortureFault::Pause(node) => cluster.signal(*node, Signal::CONT).map(drop),
            TortureFault::Partition { .. } => self.network.heal(),
            TortureFault::Disk(node, DiskFault::Slow(_) | DiskFault::Hang) => {
                self.trouble(*node, "")
            }
            TortureFault::Disk(node, DiskFault::Fail | DiskFault::Full | DiskFault::Limit) => {
                self.trouble(*node, "").and_then(|()| cluster.start(*node))
            }
        }?;
        Ok((ended, true))
    }

    /// A node with a failing disk must have stopped by itself, and said why.
    fn see_it_stop(&self, node: usize) -> anyhow::Result<()> {
        let deadline = Instant::now() + STOPS_WITHIN;
        while self.cluster.process(node).is_some() && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
        }
        if self.cluster.process(node).is_some() {
            // Nothing had to be written all the while, or it was cut off.
            self.cluster.kill(node)?;
        } else if !DISK_MESSAGES.iter().any(|words| self.last_output(node).contains(words)) {
            bail!("server {node} ended with a failing disk, but said: {}", self.last_output(node));
        }
        Ok(())
    }

    fn trouble(&self, node: usize, what: &str) -> anyhow::Result<()> {
        std::fs::write(self.cluster.trouble_file(node), what).context("cannot trouble a disk")
    }

    /// From now on the system lets the node's files grow no further.
    fn limit_files(&self, node: usize) -> anyhow::Result<()> {
        let Some(process) = self.cluster.process(node) else { bail!("server {node} does not run") };
        let output = std::fs::metadata(self.cluster.folder(node).join("output"))?.len();
        let most = Some(output + LAST_OUTPUT_BYTES);
        let limit = Rlimit { current: most, maximum: most };
        prlimit(Some(process), Resource::Fsize, limit).context("cannot limit a server's files")?;
        Ok(())
    }

    /// Nobody but those that suffer may be dead.
    fn look_after_the_living(&self, open: &[OpenFault<'_>]) -> anyhow::Result<()> {
        for node in self.roster.nodes() {
            let suffers = open.iter().any(|open| open.planned.fault.nodes().contains(&node));
            if !suffers && self.cluster.process(node).is_none() {
                bail!("server {node} ended by itself: {}", self.last_output(node));
            }
        }
        Ok(())
    }

    fn last_output(&self, node: usize) -> String {
        self.cluster.last_output(node)
    }
}
