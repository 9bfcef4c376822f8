//! The simulated world: the nodes of a protocol, their clients, and everything between them.
//!
//! The problem is to run the code of nodes and clients as it is, thousands of times, with faults,
//! such that every run can be repeated exactly. The idea: one thread, one queue of events in
//! virtual time, and all chance from one seed. Messages go through the [network](crate::network),
//! inputs through the [processor](crate::hardware::processor) of their node, records through its
//! [disk](crate::hardware::disk); clients are plain futures that reach their node through the
//! client port of
//! the core and are polled in the turns of that node. Faults come from a [plan](crate::plan).
//!
//! Why a run is a function of its setup and of the clients' code: events are ordered by time and,
//! at one time, by when they were scheduled; woken clients are polled in the order of waking; no
//! table is walked in an order that memory decides; nobody reads a real clock. The
//! [trace](crate::trace) is the proof: two runs of one setup have the same.
//!
//! What a crash loses is exactly what a machine loses: the node, its clients, what was under way
//! to it, an unknown suffix of what it had said, and an unknown suffix of the records that were
//! not stable, none of which anybody had been told of.

mod accesses;
mod checkpoints;
mod clients;
mod faults;
mod host;
mod links;
mod node_traffic;
mod run;
mod setup;
mod strangers;
mod tasks;
mod tick;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use muesli_core::catalog::Hierarchy;
use muesli_core::{AnyProtocol, Catalog, Envelope, MachineTimer, NodeId, OpId, Role, Settings};

use crate::hardware::disk::Disk;
use crate::network::racks::RackTraffic;
use crate::network::{Arrival, Departure, Network};
use crate::plan::Plan;
use crate::queue::EventQueue;
use crate::random::{Random, Seed};
use crate::time::{Span, VirtualTime};
use crate::trace::{Line, Trace};

pub use clients::{ClientBody, ClientStart, StopFlag};
pub use host::background::Background;
pub use host::journal::Recorded;
pub use host::longest::Longest;
pub use host::mistake::Mistake;
pub use host::routes::{Route, Routes};
pub use host::strangers::StrangerCount;
pub use node_traffic::NodeTraffic;
pub use run::{HostHistory, Run, Stuck};
pub use setup::{Setup, SetupError};
pub use strangers::Strangers;

use clients::WorldClient;
use host::Host;
use host::engine::HostEngine;
use host::input::HostInput;
use host::message::{Message, SentMessage};
use strangers::Crowd;
use tasks::{TaskId, Woken, WorldTasks};

/// A world of nodes that run one protocol.
pub struct World {
    now: VirtualTime,
    queue: EventQueue<Event>,
    network: Network<SentMessage>,
    engines: Vec<Rc<HostEngine>>,
    /// Nodes that the catalog does not list: clients that come and go.
    unregistered: Arc<BTreeSet<NodeId>>,
    /// The tasks of each host. Beside the engines and not in them, because a poll borrows both.
    tasks: Vec<WorldTasks>,
    /// Hosts whose turn begins now.
    due_ticks: VecDeque<usize>,
    woken: Woken,
    /// Empty between uses.
    woken_names: Vec<TaskId>,
    clients: Vec<WorldClient>,
    stop: StopFlag,
    seed: Seed,
    catalog: Arc<Catalog>,
    settings: Arc<Settings>,
    protocol: Arc<dyn AnyProtocol>,
    patience: Span,
    reconnect_every: Span,
    plan: Plan,
    trees: Vec<Hierarchy>,
    checkpoint_every: Option<Span>,
    /// When each host begins its checkpoints, and how large their pieces are.
    checkpoint_chances: Vec<Random>,
    /// Which timers fire early, if any do.
    early_timers: Option<Random>,
    mistake: Option<Mistake>,
    crowd: Option<Crowd>,
    /// How many faults keep each host down.
    crashes: Vec<u32>,
    /// Nodes whose next sync fails, and whether it has.
    failing_syncs: BTreeMap<NodeId, bool>,
    /// How many faults keep a link broken.
    held_broken: BTreeMap<(NodeId, NodeId), u32>,
    trace: Trace,
    /// How many messages were delivered from one host to another.
    messages: u64,
    database: u64,
}

/// What happens in the world.
enum Event {
    /// A message is due at its receiver, or at a link on its way.
    Arrive { departure: Departure, sent: SentMessage },
    /// A host's turn begins.
    Tick(usize),
    /// A timer of a machine is due.
    Timer { place: usize, incarnation: u32, timer: MachineTimer },
    /// A client's sleep is over.
    Awake { place: usize, incarnation: u32, op: OpId },
    /// A sync has ended.
    Synced { place: usize, incarnation: u32 },
    /// A node is told that its link to another one is gone.
    Unlinked { place: usize, incarnation: u32, other: NodeId },
    /// Time to try to make a broken link anew.
    Reconnect(NodeId, NodeId),
    /// A channel has been blocked for as long as its ends wait.
    GivenUp { from: NodeId, to: NodeId, since: VirtualTime },
    /// A stranger says something.
    Stranger,
    /// Time for a host to begin a checkpoint.
    Checkpoint(usize),
    /// The fault with this number in the plan.
    Fault(usize),
    /// Its repair.
    Repair(usize),
}

/// Names databases of simulated worlds; those of other drivers have the upper bit clear.
static DATABASES: AtomicU64 = AtomicU64::new(1 << 63);

impl World {
    /// A world at time zero, all of its nodes started, without clients.
    ///
    /// # Errors
    /// The setup cannot be run; see [`Setup::check`].
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        setup.check()?;
        let database = DATABASES.fetch_add(1, Ordering::Relaxed);
        let hosts = setup.topology.nodes();
        let woken = Woken::default();
        let unregistered = Arc::new(links::unregistered(&setup.catalog, hosts));
        let engines = (0..hosts as u32).map(|place| {
            let host = RefCell::new(new_host(&setup, place, &unregistered));
            Rc::new(HostEngine { database, host })
        });
        let trace = if setup.trace_text { Trace::with_text() } else { Trace::digest_only() };
        let strangers_chance = setup.seed.split("strangers").stream();
        let early = setup.seed.split("early timers").stream();
        let mut world = World {
            now: VirtualTime::ZERO,
            queue: EventQueue::new(),
            engines: engines.collect(),
            unregistered: Arc::clone(&unregistered),
            network: Network::new(setup.topology, setup.seed.split("network").stream()),
            tasks: (0..hosts as u32).map(|place| WorldTasks::new(place, woken.clone())).collect(),
            due_ticks: VecDeque::new(),
            woken,
            woken_names: Vec::new(),
            clients: Vec::new(),
            stop: StopFlag::default(),
            seed: setup.seed,
            catalog: setup.catalog,
            settings: Arc::new(setup.settings),
            protocol: setup.protocol,
            patience: setup.patience,
            reconnect_every: setup.reconnect_every,
            plan: setup.plan,
            trees: setup.trees,
            checkpoint_every: setup.checkpoint_every,
            checkpoint_chances: Vec::new(),
            early_timers: setup.early_timers.then_some(early),
            mistake: setup.mistake,
            crowd: setup.strangers.map(|how| Crowd::new(how, strangers_chance, setup.script)),
            crashes: vec![0; hosts],
            failing_syncs: BTreeMap::new(),
            held_broken: BTreeMap::new(),
            trace,
            messages: 0,
            database,
        };
        world.schedule_plan();
        world.schedule_checkpoints();
        world.schedule_stranger();
        (0..hosts).for_each(|place| world.start_node(place));
        Ok(world)
    }

    fn schedule_plan(&mut self) {
        for (number, timed) in self.plan.faults().iter().enumerate() {
            self.queue.push(timed.at, Event::Fault(number));
            self.queue.push(timed.repaired_at(), Event::Repair(number));
        }
    }

    /// Lets everything happen that happens until `limit`, which becomes the time.
    pub fn run_until(&mut self, limit: VirtualTime) {
        self.run_due_ticks();
        while let Some((time, event)) = self.queue.pop_until(limit) {
            self.now = time;
            self.happen(event);
            self.run_due_ticks();
        }
        self.now = self.now.max(limit);
    }

    fn run_due_ticks(&mut self) {
        while let Some(place) = self.due_ticks.pop_front() {
            self.tick(place);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { departure, sent } => self.arrive(departure, sent),
            Event::Tick(place) => self.tick(place),
            Event::Timer { place, incarnation, timer } => {
                if self.is_alive(place, incarnation) {
                    match timer {
                        MachineTimer::Role(role, timer) => {
                            self.trace_node(place, "timer", [role_number(role), timer.into(), 0]);
                        }
                        MachineTimer::Batches(number) => {
                            self.trace_node(place, "batches", [number.into(), 0, 0]);
                        }
                    }
                    self.offer(place, HostInput::Timer(timer));
                }
            }
            Event::Awake { place, incarnation, op } => {
                if self.is_alive(place, incarnation) {
                    self.trace_node(place, "awake", [op.0, 0, 0]);
                    self.offer(place, HostInput::Awake(op));
                }
            }
            Event::Synced { place, incarnation } => self.synced(place, incarnation),
            Event::Unlinked { place, incarnation, other } => {
                self.unlinked(place, incarnation, other);
            }
            Event::Reconnect(first, second) => self.reconnect(first, second),
            Event::GivenUp { from, to, since } => self.give_up(from, to, since),
            Event::Stranger => self.receive_from_stranger(),
            Event::Checkpoint(place) => self.begin_checkpoint(place),
            Event::Fault(number) => self.inflict(number),
            Event::Repair(number) => self.repair(number),
        }
    }

    fn arrive(&mut self, departure: Departure, sent: SentMessage) {
        let (from, to) = (sent.envelope.from.node, sent.envelope.to.node);
        if let Some(departure) = self.network.pass(self.now, from, to, departure) {
            return self.queue.push(departure.due, Event::Arrive { departure, sent });
        }
        match self.network.arrive(self.now, from, to, departure.epoch, sent) {
            Arrival::Delivered(sent) => self.deliver(sent),
            Arrival::Held => self.trace_node(to.0 as usize, "held", [from.0.into(), 0, 0]),
            Arrival::Lost => self.trace_node(to.0 as usize, "lost", [from.0.into(), 0, 0]),
        }
    }

    fn deliver(&mut self, sent: SentMessage) {
        let envelope = &sent.envelope;
        self.trace_message(envelope.message.name, envelope);
        self.messages += u64::from(envelope.from.node != envelope.to.node);
        if let Some(crowd) = &mut self.crowd {
            crowd.overhear(envelope.message.name, envelope);
        }
        let sender = self.sender_of(&sent);
        self.offer(sent.envelope.to.node.0 as usize, HostInput::Message(sender, sent));
    }

    fn synced(&mut self, place: usize, incarnation: u32) {
        if !self.is_alive(place, incarnation) || self.fail_sync(NodeId(place as u32)) {
            return;
        }
        let mut host = self.engines[place].host.borrow_mut();
        let stable = host.disk.finish_sync();
        let next = host.disk.start_sync(self.now);
        drop(host);
        self.trace_node(place, "synced", [stable as u64, 0, 0]);
        if let Some(end) = next {
            self.queue.push(end, Event::Synced { place, incarnation });
        }
        self.offer(place, HostInput::Stable);
    }

    /// Whether the host still is in that life of its node.
    fn is_alive(&self, place: usize, incarnation: u32) -> bool {
        let host = self.engines[place].host.borrow();
        host.is_up() && host.incarnation == incarnation
    }

    /// The time.
    pub fn now(&self) -> VirtualTime {
        self.now
    }

    /// Under which name clients find the database that this world simulates.
    pub fn database(&self) -> u64 {
        self.database
    }

    /// What goes wrong in this world.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many events have happened.
    pub fn events(&self) -> u64 {
        self.trace.events()
    }

    /// How many messages have been delivered from one node to another.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// What has passed from racks to others so far.
    pub fn between_racks(&self) -> RackTraffic {
        self.network.between_racks()
    }

    fn trace_message(&mut self, event: &'static str, envelope: &Envelope<Message>) {
        let numbers = [
            u64::from(envelope.from.node.0) << 32 | role_number(envelope.from.role),
            role_number(envelope.to.role),
            envelope.message.bytes,
        ];
        let line = Line { at: self.now, node: envelope.to.node.0, event, numbers };
        let protocol = &self.protocol;
        self.trace.event(line, |text| {
            use fmt::Write as _;
            write!(text, " {}", protocol.show(&envelope.message.body))
        });
    }

    fn trace_node(&mut self, place: usize, event: &'static str, numbers: [u64; 3]) {
        let line = Line { at: self.now, node: place as u32, event, numbers };
        self.trace.event(line, |_| Ok(()));
    }

    fn trace_world(&mut self, event: &'static str, numbers: [u64; 3], what: &impl fmt::Display) {
        let line = Line { at: self.now, node: u32::MAX, event, numbers };
        self.trace.event(line, |text| {
            use fmt::Write as _;
            write!(text, " {what}")
        });
    }
}

fn new_host(setup: &Setup, place: u32, unregistered: &Arc<BTreeSet<NodeId>>) -> Host {
    let disk_seed = setup.seed.split("disk").nth(place.into());
    let mut disk = Disk::new(setup.disk, disk_seed.stream());
    // Whoever falls behind by any fault may ask for its next life.
    if setup.plan.faults().is_empty() {
        disk.keep_nothing();
    }
    let random = setup.seed.split("host").nth(place.into()).stream();
    let costs = setup.costs_of.get(&NodeId(place)).copied().unwrap_or(setup.costs);
    let mut host = Host::new(NodeId(place), Arc::clone(&setup.catalog), disk, costs, random);
    host.outside.cores = setup.topology.cores_of(NodeId(place));
    host.outside.unregistered = Arc::clone(unregistered);
    host.cuts_too_much = setup.mistake == Some(Mistake::CutsTooMuch);
    if setup.history {
        host.record();
    }
    host
}

fn role_number(role: Role) -> u64 {
    match role {
        Role::Coordinator => 0,
        other => 1 + u64::from(other.code()),
    }
}
