//! Every interleaving of a few transactions: states are worlds of nodes, links and clients, and a
//! step is a client's next operation or the delivery of a link's first message (or, reordered,
//! of any message). Equal worlds are visited once. Time does not pass, but for this: where
//! nothing else can happen and somebody waits for a lock, the bounded wait ends.
//!
//! A scope may have a fault or two, each once, at any point. A node crashes: it comes back at once
//! with what was stable in its log, which is either everything or as little as it may be after what
//! the node has said; what it had sent arrives all the same, or is lost with it, as what leaves too
//! late is. A message is lost, or arrives twice. A timer fires early. With faults, where nothing
//! else can happen, time passes and all timers fire.

mod client;
mod delayed;
mod lifetime;
mod scope;
mod steps;
mod surroundings;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write as _;
use std::sync::Arc;

use muesli_core::catalog::{Hierarchy, InnerNode};
use muesli_core::memory::Memory;
use muesli_core::parallel::Backwards;
use muesli_core::{
    Catalog, Envelope, LogPosition, Machine, MachineTimer, Nanos, NodeId, Pace, Parallel,
    Partitioning, Recorder, Role, Settings, SpaceOptions, TxnId,
};

use crate::harness::judge::Evidence;
use crate::harness::subject::{Subject, Timer, procedures};
use client::Client;
pub use client::Do;
use lifetime::Host;
pub use scope::{Fault, Found, Program, Scope};
use surroundings::Surroundings;

/// A step from one world to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Client(usize),
    /// The message at a place of a link.
    Deliver(u32, u32, usize),
    /// A node's log becomes stable up to the next that something waits for: what it says to itself
    /// arrives, and what it says to others leaves.
    Stable(u32),
    /// A node does what it has left over for when it has said what it had to say.
    GoesOn(u32),
    WaitEnds(u32, Role, u32),
    /// The node loses its memory, and perhaps the end of its log.
    Crash(Fault, u32, Lost),
    Early(u32, Role, u32),
    Lose(u32, u32),
    Repeat(u32, u32),
    TimePasses,
}

/// How much of its log a crashed node loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Nothing,
    WhatItMay,
}

#[derive(Clone)]
struct World<P: Subject> {
    hosts: Vec<Host<P>>,
    links: BTreeMap<(u32, u32), VecDeque<Envelope<P::Message>>>,
    clients: Vec<Client>,
    /// Timers that were set; without crashes, only those that end waits for locks.
    timers: BTreeSet<(u32, Role, u32)>,
    /// The fault of the scope, and what is still to come of it and of the second one.
    fault: Option<Fault>,
    ahead: Vec<Fault>,
    /// How often time has passed: a bound for liveness.
    passed: u32,
    /// Transactions of which their coordinators have spoken.
    begun: BTreeSet<TxnId>,
    evidence: Evidence,
    /// Grows by two with every end of a transaction, so that real time orders what did not
    /// overlap, and only that.
    now: Nanos,
    /// How many versions were collected since the transactions began.
    collected: u64,
    path: Vec<Choice>,
}

/// So many states of a scope are looked at, unless the environment asks for all.
const PART: usize = 15_000;
/// With this variable in the environment every state of every scope is looked at, as `cargo xtask
/// explore` does.
const WHOLE: &str = "MUESLI_EXPLORE_WHOLE";

/// Explores scopes in which nothing may go wrong, and compares what was found with the file of this
/// name in `explored/`; what was found in each.
pub fn hold_as_written<P: Subject>(name: &str, scopes: &[Scope<P>], limit: usize) -> Vec<Found> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explored");
    let mut golden = goldenfile::Mint::new(folder);
    let mut file = golden.new_goldenfile(format!("{name}.txt")).expect("a writable folder");
    let written = std::fs::read_to_string(format!("{folder}/{name}.txt")).unwrap_or_default();
    let is_whole =
        [WHOLE, "UPDATE_GOLDENFILES"].iter().any(|name| std::env::var_os(name).is_some());
    let mut explored = |scope: &Scope<P>| {
        let title = scope.title();
        let known = written_of(&written, &title).filter(|known| !is_whole && known.0 > PART);
        if let Some((_, lines)) = known {
            let found = explore_part(scope, PART);
            assert_eq!(found.violation, None);
            let is_known = |outcome: &String| lines.contains(&format!(" × {outcome}\n"));
            assert!(found.outcomes.keys().all(is_known), "{title}: {:?}", found.outcomes);
            write!(file, "{title}\n{lines}").expect("a writable file");
            return found;
        }
        let found = explore(scope, limit);
        assert_eq!(found.violation, None);
        let states = found.states;
        writeln!(file, "{title}\n  {states} states").expect("a writable file");
        for (outcome, ends) in &found.outcomes {
            writeln!(file, "  {ends:6} × {outcome}").expect("a writable file");
        }
        found
    };
    scopes.iter().map(&mut explored).collect()
}

/// How many states a scope has, as it is written, and the lines that say so and how it ends.
fn written_of<'a>(written: &'a str, title: &str) -> Option<(usize, &'a str)> {
    let (_, rest) = written.split_once(&format!("{title}\n"))?;
    let lines = rest.split_inclusive('\n').take_while(|line| line.starts_with(' '));
    let lines = &rest[..lines.map(str::len).sum()];
    let states = lines.trim_start().split(' ').next()?;
    Some((states.parse().ok()?, lines))
}

/// Walks through every state of `scope`, to the first violation.
///
/// # Panics
/// If more than `limit` states are found, a state from which nobody gets any further, or no end in
/// which anything was collected although the scope says so.
pub fn explore<P: Subject>(scope: &Scope<P>, limit: usize) -> Found {
    let found = explore_part(scope, limit + 1);
    assert!(found.states <= limit, "more than {limit} states");
    found
}

/// The same, to so many states at most.
pub fn explore_part<P: Subject>(scope: &Scope<P>, most: usize) -> Found {
    let (mut found, mut has_collected) = (Found::default(), false);
    let start = World::new(scope);
    let mut seen = BTreeSet::from([start.fingerprint()]);
    let mut open = vec![start];
    while let Some(world) = open.pop() {
        found.states += 1;
        if found.states >= most {
            return found;
        }
        let choices = world.choices(scope.reordered);
        if choices.is_empty() {
            let outcome = world.outcome();
            *found.outcomes.entry(outcome).or_default() += 1;
            let undone = world.clients.iter().map(Client::partial_aborts).sum();
            *found.partial_aborts.entry(undone).or_default() += 1;
            has_collected |= world.collected > 0;
            let verdict = world.evidence.judge::<P>(scope.level);
            let delayed = world.judge_delayed().err();
            let broken = (!verdict.holds()).then(|| verdict.to_string()).or(delayed);
            if let Some(broken) = broken {
                found.violation = Some(format!("{:?}\n{broken}", world.path));
                return found;
            }
        }
        for choice in choices {
            let mut next = world.clone();
            next.take(choice);
            if seen.insert(next.fingerprint()) {
                open.push(next);
            }
        }
    }
    assert!(has_collected || !scope.collects, "nothing was collected: {}", scope.title());
    found
}

/// A root at node 0, above a validator at node 1 for the first two repositories and one at node 2
/// for the last.
fn two_levels() -> Hierarchy {
    let inner = |home, parent| InnerNode::new(NodeId(home), parent);
    let all = vec![inner(0, None), inner(1, Some(0)), inner(2, Some(0))];
    Hierarchy::new(all, vec![1, 1, 2]).expect("a tree")
}

impl<P: Subject> World<P> {
    fn new(scope: &Scope<P>) -> World<P> {
        let homes = [NodeId(0), NodeId(1), NodeId(2)];
        let partitioning = Partitioning::Range(vec!["b".into(), "c".into()]);
        let options = SpaceOptions { partitioning, ..SpaceOptions::default() };
        let masters: Vec<_> = (3..3 + scope.masters).map(NodeId).collect();
        let catalog = Catalog::new(&homes, scope.replicas, &homes).expect("possible numbers");
        let catalog = catalog.with_masters(&masters);
        let catalog = match scope.two_levels {
            true => catalog.with_hierarchy(two_levels()).expect("a leaf for each repository"),
            false => catalog,
        };
        let catalog =
            Arc::new(catalog.with_space(procedures::SPACE, options).expect("ascending splits"));
        let crashes = |fault: &Fault| matches!(fault, Fault::Crash(_) | Fault::Outage(_));
        let logging = scope.fault.iter().chain(&scope.second).any(crashes);
        let procedures = procedures::all();
        let usual = Settings::default();
        let (pace, gossip_every) = match scope.collects {
            true => (AT_ONCE, Nanos(1)),
            false => (usual.pace, usual.gossip_every),
        };
        let settings = Arc::new(Settings {
            record_collected: true,
            logging,
            procedures,
            parallel: Parallel::new(scope.at_once, Arc::new(Backwards)),
            pace,
            gossip_every,
            memory: Memory::new(u64::MAX, u64::MAX), // All copies of a host report to it.
            ..Settings::default()
        });
        let host = |id| Host::new(id, catalog.clone(), settings.clone(), scope.switches.clone());
        let mut world = World {
            hosts: homes.into_iter().chain(masters).map(host).collect(),
            links: BTreeMap::new(),
            clients: Vec::new(),
            timers: BTreeSet::new(),
            fault: scope.fault,
            ahead: Vec::new(),
            passed: 0,
            begun: BTreeSet::new(),
            evidence: Evidence::default(),
            now: Nanos(0),
            collected: 0,
            path: Vec::new(),
        };
        for (serial, program) in scope.before.iter().enumerate() {
            world.clients = vec![Client::new(&format!("before{serial}"), 0, *program)];
            while let Some(&choice) = world.choices(false).first() {
                world.take(choice);
            }
            assert!(world.clients[0].has_committed(), "what ran before has committed");
        }
        let named = |(at, program): (usize, &Program)| {
            Client::new(&format!("t{}", at + 1), at as u64 + 1, *program)
        };
        // Oldest snapshots rise with what sessions have seen.
        let seen =
            world.clients.first().filter(|_| scope.collects).map(|client| client.lower_bound);
        world.clients = scope.programs.iter().enumerate().map(named).collect();
        if let Some(seen) = seen {
            world.clients.iter_mut().for_each(|client| client.lower_bound = seen);
        }
        world.path.clear();
        world.collected = 0;
        world.ahead = scope.fault.into_iter().chain(scope.second).collect();
        world
    }

    /// All; but of attempts that are made again, which might meet for ever, one.
    fn timers_that_fire(&self) -> Vec<(u32, Role, u32)> {
        let mut waits = 0;
        let fires = |(_, role, timer): &&(u32, Role, u32)| {
            waits += u32::from(P::timer(*role, *timer) == Timer::Wait);
            !P::TRIES_AGAIN || P::timer(*role, *timer) != Timer::Wait || waits == 1
        };
        self.timers.iter().filter(fires).copied().collect()
    }

    fn fire(&mut self, node: u32, role: Role, timer: u32) {
        self.timers.remove(&(node, role, timer));
        self.perform(node, |machine, outside| {
            machine.timer(MachineTimer::Role(role, timer), outside)
        });
    }

    /// The node loses its memory and begins a new life; its clients are gone.
    fn crash(&mut self, node: u32, lost: Lost) {
        self.timers.retain(|(at, ..)| *at != node);
        for client in self.clients.iter_mut().filter(|client| client.node == node) {
            client.lose();
        }
        let host = &mut self.hosts[node as usize];
        let mut recorder = Recorder::new();
        host.node().record_running(&mut recorder);
        self.evidence.absorb_crashed(node, &recorder);
        host.restart(lost == Lost::WhatItMay, self.now);
        self.perform(node, |machine, outside| machine.perform(outside));
    }

    /// Has a node's machine do something. What it says leaves at once, as if its log were stable,
    /// but for what it says to itself, of which the scope decides when.
    fn perform(&mut self, at: u32, run: impl FnOnce(&mut Machine<P>, &mut Surroundings<'_, P>)) {
        let host = &mut self.hosts[at as usize];
        let mut outside = Surroundings {
            at,
            cares: self.fault.is_some(),
            links: &mut self.links,
            clients: &mut self.clients,
            timers: &mut self.timers,
            begun: &mut self.begun,
            logged: Vec::new(),
        };
        host.machine.effects.now = self.now;
        run(&mut host.machine, &mut outside);
        if !host.machine.sends_to_itself() {
            let all = host.machine.waits_for();
            let_go(&mut host.machine, all, &mut outside);
        }
        host.machine.node.assert_invariants();
        let logged = std::mem::take(&mut outside.logged);
        host.log(logged);
        let effects = &mut host.machine.effects;
        self.collected += std::mem::take(&mut effects.maintenance.collected);
        self.links.retain(|_, link| !link.is_empty());
        let recorder = effects.recorder.replace(Box::default()).expect("always recording");
        self.now = self.now + Nanos(2 * recorder.len() as u64);
        self.evidence.absorb(at, &recorder, self.begun.iter().copied());
        self.evidence.transactions.sort_by_key(|(record, _)| record.id);
    }

    fn outcome(&self) -> String {
        let ends = self.clients.iter().map(Client::to_string);
        ends.collect::<Vec<_>>().join(", ")
    }

    /// A hash of all that can make a difference to what follows, or to the verdict.
    fn fingerprint(&self) -> u64 {
        let mut text = Fingerprint(DefaultHasher::new());
        let all = (&self.hosts, &self.links, &self.clients, &self.timers, &self.ahead);
        write!(text, "{all:?}{:?}{:?}", self.evidence, self.now).expect("hashing cannot fail");
        text.0.finish()
    }
}

/// The log of a node becomes stable up to where something waits for it.
fn let_go<P: Subject>(
    machine: &mut Machine<P>,
    position: Option<LogPosition>,
    outside: &mut Surroundings<'_, P>,
) {
    if let Some(position) = position {
        machine.learn_stable(position);
        machine.let_go(outside);
    }
}

/// Whatever need not be done at once is done at once.
const AT_ONCE: Pace =
    Pace { collect_after: 1, log_low_after: 1, tell_bound_after: 1, upper_bound_steps: 1 << 20 };

/// So often time may pass before everybody must have got an answer.
const PATIENCE: u32 = 20;

struct Fingerprint(DefaultHasher);

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
