//! Runs one benchmark on one driver.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use muesli::{Connect, Db, Options};
use muesli_check::History;
use muesli_core::Settings;
use muesli_core::catalog::TreePlan;
use muesli_sim::network::racks::RackTraffic;
use muesli_sim::world::NodeTraffic;
use muesli_workloads::available::{self, Description};
use muesli_workloads::check::Check;
use muesli_workloads::embedded::{self, Embedded, Length, Outcome};
use muesli_workloads::geography::Geography;
use muesli_workloads::history::{by_lists, by_versions};
use muesli_workloads::machines::MachineModel;
use muesli_workloads::simulated::{self, Simulated, SimulatedOutcome, Upkeep};
use muesli_workloads::tally::{Tallies, Tally};
use muesli_workloads::workload::AnyWorkload;
use serde_json::{Map, Value as Json};

use super::report::{BenchResult, BetweenRacks, Checked, CommitLatency, HeldTimes};
use crate::local::{self, LinkModel, LocalNetwork, Temporary};
use crate::options::{BatchOptions, geography, tree};
use crate::reach;

/// Where a benchmark runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchDriver {
    /// In this process; a node is a loop on a thread of its own
    Embedded,
    /// In the simulator, in virtual time; nothing is logged, as in this process
    Sim,
    /// On a cluster of processes over TCP; the clients are in this process
    Cluster,
}

impl BenchDriver {
    fn name(self) -> &'static str {
        match self {
            BenchDriver::Embedded => "embedded",
            BenchDriver::Sim => "sim",
            BenchDriver::Cluster => "cluster",
        }
    }
}

/// One benchmark.
#[derive(Clone, Debug)]
pub struct Benchmark {
    pub workload: &'static Description,
    pub parameters: Vec<String>,
    pub driver: BenchDriver,
    pub protocol: String,
    pub nodes: usize,
    /// How many loops each server of a cluster has: nodes with data.
    pub loops: usize,
    /// How many nodes there are besides, which decide for the others.
    pub masters: usize,
    /// The tree above the nodes.
    pub tree: Option<TreePlan>,
    /// How many nodes there are besides, on which its validators live.
    pub validator_nodes: usize,
    /// How messages leave.
    pub batches: BatchOptions,
    pub repositories: usize,
    pub replicas: usize,
    /// How many threads of each node run procedures.
    pub procedure_threads: usize,
    /// How many nodes keep each repository, on a cluster or in the simulator.
    pub group: u16,
    /// How many partitions there are for each repository.
    pub partitions_per_repository: usize,
    /// How many procedures that have nothing to do with each other are run together, in the
    /// simulator.
    pub parallel: usize,
    /// Whether nodes keep copies of repositories that live elsewhere.
    pub caches: bool,
    /// The server that the clients of a cluster are near to.
    pub near: Option<u32>,
    /// On how many nodes of their own the clients run, in the simulator.
    pub client_nodes: usize,
    /// What nodes are in the simulator.
    pub machine: MachineModel,
    /// Whether all transactions of the clients are strict.
    pub strict: bool,
    pub clients: u32,
    /// Clients run for so long without being measured first, in this process.
    pub warm_up: Duration,
    pub length: Length,
    pub seed: u64,
    /// Whether what happens is recorded.
    pub history: bool,
    /// Whether what a cluster holds is to survive its processes.
    pub durable: bool,
    /// Whether each server of a cluster that is started has a network namespace of its own.
    pub namespaces: bool,
    /// A cluster that is there already; none: one is started.
    pub connect: Option<String>,
}

/// What was sent while it ran.
struct Sent {
    messages: u64,
    packets: u64,
    /// What only the simulator counts.
    simulated: Option<(NodeTraffic, RackTraffic)>,
}

impl Benchmark {
    /// Runs it with its workload, built from its parameters; what was measured, and the history if
    /// it was to be recorded. Clients count in `tallies` while they run.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn run(
        &self,
        workload: &Arc<dyn AnyWorkload>,
        tallies: &Arc<Tallies>,
    ) -> anyhow::Result<(BenchResult, Option<History>)> {
        match self.driver {
            BenchDriver::Embedded => self.run_embedded(workload, tallies),
            BenchDriver::Sim => self.run_simulated(workload, tallies),
            BenchDriver::Cluster => self.run_on_cluster(workload, tallies),
        }
    }

    fn run_on_cluster(
        &self,
        workload: &Arc<dyn AnyWorkload>,
        tallies: &Arc<Tallies>,
    ) -> anyhow::Result<(BenchResult, Option<History>)> {
        let (masters, tree) = (self.nodes + self.masters, self.tree.as_ref());
        let servers = masters + self.validator_nodes;
        let keys_of_tree = tree.map(|tree| tree::keys(tree, masters, self.validator_nodes));
        let plan = local::ClusterPlan {
            nodes: servers,
            loops: self.loops,
            repositories: self.repositories,
            replicas: self.replicas,
            group: self.group,
            protocol: self.protocol.clone(),
            durable: self.durable,
            extra: self.keys(masters, keys_of_tree.transpose()?.unwrap_or_default()),
            reached: None,
            troubled: false,
        };
        let network = LocalNetwork { links: self.links(), namespaces: self.namespaces };
        let started = match self.connect {
            Some(_) => None,
            None => Some(Temporary::up_on(&plan, network)?),
        };
        let connect = self.connections(workload, started.as_ref())?;
        let dbs = connect.into_iter().map(Db::connect_with).collect::<Result<Vec<_>, _>>()?;
        let options = Options::default();
        let (warm_up, length, seed) = (self.warm_up, self.length, self.seed);
        let plan = Embedded { options, warm_up, length, seed, strict: self.strict };
        let outcome = embedded::run_connected(&dbs, workload, &plan, tallies)?;
        self.finish(workload, outcome)
    }

    /// What is between the servers of a cluster that is started.
    fn links(&self) -> LinkModel {
        match &self.machine.geography {
            Some(geography) => LinkModel::Sites(geography.clone()),
            None if self.machine.racks.nodes > 0 => LinkModel::Racks(self.machine.racks),
            None => LinkModel::None,
        }
    }

    /// How the clients connect: from each site, or all together.
    fn connections(
        &self,
        workload: &Arc<dyn AnyWorkload>,
        started: Option<&Temporary>,
    ) -> anyhow::Result<Vec<Connect>> {
        let options = Connect {
            protocol: self.protocol.clone(),
            history: self.history && workload.history().is_none(),
            procedures: available::procedures(),
            secret: crate::options::secret(None)?,
            caches: self.caches,
            batching: self.batches.batching()?.unwrap_or_default(),
            near: self.near,
            ..Connect::default()
        };
        let (Some(started), None) = (started, &self.connect) else {
            let addresses = reach::addresses(self.connect.as_deref().unwrap_or_default());
            reach::first(&addresses)?;
            return Ok(vec![Connect { addresses, ..options }]);
        };
        let direct = || started.cluster.addresses().to_vec();
        let seen_from =
            |place| started.links.as_ref().map_or_else(direct, |it| it.seen_from(place));
        let Some(geography) = &self.machine.geography else {
            return Ok(vec![Connect { addresses: seen_from(0), ..options }]);
        };
        let mut times = Settings::default();
        geography.prepare(&mut times);
        let sites = 0..geography.names().len();
        let at = |site: usize| {
            let addresses = seen_from(site);
            // The first server of each site has its number.
            let near = (site < self.nodes).then_some(site as u32);
            Connect {
                dial: (0..).zip(addresses.iter().cloned()).collect(),
                addresses: vec![addresses[site].clone()],
                near: self.near.or(near),
                retry_after: Duration::from_nanos(times.retry_after.0),
                ..options.clone()
            }
        };
        Ok(sites.map(at).collect())
    }

    /// Keys of the file of each server of a cluster.
    fn keys(&self, masters: usize, of_tree: Vec<String>) -> Vec<String> {
        let mut keys = vec![
            format!("record_collected = {}", self.history),
            format!("procedure_threads = {}", self.procedure_threads),
            format!("spread = {}", self.partitions_per_repository),
            format!("masters = {:?}", (self.nodes..masters).collect::<Vec<_>>()),
        ];
        let of_sites = |it| geography::keys(it, self.nodes);
        keys.extend(self.machine.geography.iter().flat_map(of_sites));
        keys.extend(of_tree);
        keys.extend(self.batches.lines());
        keys
    }

    fn run_embedded(
        &self,
        workload: &Arc<dyn AnyWorkload>,
        tallies: &Arc<Tallies>,
    ) -> anyhow::Result<(BenchResult, Option<History>)> {
        let at_sites = self.machine.geography.as_ref().and_then(Geography::shards).is_some();
        if !at_sites && !(1..=self.repositories).contains(&self.nodes) {
            let (nodes, repositories) = (self.nodes, self.repositories);
            bail!(
                "{nodes} nodes: there must be 1 to {repositories}, one repository a node at least"
            );
        }
        let options = Options {
            repositories: self.repositories,
            replicas: self.replicas,
            partitions_per_repository: self.partitions_per_repository,
            loops: self.nodes,
            masters: self.masters,
            tree: self.tree.clone(),
            validator_loops: self.validator_nodes,
            batching: self.batches.batching()?.unwrap_or_default(),
            sites: self.machine.geography.as_ref().map(Geography::in_process),
            shards: self.machine.geography.as_ref().and_then(Geography::shards).cloned(),
            protocol: self.protocol.clone(),
            procedure_threads: self.procedure_threads,
            history: self.history && workload.history().is_none(),
            ..Options::default()
        };
        let (warm_up, length, seed) = (self.warm_up, self.length, self.seed);
        let plan = Embedded { options, warm_up, length, seed, strict: self.strict };
        let outcome = embedded::run(workload, &plan, tallies)?;
        self.finish(workload, outcome)
    }

    /// What was measured on a real clock, and its history.
    fn finish(
        &self,
        workload: &Arc<dyn AnyWorkload>,
        outcome: Outcome,
    ) -> anyhow::Result<(BenchResult, Option<History>)> {
        let history = match (self.history, workload.history()) {
            (false, _) => None,
            (true, Some(lists)) => Some(by_lists(&lists, self.meta())?),
            (true, None) => Some(by_versions(&outcome.reports, &outcome.catalog, self.meta())?),
        };
        let Outcome { tally, length, messages, packets, checks, .. } = outcome;
        let sent = Sent { messages, packets, simulated: None };
        Ok((self.measured(&tally, length, sent, (checks, workload.notes())), history))
    }

    fn run_simulated(
        &self,
        workload: &Arc<dyn AnyWorkload>,
        tallies: &Arc<Tallies>,
    ) -> anyhow::Result<(BenchResult, Option<History>)> {
        let plan = Simulated {
            masters: self.masters,
            tree: self.tree.clone(),
            validator_nodes: self.validator_nodes,
            batching: self.batches.batching()?.unwrap_or_default(),
            repositories: self.repositories,
            replicas: self.replicas,
            partitions_per_repository: self.partitions_per_repository,
            upkeep: Upkeep {
                group: self.group,
                caches: self.caches,
                parallel: self.parallel,
                ..Upkeep::default()
            },
            client_nodes: self.client_nodes,
            warm_up: self.warm_up,
            strict: self.strict,
            history: self.history && workload.history().is_none(),
            ..Simulated::calm(&self.protocol, self.nodes, self.seed, self.length)
        };
        let outcome = simulated::run_on(&self.machine, workload, &plan, tallies)?;
        let history = match (self.history, workload.history()) {
            (false, _) => None,
            (true, Some(lists)) => Some(by_lists(&lists, self.meta())?),
            (true, None) => Some(outcome.run.history(self.meta())?),
        };
        let SimulatedOutcome { tally, length, messages, traffic, between_racks, checks, .. } =
            outcome;
        let packets = traffic.packets;
        let sent = Sent { messages, packets, simulated: Some((traffic, between_racks)) };
        Ok((self.measured(&tally, length, sent, (checks, workload.notes())), history))
    }

    fn measured(
        &self,
        tally: &Tally,
        length: Duration,
        sent: Sent,
        (checks, notes): (Vec<Check>, Vec<String>),
    ) -> BenchResult {
        let seconds = length.as_secs_f64();
        let each = |count: u64| count as f64 / tally.committed.max(1) as f64;
        let simulated = sent.simulated.as_ref().map(|(traffic, _)| traffic);
        let racks = self.nodes.checked_div(self.machine.racks.nodes);
        let between_racks = racks.zip(sent.simulated.as_ref()).map(|(racks, (_, between))| {
            let uplinks = racks as f64 * seconds;
            BetweenRacks {
                messages: each(between.messages),
                packets: each(between.packets),
                bytes: each(between.bytes),
                occupied: between.occupied.as_nanos() as f64 / 1e9 / uplinks.max(1e-9),
            }
        });
        BenchResult {
            workload: self.workload.name,
            protocol: self.protocol.clone(),
            driver: self.driver.name(),
            nodes: self.nodes,
            repositories: self.repositories,
            replicas: self.replicas,
            clients: self.clients,
            seed: self.seed,
            parameters: self.parameters.clone(),
            seconds,
            committed: tally.committed,
            aborted: tally.aborted,
            rolled_back: tally.rolled_back,
            failed: tally.failed,
            unknown: tally.unknown,
            throughput: if seconds > 0.0 { tally.committed as f64 / seconds } else { 0.0 },
            abort_rate: tally.abort_rate(),
            latency_us: CommitLatency::of(tally),
            batch: self.batches.batch.unwrap_or(1),
            messages_per_commit: each(sent.messages),
            packets_per_commit: each(sent.packets),
            bytes_per_commit: simulated.map(|it| each(it.bytes)),
            between_racks,
            held_us: simulated.map(|it| HeldTimes::of(&it.batches)),
            messages_by_kind: simulated
                .map(|it| it.kinds.iter().map(|(name, count)| (*name, each(*count))).collect()),
            checks: checks.into_iter().map(|it| Checked::new(it, &self.protocol)).collect(),
            notes,
        }
    }

    fn meta(&self) -> Map<String, Json> {
        let fields = [
            ("workload", Json::from(self.workload.name)),
            ("protocol", Json::from(self.protocol.as_str())),
            ("driver", Json::from(self.driver.name())),
            ("seed", Json::from(self.seed)),
            ("parameters", Json::from(self.parameters.clone())),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Writes a history to a file.
///
/// # Errors
/// It cannot be written.
pub fn write_history(history: &History, path: &Path) -> anyhow::Result<()> {
    let message = || format!("cannot write the history to {}", path.display());
    let file = File::create(path).with_context(message)?;
    history.write(BufWriter::new(file)).with_context(message)
}
