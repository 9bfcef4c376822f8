//! A cluster of processes on this machine.
//!
//! Its folder holds the cluster's secret, and a file of keys, the output and the process number of
//! each node, so that one command can start it and another one stop it. A process number is used
//! only while the process that has it was started with that node's file: numbers are given again by
//! the system.

mod addresses;
mod further_keys;
mod interrupted;
pub mod link_process;
mod link_proxies;
pub mod namespaces;
mod process_end;
pub mod system;
mod temporary;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use muesli_cluster::lifecycle::visit::{self, Visited};
use muesli_core::Secret;
use muesli_workloads::geography::Geography;
use rustix::process::{Pid, Signal, kill_process};

use addresses::free_addresses;
pub use further_keys::further_keys;
use link_process::LinkProcess;
pub use link_proxies::{LinkModel, LinkPlan};
use process_end::wait_until_over;
pub use temporary::{LocalNetwork, Temporary};

/// The file of the servers' secret, in the cluster's folder.
const SECRET_FILE: &str = "secret";
/// How long a node may take to stop without saying that it gets on.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one may take to come up without saying so: this machine may have much else to do.
const COMES_UP_WITHIN: Duration = Duration::from_secs(20);
/// How long it may take to come up at most, whatever it says.
const PATIENCE_AT_MOST: Duration = Duration::from_secs(900);
/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a node may take to say how it does.
const VISIT_WITHIN: Duration = Duration::from_secs(2);

/// What a new cluster is to be.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    pub nodes: usize,
    /// Loops of each.
    pub loops: usize,
    pub repositories: usize,
    pub replicas: usize,
    /// How many nodes keep each repository.
    pub group: u16,
    pub protocol: String,
    /// Whether data survive the processes.
    pub durable: bool,
    /// Further keys, as lines of the file.
    pub extra: Vec<String>,
    /// How others reach the servers, where not at the addresses that they listen on.
    pub reached: Option<ProxyAddresses>,
    /// Whether disks misbehave when the file `trouble` in the node's folder says so.
    pub troubled: bool,
}

/// How servers are reached through something between them.
#[derive(Clone, Debug)]
pub struct ProxyAddresses {
    /// Each server's address, as clients are told it.
    pub servers: Vec<String>,
    /// For each server, the key `dial` of its file.
    pub dial: Vec<String>,
}

/// Where a node runs that has a network of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The network namespace's name, as `ip netns` knows it.
    pub namespace: String,
    /// Where the node listens in it.
    pub address: String,
}

/// A cluster in a folder.
#[derive(Clone, Debug)]
pub struct LocalCluster {
    dir: PathBuf,
    addresses: Vec<String>,
    /// Each node's network namespace; empty where all share that of this process.
    namespaces: Vec<String>,
}

impl LocalCluster {
    /// Starts a new cluster in `dir`, and waits until it serves.
    ///
    /// # Errors
    /// There is one already, or it does not come up.
    pub fn up(dir: &Path, plan: &ClusterPlan) -> anyhow::Result<LocalCluster> {
        let cluster = LocalCluster::lay_out(dir, plan.nodes, plan.loops)?;
        cluster.start_all(plan)?;
        Ok(cluster)
    }

    /// The same, whose servers are at these sites in turn, far from each other.
    ///
    /// # Errors
    /// There is one already, it does not come up, or there are fewer servers than sites.
    pub fn up_at(
        dir: &Path,
        plan: &ClusterPlan,
        geography: &Geography,
    ) -> anyhow::Result<LocalCluster> {
        let cluster = LocalCluster::lay_out(dir, plan.nodes, plan.loops)?;
        let (process, links) = LinkProcess::lay_out(dir, &cluster.addresses, geography)?;
        process.start()?;
        cluster.start_all(&ClusterPlan { reached: Some(links.reached()), ..plan.clone() })?;
        Ok(cluster)
    }

    /// What goes between its sites, if it is at several.
    pub fn links(&self) -> Option<LinkProcess> {
        LinkProcess::of(&self.dir)
    }

    /// A new cluster in `dir` that has addresses and is not started.
    ///
    /// # Errors
    /// One runs there already.
    pub fn lay_out(dir: &Path, nodes: usize, loops: usize) -> anyhow::Result<LocalCluster> {
        LocalCluster::lay_out_at(dir, free_addresses(nodes, loops as u16)?, Vec::new())
    }

    /// A new cluster in `dir` whose nodes are to run in these network namespaces; not started.
    ///
    /// # Errors
    /// One runs there already.
    pub fn lay_out_in(dir: &Path, homes: Vec<Home>) -> anyhow::Result<LocalCluster> {
        let (addresses, namespaces) =
            homes.into_iter().map(|home| (home.address, home.namespace)).unzip();
        LocalCluster::lay_out_at(dir, addresses, namespaces)
    }

    fn lay_out_at(
        dir: &Path,
        addresses: Vec<String>,
        namespaces: Vec<String>,
    ) -> anyhow::Result<LocalCluster> {
        if let Ok(before) = LocalCluster::open(dir)
            && (0..before.nodes()).any(|node| before.process(node).is_some())
        {
            bail!("a cluster runs in {} already; `muesli cluster down` stops it", dir.display());
        }
        if let Some(links) = LinkProcess::of(dir) {
            links.stop()?;
        }
        LinkProcess::forget(dir);
        make_folder(dir)?;
        fs::write(dir.join("addresses"), addresses.join("\n"))?;
        make_secret(&dir.join(SECRET_FILE))?;
        Ok(LocalCluster { dir: dir.to_owned(), addresses, namespaces })
    }

    /// Lays out a further node, which joins; it is not started. Answers its number.
    ///
    /// # Errors
    /// The first node's file cannot be read.
    pub fn add(&mut self) -> anyhow::Result<usize> {
        let (node, like) = (self.nodes(), self.config(0));
        let text = fs::read_to_string(&like);
        let text = text.with_context(|| format!("cannot read {}", like.display()))?;
        let loops = text.lines().find_map(|line| line.strip_prefix("loops = ")?.parse().ok());
        self.addresses.extend(free_addresses(1, loops.unwrap_or(1))?);
        fs::write(self.dir.join("addresses"), self.addresses.join("\n"))?;
        let own = ["node", "listen", "servers", "data_dir", "dial", "trouble_file", "join"];
        let key = |line: &&str| line.split('=').next().unwrap_or_default().trim().to_owned();
        let shared = text.lines().filter(|line| !own.contains(&&*key(line)));
        let data = self.folder(node).join("data");
        let lines = [
            format!("node = {node}"),
            format!("listen = {:?}", self.addresses[node]),
            format!("servers = {:?}", self.addresses),
            format!("data_dir = {:?}", data.display().to_string()),
            "join = true".to_owned(),
        ];
        let lines = shared.map(str::to_owned).chain(lines);
        make_folder(&self.folder(node))?;
        fs::write(self.config(node), lines.map(|line| line + "\n").collect::<String>())?;
        Ok(node)
    }

    /// Starts all nodes for the first time, and waits until they serve.
    ///
    /// # Errors
    /// They do not come up.
    pub fn start_all(&self, plan: &ClusterPlan) -> anyhow::Result<()> {
        for node in 0..plan.nodes {
            self.write_config(node, plan)?;
        }
        for node in 0..plan.nodes {
            self.start(node)?;
        }
        self.wait_until_all_ready(&(0..plan.nodes).collect::<Vec<_>>())
    }

    /// The cluster in `dir`, whatever state it is in.
    ///
    /// # Errors
    /// There is none.
    pub fn open(dir: &Path) -> anyhow::Result<LocalCluster> {
        let text = fs::read_to_string(dir.join("addresses"))
            .with_context(|| format!("there is no cluster in {}", dir.display()))?;
        let addresses = text.lines().map(str::to_owned).collect();
        Ok(LocalCluster { dir: dir.to_owned(), addresses, namespaces: Vec::new() })
    }

    /// How many nodes it has.
    pub fn nodes(&self) -> usize {
        self.addresses.len()
    }

    /// Where its nodes listen.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// A node's folder.
    pub fn folder(&self, node: usize) -> PathBuf {
        self.dir.join(format!("node-{node}"))
    }

    /// The secret of its servers.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn secret(&self) -> anyhow::Result<Option<Secret>> {
        Ok(Some(muesli_cluster::read_secret(&self.dir.join(SECRET_FILE))?))
    }

    /// What a node's disk goes by, if it is a troubled one.
    pub fn trouble_file(&self, node: usize) -> PathBuf {
        self.folder(node).join("trouble")
    }

    fn config(&self, node: usize) -> PathBuf {
        self.folder(node).join("muesli.toml")
    }

    /// Writes the keys of a node; one beyond those of the plan is to join.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn write_config(&self, node: usize, plan: &ClusterPlan) -> anyhow::Result<()> {
        make_folder(&self.folder(node))?;
        let data = self.folder(node).join("data");
        let servers = plan.reached.as_ref().map_or(&self.addresses, |reached| &reached.servers);
        let servers = &servers[..plan.nodes.max(node + 1)];
        let mut lines = vec![
            format!("node = {node}"),
            format!("listen = {:?}", self.addresses[node]),
            format!("servers = {servers:?}"),
            format!("loops = {}", plan.loops),
            format!("repositories = {}", plan.repositories),
            format!("replicas = {}", plan.replicas),
            format!("group = {}", plan.group),
            format!("protocol = {:?}", plan.protocol),
            format!("durability = {:?}", if plan.durable { "log" } else { "memory" }),
            format!("data_dir = {:?}", data.display().to_string()),
            format!("secret_file = {:?}", self.dir.join(SECRET_FILE).display().to_string()),
        ];
        if let Some(reached) = &plan.reached {
            lines.push(format!("dial = {:?}", reached.dial[node]));
        }
        if node >= plan.nodes {
            lines.push("join = true".to_owned());
        }
        if plan.troubled {
            lines.push(format!("trouble_file = {:?}", self.trouble_file(node)));
        }
        let text = lines.iter().chain(&plan.extra).map(|line| format!("{line}\n"));
        Ok(fs::write(self.config(node), text.collect::<String>())?)
    }

    /// Starts a node that does not run. Does not wait until it serves.
    ///
    /// # Errors
    /// It runs, or cannot be started.
    pub fn start(&self, node: usize) -> anyhow::Result<()> {
        self.check(node)?;
        if let Some(process) = self.process(node) {
            bail!("server {node} runs already, as process {}", process.as_raw_nonzero());
        }
        let output = File::options()
            .create(true)
            .append(true)
            .open(self.folder(node).join("output"))
            .context("cannot keep the server's output")?;
        let mut command = self.program(node)?;
        command.arg("start").arg("--config").arg(self.config(node));
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // Signals from the terminal are for the command, not for the cluster that it leaves.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().context("cannot start a server")?;
        fs::write(self.folder(node).join("pid"), child.id().to_string())?;
        // The system shows a new process a moment before its arguments.
        let deadline = Instant::now() + PATIENCE;
        while self.process(node).is_none()
            && child.try_wait()?.is_none()
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Its end is to be noticed while this process runs, or its number would stay taken.
        std::thread::spawn(move || child.wait());
        Ok(())
    }

    /// This program, in the network namespace of a node.
    fn program(&self, node: usize) -> anyhow::Result<Command> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let Some(namespace) = self.namespaces.get(node) else { return Ok(Command::new(program)) };
        // `ip` becomes the program: the process keeps its number, and signals reach the node.
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(program);
        Ok(command)
    }

    /// The process of a node, if it runs.
    pub fn process(&self, node: usize) -> Option<Pid> {
        let text = fs::read_to_string(self.folder(node).join("pid")).ok()?;
        let number: i32 = text.trim().parse().ok()?;
        let command = fs::read(format!("/proc/{number}/cmdline")).ok()?;
        let config = self.config(node);
        let mut parts = command.split(|byte| *byte == 0);
        // While `ip` becomes the node there is a moment without any arguments: it is not the node
        // before that is over, or it would seem to have ended.
        let is_program = parts.next().is_some_and(|program| program != b"ip");
        let mine = is_program && parts.any(|part| part == config.as_os_str().as_encoded_bytes());
        if mine { Pid::from_raw(number) } else { None }
    }

    fn check(&self, node: usize) -> anyhow::Result<()> {
        let nodes = self.nodes();
        if node >= nodes {
            bail!("there is no server {node}; there are servers 0 to {}", nodes - 1);
        }
        Ok(())
    }

    /// Sends a signal to a node; the process that got it.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, node: usize, signal: Signal) -> anyhow::Result<Pid> {
        self.check(node)?;
        let Some(process) = self.process(node) else { bail!("server {node} does not run") };
        kill_process(process, signal).with_context(|| format!("cannot signal server {node}"))?;
        Ok(process)
    }

    /// Ends a node at once, as a crash does, and waits until it is gone.
    ///
    /// # Errors
    /// It does not run.
    pub fn kill(&self, node: usize) -> anyhow::Result<()> {
        let process = self.signal(node, Signal::KILL)?;
        wait_until_over(process)
    }

    /// Tells a node to stop, and waits until it has.
    ///
    /// # Errors
    /// It does not run, or does not stop.
    pub fn stop(&self, node: usize) -> anyhow::Result<()> {
        let process = self.signal(node, Signal::TERM)?;
        // One that is stopped by a signal cannot hear another one.
        let _ = self.signal(node, Signal::CONT); // It may have ended by now.
        wait_until_over(process)
    }

    /// Stops the nodes that run; how many there were.
    ///
    /// # Errors
    /// One does not stop, even by force.
    pub fn down(&self) -> anyhow::Result<usize> {
        let nodes = 0..self.nodes();
        let running: Vec<_> = nodes.filter(|&node| self.process(node).is_some()).collect();
        for &node in &running {
            let _ = self.signal(node, Signal::TERM); // Waited for below, if it runs still.
        }
        for &node in &running {
            if self.process(node).is_some() && self.stop(node).is_err() {
                let killed = self.kill(node);
                // It may have ended by itself meanwhile.
                self.process(node).map_or(Ok(()), |_| killed)?;
            }
        }
        self.links().map_or(Ok(()), |links| links.stop())?;
        Ok(running.len())
    }

    /// How a node says it does.
    ///
    /// # Errors
    /// It does not answer.
    pub fn visit(&self, node: usize) -> anyhow::Result<Visited> {
        Ok(visit::status(&self.addresses[node], VISIT_WITHIN)?)
    }

    /// Waits until nodes have found each other and the others.
    ///
    /// # Errors
    /// One ends, or gets on with nothing for twenty seconds.
    pub fn wait_until_all_ready(&self, nodes: &[usize]) -> anyhow::Result<()> {
        nodes.iter().try_for_each(|node| self.wait_until_ready_among(*node, nodes))
    }

    /// Waits until a node has found the others.
    ///
    /// # Errors
    /// It ends, or gets on with nothing for twenty seconds.
    pub fn wait_until_ready(&self, node: usize) -> anyhow::Result<()> {
        self.wait_until_ready_among(node, &[node])
    }

    /// As [`wait_until_ready`](Self::wait_until_ready); an error as soon as one of those has ended
    /// that were started with it, for which it would wait in vain.
    fn wait_until_ready_among(&self, node: usize, started: &[usize]) -> anyhow::Result<()> {
        let mut output = self.last_output(node);
        let mut deadline = Instant::now() + COMES_UP_WITHIN;
        let at_last = Instant::now() + PATIENCE_AT_MOST;
        loop {
            // One with much data says how far it is with reading them.
            let now = self.last_output(node);
            if now != output {
                (output, deadline) = (now, Instant::now() + COMES_UP_WITHIN);
            }
            let output_text = match self.visit(node) {
                Ok(visited) if visited.status_of("ready") == Some(1) => return Ok(()),
                Ok(_) => "it is still looking for the others".to_owned(),
                Err(error) => error.to_string(),
            };
            let gone = started.iter().copied().find(|node| self.process(*node).is_none());
            if let Some(other) = gone.filter(|other| *other != node) {
                return Err(self.does_not_come_up(other, "it has ended"));
            }
            if gone.is_some() || Instant::now() > deadline.min(at_last) {
                return Err(self.does_not_come_up(node, &output_text));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn does_not_come_up(&self, node: usize, why: &str) -> anyhow::Error {
        let (output, others) = (self.last_output(node), self.state_of_others(node));
        anyhow!("server {node} does not come up: {why}; its last words: {output}{others}")
    }

    /// How the servers do that another one may be looking for.
    fn state_of_others(&self, node: usize) -> String {
        let state = |other: usize| {
            let runs = if self.process(other).is_some() { "runs" } else { "does not run" };
            format!("\n  server {other} {runs}; its last words: {}", self.last_output(other))
        };
        (0..self.nodes()).filter(|other| *other != node).map(state).collect()
    }

    /// The last line that a server has printed, with those of an error that it is a part of.
    pub fn last_output(&self, node: usize) -> String {
        let text = fs::read_to_string(self.folder(node).join("output")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.iter().rposition(|line| !line.starts_with("  "));
        first.map_or("none".to_owned(), |first| lines[first..].join("\n"))
    }
}

/// Makes a folder with those above it, each stable in the one that holds it: data are kept below.
fn make_folder(path: &Path) -> anyhow::Result<()> {
    let made = muesli_log::disk::directory::create_synced(path);
    made.with_context(|| format!("cannot make {}", path.display()))
}

/// Makes a secret, for its owner to read, where there is none.
fn make_secret(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;

    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => Ok(writeln!(file, "{}", muesli_cluster::wire::proof::new_secret())?),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot make {}", path.display())),
    }
}
