//! Runs a workload in the simulator: the same clients, in virtual time, with faults.
//!
//! A loader is the world's client 0; the workload's clients follow. They run until the plan of
//! faults is over, and on until they have done as much as was asked. Then nothing is wrong any
//! more and everything that was begun must end; a fresh client checks the data.

mod following;
mod setup;
mod simulation;

use std::sync::Arc;
use std::time::Duration;

use muesli::Error;
use muesli_core::catalog::{CatalogError, ShardSitesError, TreeError, TreePlan};
use muesli_core::{Batching, Nanos, Protocol, Typed};
use muesli_group::layout::Unfit;
use muesli_registry::{Grouping, NoMasters, NoProtocol, NoShards};
use muesli_sim::hardware::processor::ProcessorLoad;
use muesli_sim::network::racks::RackTraffic;
use muesli_sim::plan::Plan;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{Mistake, NodeTraffic, Run, Setup, SetupError, Strangers};
use thiserror::Error;

use crate::check::Check;
use crate::embedded::Length;
use crate::geography::NoGeography;
use crate::machines::MachineModel;
use crate::machines::cores::NoCores;
use crate::machines::racks::NoRacks;
use crate::tally::{Tallies, Tally};
use crate::tempo::Tempo;
use crate::workload::AnyWorkload;
use simulation::Simulation;

pub use following::{BendsSamples, FollowedPeriod, Following};

pub use crate::guarantees::{guarantee, guarantee_of, guarantee_of_attempts, is_guaranteed};

/// How a simulated run is made.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The protocol, by name.
    pub protocol: String,
    /// How many nodes there are: those behind the first ones of as many as there are repositories
    /// have none, where the protocol keeps copies at sites and each node uses one there.
    pub nodes: usize,
    /// How many nodes there are besides, which decide for the others and do nothing else, under
    /// protocols that have masters. They are counted behind all others.
    pub masters: usize,
    /// How many repositories, dealt to the nodes in turn.
    pub repositories: usize,
    /// How many repositories hold each key.
    pub replicas: usize,
    /// How many partitions there are for each repository.
    pub partitions_per_repository: usize,
    /// The tree above the nodes with data, under protocols that validate by one; `None`: a root
    /// above all.
    pub tree: Option<TreePlan>,
    /// Other trees, which faults change it to.
    pub trees: Vec<TreePlan>,
    /// How many nodes there are besides, without data, on which the tree's validators live in turn;
    /// 0: they live beside the data. They are counted behind all others.
    pub validator_nodes: usize,
    /// Where all chance comes from.
    pub seed: u64,
    /// What goes wrong. Clients run at least to its horizon.
    pub plan: Plan,
    /// How long the clients run before they are measured, in virtual time.
    pub warm_up: Duration,
    /// How long the clients run, in virtual time, unless the plan is longer.
    pub length: Length,
    /// And they go on until there are so many transactions.
    pub transactions_least: u64,
    /// Clients pause before each transaction, at random up to this long.
    pub pause_most: Span,
    /// How many messages leave together over a link, and how long they wait for each other.
    pub batching: Batching,
    /// Whether records are logged, to survive crashes.
    pub logging: bool,
    /// What becomes of the logs.
    pub upkeep: Upkeep,
    /// Whether clients run on so many nodes of their own, which have no repositories; 0: beside
    /// the repositories.
    pub client_nodes: usize,
    /// Whether these nodes are strange to the others, as processes of applications are to servers:
    /// they come and go, and whoever is silent for long is forgotten.
    pub visiting: bool,
    /// Whether a client comes on a node of its own, and its process is killed early in the run.
    pub guest: bool,
    /// Whether all transactions of the clients are strict.
    pub strict: bool,
    /// How often nodes do what they do once in a while; `None`: as often as in production.
    pub tempo: Option<Tempo>,
    /// Whether some timers fire before their time.
    pub early_timers: bool,
    /// Whether a history is recorded.
    pub history: bool,
    /// What strangers do and say, where there are some; `None`: what the seed draws.
    pub script: Option<Arc<[u8]>>,
    /// Whether the trace is kept as text.
    pub trace: bool,
    /// How partitions follow the load, if they do, under a protocol that moves them.
    pub following: Option<Following>,
}

impl Simulated {
    /// Clients that do not pause, one repository a node, each key on one of them; nothing goes
    /// wrong, and nothing is logged or recorded.
    pub fn calm(protocol: &str, nodes: usize, seed: u64, length: Length) -> Simulated {
        Simulated {
            protocol: protocol.to_owned(),
            nodes,
            masters: 0,
            repositories: nodes,
            replicas: 1,
            partitions_per_repository: 1,
            tree: None,
            trees: Vec::new(),
            validator_nodes: 0,
            seed,
            plan: Plan::calm(VirtualTime::ZERO),
            warm_up: Duration::ZERO,
            length,
            transactions_least: 0,
            pause_most: Span::ZERO,
            batching: Batching::default(),
            logging: false,
            upkeep: Upkeep::default(),
            client_nodes: 0,
            visiting: false,
            guest: false,
            strict: false,
            tempo: None,
            early_timers: false,
            history: false,
            script: None,
            trace: false,
            following: None,
        }
    }

    /// What of this is the world's own.
    fn set_up(&self, setup: &mut Setup) {
        let sites = self.nodes.min(self.repositories);
        let exchanges = setup.protocol.exchanges_members() && sites >= SITES_LEAST;
        setup.replicated = self.upkeep.group > 1 || exchanges;
        setup.checkpoint_every = self.upkeep.checkpoint_every;
        setup.early_timers = self.early_timers;
        setup.strangers = self.upkeep.strangers;
        setup.mistake = self.upkeep.mistake;
        setup.script = self.script.clone();
        setup.history = self.history;
        setup.trace_text = self.trace;
        setup.settings.batching = self.batching;
    }
}

/// Of so many sites that have all data one may lose its disk.
pub(crate) const SITES_LEAST: usize = 3;

/// What keeps the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upkeep {
    /// How many nodes keep each repository, by agreeing on its log.
    pub group: u16,
    /// The time between two ticks of the groups' consensus, where it is not the usual one.
    pub tick: Option<Nanos>,
    /// Whether nodes keep copies of repositories that live elsewhere, for readers that take the
    /// nearest one.
    pub caches: bool,
    /// How many procedures that have nothing to do with each other are run together at most, in an
    /// order that the seed draws; 1: they are run one after the other.
    pub parallel: usize,
    /// How often each node begins a checkpoint, on average; `None`: never.
    pub checkpoint_every: Option<Span>,
    /// A mistake of the drivers, to see it noticed.
    pub mistake: Option<Mistake>,
    /// Whether there are strangers, who say what no honest process says.
    pub strangers: Option<Strangers>,
}

impl Default for Upkeep {
    /// Each repository on one node, with a log that is never cut.
    fn default() -> Upkeep {
        let (group, tick, caches, parallel, checkpoint_every) = (1, None, false, 1, None);
        let (mistake, strangers) = (None, None);
        Upkeep { group, tick, caches, parallel, checkpoint_every, mistake, strangers }
    }
}

/// What a simulated run gave.
#[derive(Debug)]
pub struct SimulatedOutcome {
    /// What the clients counted.
    pub tally: Tally,
    /// What they had counted when they were told to stop, and when that was.
    pub in_time: (Tally, Duration),
    /// How long they ran, in virtual time.
    pub length: Duration,
    /// What was checked afterwards.
    pub checks: Vec<Check>,
    /// Messages between nodes while the clients were measured and what they had begun ended.
    pub messages: u64,
    /// What was sent meanwhile, by all nodes together.
    pub traffic: NodeTraffic,
    /// What of it passed from racks to others.
    pub between_racks: RackTraffic,
    /// What nodes with data did, all together, from the start of the clients until these were told
    /// to stop.
    pub load_with_data: ProcessorLoad,
    /// Where partitions follow the load, each period.
    pub followed: Vec<FollowedPeriod>,
    /// What the world left behind.
    pub run: Run,
}

/// Why a run could not be made.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// Nodes, repositories or replicas that cannot be.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A tree that does not fit the nodes.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A setup that cannot be.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Groups that do not fit.
    #[error(transparent)]
    Groups(#[from] Unfit),
    /// A protocol that there is not.
    #[error(transparent)]
    Protocol(#[from] NoProtocol),
    /// Masters that the protocol does not have.
    #[error(transparent)]
    Masters(#[from] NoMasters),
    /// Sites of shards that the protocol does not have.
    #[error(transparent)]
    Shards(#[from] NoShards),
    /// Sites of shards at which these cannot be.
    #[error(transparent)]
    ShardSites(#[from] ShardSitesError),
    /// Sites of other shards than there are to be.
    #[error(
        "the sites of shards name {named} repositories with {each} replicas of each key, and \
         there are to be {repositories} with {replicas}, in groups of {group}: give them so, \
         without groups"
    )]
    ShardCounts {
        /// Repositories that are named.
        named: usize,
        /// Replicas of each key by that.
        each: usize,
        /// Repositories that there are to be.
        repositories: usize,
        /// Replicas of each key.
        replicas: usize,
        /// Members of each group; 1: no groups.
        group: u16,
    },
    /// Racks that the nodes do not fill.
    #[error(transparent)]
    Racks(#[from] NoRacks),
    /// Machines that the nodes do not fill.
    #[error(transparent)]
    Cores(#[from] NoCores),
    /// A space that is everywhere, under a protocol that keeps none.
    #[error("protocol `{protocol}` keeps no space everywhere, as `{space}` is")]
    Everywhere {
        /// The protocol.
        protocol: String,
        /// The space.
        space: String,
    },
    /// No nodes, or nodes without repositories.
    #[error("{nodes} nodes: there must be 1 to {repositories}, one repository a node at least")]
    Nodes {
        /// Asked for.
        nodes: usize,
        /// How many repositories there are.
        repositories: usize,
    },
    /// Sites that there are not.
    #[error(transparent)]
    Geography(#[from] NoGeography),
    /// Loading failed.
    #[error("the data could not be loaded: {0}")]
    Loading(Error),
}

/// Runs `workload` with as many clients as there are tallies, and checks it.
///
/// # Errors
/// The run cannot be made. That it went wrong is no error, but a check that does not hold.
pub fn run(
    workload: &Arc<dyn AnyWorkload>,
    plan: &Simulated,
    tallies: &Arc<Tallies>,
) -> Result<SimulatedOutcome, SimulationError> {
    run_on(&MachineModel::measured(), workload, plan, tallies)
}

/// As [`run`], on nodes like `machine`.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    machine: &MachineModel,
    workload: &Arc<dyn AnyWorkload>,
    plan: &Simulated,
    tallies: &Arc<Tallies>,
) -> Result<SimulatedOutcome, SimulationError> {
    // Short runs reach what gigabytes do: trimmed logs, transfers, entries that wait.
    let limits = match plan.tempo {
        Some(_) => muesli_group::Limits::tight(),
        None => muesli_group::Limits::default(),
    };
    let usual = Grouping { limits, ..Grouping::default() };
    let tick = plan.upkeep.tick.unwrap_or(usual.tick);
    let grouping = (plan.upkeep.group > 1).then_some(Grouping { tick, ..usual });
    let protocol = muesli_registry::protocol(&plan.protocol, grouping)?;
    Simulation::new(machine, workload, plan, protocol, tallies)?.run()
}

/// As [`run`], under protocol `P` with its switches set as given, whatever the plan names.
///
/// # Errors
/// As [`run`].
pub fn run_protocol<P: Protocol>(
    workload: &Arc<dyn AnyWorkload>,
    plan: &Simulated,
    switches: P::Switches,
    tallies: &Arc<Tallies>,
) -> Result<SimulatedOutcome, SimulationError> {
    let protocol = Arc::new(Typed::<P>(switches));
    Simulation::new(&MachineModel::measured(), workload, plan, protocol, tallies)?.run()
}
