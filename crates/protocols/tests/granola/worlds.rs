//! Worlds of Granola, run to their end and judged.

use std::rc::Rc;
use std::sync::Arc;

use muesli_check::{Level, Options, check};
use muesli_core::parallel::{Parallel, Shuffled};
use muesli_core::{Catalog, Nanos, NodeId, SpaceOptions, Typed};
use muesli_protocols::granola::{Granola, Switches};
use muesli_sim::hardware::clock::Drift;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::fault::{Fault, FaultKind, FaultKinds};
use muesli_sim::plan::{Plan, PlanShape, TimedFault};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, Run, Setup, World};
use serde_json::Map;

use super::clients::{Mix, Tally, client};
use super::procedures::{SPACE, all};

pub const NODES: u32 = 3;
pub const CLIENTS: u32 = 6;

/// A world, but for its seed.
#[derive(Clone, Debug)]
pub struct Shape {
    pub switches: Switches,
    pub mix: Mix,
    /// Kinds of faults, which the seed draws.
    pub faults: &'static str,
    pub replicas: usize,
    /// How many partitions there are for each repository.
    pub partitions_per_repository: usize,
    pub length: Span,
    pub clients: u32,
    /// How far the clock of n1 is ahead of the others'.
    pub ahead: Span,
    /// How far n2 is from the others, if that is further than they are from each other.
    pub far: Span,
    /// Clients take the nearest copy, and their nodes keep some.
    pub caches: bool,
    /// How many procedures are run together at most, in an order that the seed draws.
    pub in_parallel: usize,
    /// How many nodes besides decide for the others; they hold no keys and run no clients.
    pub masters: u32,
}

/// What came of it.
pub struct Outcome {
    pub tally: Rc<Tally>,
    /// What does not hold.
    pub problem: Option<String>,
    /// What happened, line by line, if it was asked for.
    pub trace: Option<String>,
    /// How many were run together with others, at all nodes in their last lives.
    pub in_parallel: u64,
}

impl Shape {
    pub fn new(mix: Mix) -> Shape {
        let (switches, replicas, length) = (Switches::default(), 1, Span::from_millis(60));
        let (ahead, far, caches, clients) = (Span::ZERO, Span::ZERO, false, CLIENTS);
        let (faults, in_parallel, partitions_per_repository, masters) = ("none", 1, 1, 0);
        Shape {
            switches,
            mix,
            faults,
            replicas,
            partitions_per_repository,
            length,
            clients,
            ahead,
            far,
            caches,
            in_parallel,
            masters,
        }
    }

    fn nodes(&self) -> u32 {
        NODES + self.masters
    }

    fn catalog(&self) -> Catalog {
        let homes: Vec<NodeId> = (0..NODES).map(NodeId).collect();
        let masters: Vec<NodeId> = (NODES..self.nodes()).map(NodeId).collect();
        let catalog = Catalog::new(&homes, self.replicas, &homes).expect("a catalog");
        let catalog = catalog.with_masters(&masters);
        let catalog = catalog
            .with_partitions_per_repository(self.partitions_per_repository)
            .expect("a few partitions");
        catalog.with_space(SPACE, SpaceOptions::default()).expect("a space")
    }

    fn plan(&self, seed: u64) -> Plan {
        if self.ahead > Span::ZERO {
            let fault = Fault::Skew(NodeId(1), self.ahead, Drift::default());
            let (at, length) = (VirtualTime::ZERO, Span::from_micros(1));
            let horizon = VirtualTime::ZERO + self.length;
            return Plan::new(horizon, vec![TimedFault { at, length, fault }]).expect("a plan");
        }
        let kinds: FaultKinds = self.faults.parse().expect("kinds of faults");
        // Here every repository is on one disk alone.
        let kinds = kinds.without(FaultKind::Loss);
        let horizon = VirtualTime::ZERO + self.length;
        let faults_max = if self.faults == "none" { 0 } else { 8 };
        let shape = PlanShape {
            nodes: self.nodes(),
            clients: self.clients,
            horizon,
            kinds,
            trees: 0,
            faults_max,
        };
        shape.draw(Seed::new(seed))
    }

    fn setup(&self, seed: u64) -> Setup {
        let (least, mean_tail) = (Span::from_micros(40), Span::from_micros(60));
        let latency = Latency::Exponential { least, mean_tail };
        let mut topology =
            Topology::uniform(self.nodes() as usize, ChannelClass { latency, bandwidth: 0 });
        for near in (0..NODES - 1).filter(|_| self.far > Span::ZERO) {
            let link_class = ChannelClass { latency: Latency::Constant(self.far), bandwidth: 0 };
            topology.set_channel(NodeId(near), NodeId(NODES - 1), link_class);
            topology.set_channel(NodeId(NODES - 1), NodeId(near), link_class);
        }
        let catalog = Arc::new(self.catalog());
        let mut setup = Setup::new(
            Arc::new(Typed::<Granola>(self.switches)),
            Seed::new(seed),
            catalog,
            topology,
            self.plan(seed),
        );
        setup.history = true;
        setup.checkpoint_every = seed.is_multiple_of(3).then(|| Span::from_millis(5));
        setup.settings.record_collected = true;
        setup.settings.caches = self.caches;
        if self.caches {
            setup.settings.gossip_every = Nanos::from_millis(1);
        }
        setup.settings.procedures = all();
        setup.settings.parallel = Parallel::new(self.in_parallel, Arc::new(Shuffled { seed }));
        setup.settings.retry_after = Nanos::from_millis(4);
        // Some take the first vote that is late for a participant that stays away.
        setup.settings.in_doubt_after = Nanos::from_millis([1, 5, 100][seed as usize % 3]);
        setup
    }

    pub fn run(&self, seed: u64) -> Outcome {
        self.run_in(self.setup(seed), seed)
    }

    /// As [`run`](Self::run), with a trace.
    pub fn traced(&self, seed: u64) -> Outcome {
        self.run_in(Setup { trace_text: true, ..self.setup(seed) }, seed)
    }

    /// Runs it to its end, and gives all that it left.
    pub fn run_calm(&self, seed: u64) -> Run {
        self.left_by(self.setup(seed))
    }

    /// The same, where procedures are run together by others.
    pub fn run_by(&self, seed: u64, in_parallel: Parallel) -> Run {
        let mut setup = self.setup(seed);
        setup.settings.parallel = in_parallel;
        self.left_by(setup)
    }

    fn left_by(&self, setup: Setup) -> Run {
        let horizon = setup.plan.horizon().max(VirtualTime::ZERO + self.length);
        let (mut world, _) = self.begin(setup);
        world.run_until(horizon);
        world.run_to_end(Span::from_secs(60)).expect("what was begun ends");
        world.finish()
    }

    fn begin(&self, setup: Setup) -> (World, Rc<Tally>) {
        let catalog = Rc::new((*setup.catalog).clone());
        let mut world = World::new(setup).expect("a setup");
        let tally: Rc<Tally> = Rc::default();
        let (database, mix, counted) = (world.database(), self.mix, tally.clone());
        let follower_read = self.caches;
        let body: ClientBody = Rc::new(move |start| {
            Box::pin(client(
                database,
                catalog.clone(),
                (mix, follower_read),
                start,
                counted.clone(),
            ))
        });
        for number in 0..self.clients {
            world.add_client(NodeId(number % NODES), Rc::clone(&body));
        }
        (world, tally)
    }

    fn run_in(&self, setup: Setup, seed: u64) -> Outcome {
        let plan = setup.plan.clone();
        let (mut world, tally) = self.begin(setup);
        let horizon = plan.horizon().max(VirtualTime::ZERO + self.length);
        world.run_until(horizon);
        let settled = world.run_to_end(Span::from_secs(60));
        let run = world.finish();
        let mut problem = settled.err().map(|stuck| stuck.to_string());
        let options = Options { session_order: true, ..Options::default() };
        match run.history(Map::new()) {
            Ok(history) => {
                let verdict = check(&history, Level::Serializable, &options);
                if !verdict.holds() {
                    problem = problem.or(Some(verdict.to_string()));
                }
            }
            Err(error) => problem = problem.or(Some(error.to_string())),
        }
        let problem = problem.map(|text| format!("seed {seed}, plan {plan}: {text}"));
        Outcome { tally, problem, trace: run.trace_text, in_parallel: run.modes.parallel }
    }
}
