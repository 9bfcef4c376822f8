//! A stage for nodes: the script decides which message arrives when, what is lost, when time
//! passes, and who crashes.

pub mod clusters;
mod page;
mod script;
mod surroundings;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use muesli_core::catalog::{TreePlan, TreeShape};
use muesli_core::recorder::{RecordedOperation, Status};
use muesli_core::{
    Catalog, Effects, Envelope, Environment, LogPosition, Machine, MachineTimer, Nanos, Node,
    NodeId, OpId, Partitioning, Recorder, Role, Settings, SpaceOptions, Step, Txn,
};
use page::Page;

use crate::harness::checkpoint_samples;
use crate::harness::judge::Evidence;
use crate::harness::samples::hex;
use crate::harness::subject::{Subject, lines, procedures};
pub use script::{Play, Script};
use surroundings::{Disk, Surroundings};

/// A node while it lives.
struct Host<P: Subject> {
    machine: Machine<P>,
    /// How many records it has logged in its life that are stable.
    stable: LogPosition,
    timers: BTreeMap<(Nanos, u64), (Role, u32)>,
    /// Operations not yet answered, with what the script calls them.
    waiting: BTreeMap<OpId, String>,
    /// How far its clock is ahead.
    skew: Nanos,
}

/// The nodes, the links between them, and the printed page.
pub struct Harness<P: Subject> {
    catalog: Arc<Catalog>,
    settings: Arc<Settings>,
    switches: P::Switches,
    /// Whether logs become stable only when the script says so.
    manual_sync: bool,
    now: Nanos,
    hosts: BTreeMap<u32, Host<P>>,
    disks: BTreeMap<u32, Disk<P>>,
    links: BTreeMap<(u32, u32), VecDeque<Envelope<P::Message>>>,
    timers_set: u64,
    /// The script's transactions: their node and handle.
    transactions: BTreeMap<String, (u32, Txn)>,
    /// Their names by when they began.
    begun: BTreeMap<u64, String>,
    evidence: Evidence,
    page: Page,
}

impl<P: Subject> Harness<P> {
    fn new(
        (nodes, masters, clients, tree): (u32, u32, u32, Option<TreeShape>),
        (replicas, partitions_per_repository): (usize, usize),
        settings: Settings,
        switches: P::Switches,
        manual: bool,
    ) -> Harness<P> {
        let homes: Vec<_> = (0..nodes).map(NodeId).collect();
        // Keys go by their first letter: a… to r0, b… to r1, and so on, and round again.
        let splits = (1..(nodes as usize * partitions_per_repository) as u8)
            .map(|n| [b'a' + n].as_slice().into())
            .collect();
        let options =
            SpaceOptions { partitioning: Partitioning::Range(splits), ..SpaceOptions::default() };
        let masters: Vec<_> = (nodes..nodes + masters).map(NodeId).collect();
        let catalog = Catalog::new(&homes, replicas, &homes).expect("possible numbers");
        let catalog = catalog
            .with_partitions_per_repository(partitions_per_repository)
            .expect("possible numbers");
        let catalog = catalog.with_masters(&masters);
        let clients: Vec<_> = (nodes..nodes + clients).map(|id| NodeId(id + 100)).collect();
        let catalog = match clients.is_empty() {
            true => catalog,
            false => catalog.with_visiting_coordinators(),
        };
        let catalog = match tree {
            Some(shape) => {
                catalog.with_tree(&TreePlan::from(shape), &[]).expect("a leaf for each node")
            }
            None => catalog,
        };
        let catalog = catalog.with_space(procedures::SPACE, options).expect("ascending splits");
        let mut harness = Harness {
            catalog: Arc::new(catalog),
            settings: Arc::new(settings),
            switches,
            manual_sync: manual,
            now: Nanos(0),
            hosts: BTreeMap::new(),
            disks: BTreeMap::new(),
            links: BTreeMap::new(),
            timers_set: 0,
            transactions: BTreeMap::new(),
            begun: BTreeMap::new(),
            evidence: Evidence::default(),
            page: Page::default(),
        };
        homes.iter().chain(&masters).chain(&clients).for_each(|id| harness.boot(id.0));
        harness.deliver_all(); // The first bounds, of which no script has more to say.
        harness.page.take();
        harness
    }

    /// Starts a node from what its disk holds.
    fn boot(&mut self, id: u32) {
        let disk = self.disks.entry(id).or_default();
        disk.incarnation += 1;
        let mut effects = Effects::new(Environment { now: self.now, ..Environment::default() });
        let (catalog, mut settings) = (self.catalog.clone(), self.settings.clone());
        if disk.is_lost {
            let lost_disk = Some(u64::from(disk.incarnation));
            settings = Arc::new(Settings { lost_disk, ..Settings::clone(&settings) });
        }
        let mut node = Node::new(NodeId(id), disk.incarnation, catalog, settings, &self.switches);
        for piece in &disk.checkpoint {
            node.restore(piece, &mut effects).expect("a piece of its own");
        }
        for (repository, record) in &disk.stable {
            node.replay(*repository, record.clone(), &mut effects);
        }
        assert!(effects.list.is_empty(), "a replay says nothing");
        effects.recorder = Some(Box::new(Recorder::new()));
        node.start(&mut effects);
        let host = Host {
            machine: Machine::new(node, effects),
            stable: LogPosition(0),
            timers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            skew: Nanos(0),
        };
        self.hosts.insert(id, host);
        self.perform(id);
    }

    /// The node is gone, with what it had not made stable.
    fn crash(&mut self, id: u32) {
        let Some(host) = self.hosts.remove(&id) else { return };
        let mut recorder = Recorder::new();
        host.machine.node.record_running(&mut recorder);
        self.evidence.absorb_crashed(id, &recorder);
        let disk = self.disks.get_mut(&id).expect("a booted node");
        for (repository, record) in std::mem::take(&mut disk.unstable) {
            let line = P::show_record(&record, &self.page.names);
            self.page.write(format_args!("r{} loses {line}", repository.0));
        }
        for what in host.waiting.values() {
            self.page.write(format_args!("{what}: never answered"));
            forget_untold(&mut self.evidence, |begin| self.begun.get(&begin) == Some(what));
        }
    }

    /// Nothing is left of what a node that is down had made stable.
    fn lose(&mut self, id: u32) {
        let disk = self.disks.get_mut(&id).expect("a booted node");
        (disk.checkpoint, disk.stable) = (Vec::new(), Vec::new());
        disk.is_lost = true;
    }

    fn host(&mut self, id: u32) -> Result<&mut Host<P>, String> {
        self.hosts.get_mut(&id).ok_or_else(|| format!("n{id} is down"))
    }

    /// A live node, which sees the time.
    fn awake(&mut self, id: u32) -> Result<&mut Machine<P>, String> {
        let now = self.now;
        let host = self.host(id)?;
        host.machine.effects.now = now + host.skew;
        Ok(&mut host.machine)
    }

    /// Does what a node asks for, as far as its log is stable, and what follows on the node.
    fn perform(&mut self, id: u32) {
        self.with(id, |machine, outside| machine.perform(outside));
    }

    /// Has a live node's machine do something, and whatever follows.
    fn with(&mut self, id: u32, run: impl FnOnce(&mut Machine<P>, &mut Surroundings<'_, P>)) {
        let Host { machine, stable, timers, waiting, .. } =
            self.hosts.get_mut(&id).expect("a live node");
        let mut outside = Surroundings {
            id,
            now: self.now,
            syncs: !self.manual_sync,
            stable,
            timers,
            waiting,
            timers_set: &mut self.timers_set,
            links: &mut self.links,
            disk: self.disks.get_mut(&id).expect("a booted node"),
            page: &mut self.page,
        };
        run(machine, &mut outside);
        loop {
            machine.learn_stable(*outside.stable);
            if !machine.let_go(&mut outside) && !machine.go_on(&mut outside) {
                break;
            }
        }
        machine.node.assert_invariants();
        let recorder = machine.effects.recorder.replace(Box::new(Recorder::new()));
        let recorder = recorder.expect("always recording");
        self.evidence.absorb(id, &recorder, self.page.names.keys().copied());
    }

    /// Everything logged at a node so far is stable now.
    fn sync(&mut self, id: u32) -> Result<(), String> {
        let disk = self.disks.get_mut(&id).expect("a booted node");
        let unstable = std::mem::take(&mut disk.unstable);
        let count = unstable.len() as u64;
        disk.stable.extend(unstable);
        self.host(id)?.stable.0 += count;
        self.with(id, |_, _| {});
        Ok(())
    }

    /// Takes a checkpoint of a node, which stands for its log from now on.
    fn checkpoint(&mut self, id: u32) -> Result<(), String> {
        let node = &self.host(id)?.machine.node;
        let pieces = checkpoint_samples::pieces(node, checkpoint_samples::PIECE_BYTES);
        let disk = self.disks.get_mut(&id).expect("a booted node");
        if !disk.unstable.is_empty() {
            return Err(format!("n{id} has logged what is not stable"));
        }
        disk.stable.clear();
        for piece in &pieces {
            self.page.write(format_args!("n{id} keeps {}", hex(piece)));
        }
        disk.checkpoint = pieces;
        Ok(())
    }

    /// Delivers the first message of a link; a node that is down loses it.
    fn deliver_one(&mut self, link: (u32, u32)) -> bool {
        let Some(envelope) = self.links.get_mut(&link).and_then(VecDeque::pop_front) else {
            return false;
        };
        match self.awake(link.1) {
            Ok(machine) => {
                machine.node.deliver(envelope, &mut machine.effects);
                self.perform(link.1);
            }
            Err(_) => {
                let line = lines::envelope::<P>(&envelope, &self.page.names);
                self.page.write(format_args!("lost: {line}"));
            }
        }
        true
    }

    /// Delivers everything, link by link, until no message is left.
    fn deliver_all(&mut self) {
        while let Some(link) = self.links.iter().find(|(_, link)| !link.is_empty()) {
            let link = *link.0;
            self.deliver_one(link);
        }
    }

    /// Lets time pass; timers fire in their order, messages stay where they are.
    fn wait(&mut self, duration: Nanos) {
        let end = self.now + duration;
        loop {
            let first = |(id, host): (&u32, &Host<P>)| Some((*host.timers.keys().next()?, *id));
            let next = self.hosts.iter().filter_map(first).min();
            let Some(((at, serial), id)) = next.filter(|((at, _), _)| *at <= end) else { break };
            self.now = self.now.max(at);
            let host = self.hosts.get_mut(&id).expect("a live node");
            let (role, timer) = host.timers.remove(&(at, serial)).expect("just seen");
            host.machine.effects.now = self.now + host.skew;
            self.with(id, |machine, outside| {
                machine.timer(MachineTimer::Role(role, timer), outside)
            });
        }
        self.now = end;
    }

    /// Has a node do what a command asks; prints the answer, or waits for it under the name `what`.
    fn operate(
        &mut self,
        id: u32,
        what: String,
        operation: muesli_core::Operation,
    ) -> Result<(), String> {
        let machine = self.awake(id)?;
        let step = machine.node.operate(operation, &mut machine.effects);
        if let Step::Wait(op) = step {
            self.host(id)?.waiting.insert(op, what);
            self.perform(id);
        } else if let Step::Done(answer) = step {
            self.perform(id);
            self.page.answer(&what, &answer);
        }
        Ok(())
    }

    fn running_evidence(&self) -> Evidence {
        let mut evidence = self.evidence.clone();
        for (id, host) in &self.hosts {
            let mut recorder = Recorder::new();
            host.machine.node.record_running(&mut recorder);
            evidence.absorb(*id, &recorder, []);
        }
        evidence
    }
}

/// The client of a transaction, known by when it began, was never told of its commit: whatever its
/// coordinator recorded, its end is unknown.
fn forget_untold(evidence: &mut Evidence, began: impl Fn(u64) -> bool) {
    let untold = evidence.transactions.iter_mut().filter(|(record, _)| began(record.begin.0));
    for (record, operations) in untold {
        (record.status, record.end, record.at) = (Status::Unknown, None, None);
        operations.retain(|operation| matches!(operation, RecordedOperation::Write { .. }));
    }
}
