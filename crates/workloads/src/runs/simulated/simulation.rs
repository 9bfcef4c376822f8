//! The run itself: a world with nodes, loading, the clients of the workload, and the check.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use muesli::{Db, Error};
use muesli_core::{AnyProtocol, NodeId};
use muesli_group::layout;
use muesli_registry::{NoMasters, NoShards};
use muesli_sim::hardware::processor::ProcessorLoad;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, ClientStart, Stuck, World};

use super::setup::{catalog, geography, setup, topology};
use super::{Simulated, SimulatedOutcome, SimulationError, following};
use crate::chance::Chance;
use crate::check::{Check, Complaints};
use crate::embedded::Length;
use crate::guarantees::ENDS;
use crate::guest;
use crate::lingering::linger;
use crate::machines::MachineModel;
use crate::pauses::{one_clock, pause};
use crate::tally::{Tallies, Tally};
use crate::workload::{AnyWorkload, Clock, Seat};

/// How long everything may take to end once nothing is wrong any more.
const PATIENCE: Span = Span::from_secs(20);
/// The same, where strangers lie in the name of members.
const PATIENCE_AMONG_LIARS: Span = Span::from_millis(500);
/// The same where the clients still have their transactions to run.
const PATIENCE_WORKING: Span = Span::from_secs(3_600);
/// How long loading may take.
const LOADING_MOST: Span = Span::from_secs(600);
/// How often it is looked whether loading is done.
const LOOK_EVERY: Span = Span::from_millis(1);

/// What a task in the world leaves when it has ended.
type Answer<T> = Rc<RefCell<Option<Result<T, Error>>>>;

/// A run under way.
pub(super) struct Simulation<'a> {
    world: World,
    db: Db,
    keeps_old_versions: bool,
    /// Nodes have copies of their own, which the protocol keeps alike.
    has_copies: bool,
    workload: &'a Arc<dyn AnyWorkload>,
    plan: &'a Simulated,
    tallies: &'a Arc<Tallies>,
    client_nodes: u32,
    /// The node of a client that is killed.
    guest: Option<NodeId>,
    clock: Clock,
    stop: Rc<Cell<bool>>,
    /// When the last client ended.
    ended: Rc<Cell<u64>>,
}

impl<'a> Simulation<'a> {
    pub(super) fn new(
        machine: &MachineModel,
        workload: &'a Arc<dyn AnyWorkload>,
        plan: &'a Simulated,
        protocol: Arc<dyn AnyProtocol>,
        tallies: &'a Arc<Tallies>,
    ) -> Result<Self, SimulationError> {
        if plan.masters > 0 && !protocol.has_masters() {
            return Err(NoMasters { name: plan.protocol.clone() }.into());
        }
        let client_nodes = machine.client_nodes + plan.client_nodes;
        let first_master = plan.nodes + client_nodes;
        let first_validator = first_master + plan.masters;
        let nodes = first_validator + plan.validator_nodes;
        let all: Vec<_> = (0..nodes).map(|node| NodeId(node as u32)).collect();
        let (masters, apart) = all[first_master..].split_at(plan.masters);
        let places = geography(machine, plan)?;
        if places.as_ref().is_some_and(|it| it.shards().is_some()) && !protocol.has_shards() {
            return Err(NoShards { name: plan.protocol.clone() }.into());
        }
        let catalog = catalog(workload, plan, nodes, (apart, places.as_ref()))?;
        let catalog = catalog.with_masters(masters);
        let catalog = match places {
            Some(geography) => catalog.with_sites(geography.sites(plan.nodes)),
            None => catalog,
        };
        let guest = plan.guest.then_some(NodeId(nodes as u32));
        let come_and_go = plan.visiting || plan.guest || plan.upkeep.strangers.is_some();
        let catalog = match come_and_go {
            true => catalog.with_visiting_coordinators(),
            false => catalog,
        };
        let clients = (plan.nodes..first_master).map(|node| NodeId(node as u32)).chain(guest);
        let is_near = |(at, client)| (client, NodeId((at % plan.nodes) as u32));
        let nearest: Vec<_> = clients.enumerate().map(is_near).collect();
        let catalog = Arc::new(catalog.with_nearest(&nearest));
        let keeps_old_versions = protocol.keeps_old_versions();
        let has_copies = protocol.replicates_itself();
        let topology = topology(machine, plan, apart, &catalog)?;
        let setup = setup(machine, plan, (protocol, topology), apart, &catalog)?;
        let world = World::new(setup)?;
        let keys = if plan.upkeep.group > 1 { layout::inner(&catalog) } else { catalog };
        let db = Db::for_driver(world.database(), keys, machine.retry);
        let db = if plan.strict { db.strict() } else { db };
        let clock = one_clock(world.database());
        let (stop, ended) = <(Rc<Cell<bool>>, Rc<Cell<u64>>)>::default();
        let client_nodes = client_nodes as u32;
        Ok(Simulation {
            world,
            db,
            keeps_old_versions,
            has_copies,
            workload,
            plan,
            tallies,
            client_nodes,
            guest,
            clock,
            stop,
            ended,
        })
    }

    pub(super) fn run(mut self) -> Result<SimulatedOutcome, SimulationError> {
        self.load()?;
        self.world.start_strangers();
        self.add_clients();
        if let Some(node) = self.guest {
            guest::comes_and_goes(&mut self.world, &self.db, node);
        }
        let warm_up = self.warm_up();
        let (begun, messages) = (self.world.now(), self.world.messages());
        let (traffic, between_racks) = (self.world.traffic(), self.world.between_racks());
        let load_before = self.load_with_data();
        let until = match self.plan.length {
            Length::Time(length) => begun + Span::from_nanos(length.as_nanos() as u64),
            Length::Transactions(_) => begun,
        };
        let until = until.max(self.plan.plan.horizon());
        let (nodes, how) = (self.plan.nodes, self.plan.following.as_ref());
        let followed = following::run_until(&mut self.world, &self.db, nodes, how, until);
        if let Some(tempo) = self.plan.tempo.filter(|_| self.guest.is_some()) {
            guest::wait_until_forgotten(&mut self.world, tempo.client_lease);
        }
        self.stop.set(true);
        let load_with_data = self.load_with_data().since(&load_before);
        let in_time = self.world.now().since(begun).as_nanos();
        let in_time = (self.tallies.total(), Duration::from_nanos(in_time));
        let settled = self.world.settle(self.patience());
        let messages = self.world.messages() - messages;
        let traffic = self.world.traffic().since(&traffic);
        let between_racks = self.world.between_racks().since(between_racks);
        let length = VirtualTime::from_nanos(self.ended.get()).since(begun);
        let mut checks = vec![ends(&settled)];
        if settled.is_ok() {
            checks.extend(self.check(NodeId(0)));
            checks.extend(self.check_other_sites());
        }
        let (tally, mut all) = (self.tallies.total(), warm_up);
        all.add(&tally);
        checks.push(all.expected());
        let length = Duration::from_nanos(length.as_nanos());
        let run = self.world.finish();
        Ok(SimulatedOutcome {
            tally,
            in_time,
            length,
            messages,
            traffic,
            between_racks,
            load_with_data,
            checks,
            followed,
            run,
        })
    }

    /// Lets the clients run without being measured; what they counted.
    fn warm_up(&mut self) -> Tally {
        if self.plan.warm_up > Duration::ZERO {
            let length = Span::from_nanos(self.plan.warm_up.as_nanos() as u64);
            self.world.run_until(self.world.now() + length);
        }
        self.tallies.take()
    }

    fn load_with_data(&self) -> ProcessorLoad {
        let nodes = (0..self.plan.nodes as u32).map(NodeId);
        nodes.fold(ProcessorLoad::default(), |all, node| all + self.world.load_of(node))
    }

    /// How long what was begun may take to end. Where strangers pass for members it need not end:
    /// it is enough to see that nodes live.
    fn patience(&self) -> Span {
        match (self.plan.upkeep.strangers, &self.plan.length) {
            (Some(how), _) if how.as_members => PATIENCE_AMONG_LIARS,
            (_, Length::Time(_)) => PATIENCE,
            (_, Length::Transactions(_)) => PATIENCE_WORKING,
        }
    }

    fn load(&mut self) -> Result<(), SimulationError> {
        let done: Answer<()> = Rc::default();
        let (answer, workload, db) = (done.clone(), self.workload.clone(), self.db.clone());
        let body: ClientBody = Rc::new(move |_| {
            let (answer, workload, session) = (answer.clone(), workload.clone(), db.independent());
            Box::pin(async move {
                // A node that restarts begins its clients anew, those that had ended too.
                if answer.borrow().is_none() {
                    let loaded = workload.load(&session).await;
                    *answer.borrow_mut() = Some(loaded);
                }
            })
        });
        self.world.add_client(NodeId(0), body);
        let limit = self.world.now() + LOADING_MOST;
        while done.borrow().is_none() && self.world.now() < limit {
            self.world.run_until(self.world.now() + LOOK_EVERY);
        }
        let after_ms = LOADING_MOST.as_nanos() / 1_000_000;
        let loaded = done.borrow().clone().unwrap_or(Err(Error::Timeout { after_ms }));
        loaded.map_err(SimulationError::Loading)
    }

    fn add_clients(&mut self) {
        for client in 0..self.tallies.clients() {
            let body = self.client_body(client);
            self.world.add_client(self.node_of(client), body);
        }
        // Whatever the faults are, snapshots become too old in each run of a search.
        let tempo =
            self.plan.tempo.filter(|_| self.keeps_old_versions && !self.workload.is_one_round());
        if let Some(tempo) = tempo {
            let node = self.node_of(self.plan.seed as u32);
            let body = self.lingering_body(tempo.outlives_snapshots());
            self.world.add_client(node, body);
        }
    }

    /// Where a client of this number runs.
    fn node_of(&self, client: u32) -> NodeId {
        match self.client_nodes {
            0 => NodeId(client % self.plan.nodes as u32),
            own => NodeId(self.plan.nodes as u32 + client % own),
        }
    }

    fn lingering_body(&self, open: Span) -> ClientBody {
        let (workload, db, stop) = (self.workload.clone(), self.db.clone(), self.stop.clone());
        let open = Duration::from_nanos(open.as_nanos());
        Rc::new(move |_| {
            let (workload, db, stop) = (workload.clone(), db.independent(), stop.clone());
            Box::pin(async move { linger(db, &*workload, open, stop).await })
        })
    }

    fn client_body(&self, client: u32) -> ClientBody {
        let clients = self.tallies.clients();
        let share = self.plan.length.share(client, clients);
        let least = match self.plan.length {
            Length::Time(_) => self.plan.transactions_least,
            Length::Transactions(all) => all.max(self.plan.transactions_least),
        };
        let least = Length::Transactions(least).share(client, clients);
        let ended = self.ended.clone();
        let (workload, tallies) = (self.workload.clone(), self.tallies.clone());
        let (db, clock, stop) = (self.db.clone(), self.clock.clone(), self.stop.clone());
        let (seed, pause_most) = (self.plan.seed, self.plan.pause_most);
        let database = self.world.database();
        Rc::new(move |start: ClientStart| {
            let stop = stop.clone();
            let seat = Seat {
                client,
                incarnation: start.incarnation,
                clients,
                node: start.node,
                db: db.independent(),
                chance: Chance::new(seed, client, start.incarnation),
                clock: clock.clone(),
                stop: Box::new(move |ended, _| ended >= share || (stop.get() && ended >= least)),
                pause: pause(database, pause_most),
                tallies: tallies.clone(),
                several: false,
            };
            let workload = workload.clone();
            let (clock, ended) = (clock.clone(), ended.clone());
            Box::pin(async move {
                // How its transactions ended is in its tally.
                workload.run(seat).await.unwrap_or(());
                ended.set(ended.get().max(clock().0));
            })
        })
    }

    /// Where sites keep copies of their own: whether what was checked at the first one holds at
    /// each of the others as well.
    fn check_other_sites(&mut self) -> Option<Check> {
        let deceives = self.plan.upkeep.strangers.is_some_and(|how| how.as_members);
        let others = 1..self.plan.nodes as u32;
        if !self.has_copies || deceives || others.is_empty() {
            return None;
        }
        let (mut wrong, all) = (Complaints::default(), others.len());
        for site in others {
            for check in self.check(NodeId(site)).into_iter().filter(|check| !check.ok) {
                wrong.add(|| format!("at node {site}, {}: {}", check.name, check.details));
            }
        }
        Some(Check::none_wrong("all of that holds at every other site", &wrong, format!("{all}")))
    }

    /// Checks the data by a fresh client on this node.
    fn check(&mut self, node: NodeId) -> Vec<Check> {
        let done: Answer<Vec<Check>> = Rc::default();
        let (answer, workload, db) = (done.clone(), self.workload.clone(), self.db.clone());
        let body: ClientBody = Rc::new(move |_| {
            let (answer, workload, session) = (answer.clone(), workload.clone(), db.independent());
            Box::pin(async move {
                let checked = workload.check(&session).await;
                *answer.borrow_mut() = Some(checked);
            })
        });
        self.world.add_client(node, body);
        let settled = self.world.settle(PATIENCE);
        let checked = done.borrow_mut().take();
        match checked {
            Some(Ok(checks)) => checks,
            Some(Err(error)) => vec![failed("the data can be checked", error.to_string())],
            None if settled.is_ok() => {
                vec![failed("the data can be checked", "nobody began".to_owned())]
            }
            None => vec![ends(&settled)],
        }
    }
}

fn ends(settled: &Result<(), Stuck>) -> Check {
    let name = ENDS;
    match settled {
        Ok(()) => Check { name, ok: true, details: String::new() },
        Err(stuck) => failed(name, stuck.to_string()),
    }
}

fn failed(name: &'static str, details: String) -> Check {
    Check { name, ok: false, details }
}
