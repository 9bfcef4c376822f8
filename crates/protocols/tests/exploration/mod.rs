//! Every interleaving of a few transactions: states are worlds of nodes, links and clients, and a
//! step is a client's next operation or the delivery of a link's first message (or, reordered,
//! of any message). Equal worlds are visited once. Time does not pass, but for this: where
//! nothing else can happen and somebody waits for a lock, the bounded wait ends.

mod client;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use muesli_check::Level;
use muesli_core::{
    Catalog, Effect, Effects, Envelope, Nanos, Node, NodeId, Recorder, Role, Rule, Settings,
    SpaceOptions,
};
use muesli_protocols::score::{Message, Rules, Score};

use crate::judge::Evidence;
pub use client::Do;
use client::Client;

/// A transaction: where it runs, and what it does before it commits.
pub type Program = (u32, &'static [Do]);

/// What is explored.
#[derive(Clone, Debug)]
pub struct Scope {
    pub rules: Rules,
    pub replicas: usize,
    /// Transactions that ran before, one after the other.
    pub before: Vec<Program>,
    /// Transactions that run at the same time.
    pub programs: Vec<Program>,
    /// Whether messages of one link may overtake each other.
    pub reordered: bool,
    pub level: Level,
}

impl Scope {
    pub fn of(programs: &[Program]) -> Scope {
        Scope {
            rules: Rules::default(),
            replicas: 1,
            before: Vec::new(),
            programs: programs.to_vec(),
            reordered: false,
            level: Level::Serializable,
        }
    }
}

/// What an exploration found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub states: usize,
    /// How each client ended, and how often that was an end state.
    pub outcomes: BTreeMap<String, usize>,
    /// The first schedule whose history is not what was promised, with the checker's words.
    pub violation: Option<String>,
}

/// A step from one world to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Client(usize),
    /// The message at a place of a link.
    Deliver(u32, u32, usize),
    LockWaitEnds(u32, Role),
}

#[derive(Clone)]
struct World {
    nodes: Vec<Node<Score>>,
    links: BTreeMap<(u32, u32), VecDeque<Envelope<Message>>>,
    clients: Vec<Client>,
    /// Repositories that wait to end a wait for locks.
    lock_timers: BTreeSet<(u32, Role)>,
    evidence: Evidence,
    /// Grows by two with every end of a transaction, so that real time orders what did not
    /// overlap, and only that.
    now: Nanos,
    path: Vec<Choice>,
}

/// Walks through every state of `scope`, to the first violation.
///
/// # Panics
/// If more than `limit` states are found, or a state from which nobody gets any further.
pub fn explore(scope: &Scope, limit: usize) -> Found {
    let mut found = Found::default();
    let start = World::new(scope);
    let mut seen = BTreeSet::from([start.fingerprint()]);
    let mut open = vec![start];
    while let Some(world) = open.pop() {
        found.states += 1;
        assert!(found.states <= limit, "more than {limit} states");
        let choices = world.choices(scope.reordered);
        if choices.is_empty() {
            let outcome = world.outcome();
            *found.outcomes.entry(outcome).or_default() += 1;
            let verdict = world.evidence.judge(scope.level);
            if !verdict.holds() {
                found.violation = Some(format!("{:?}\n{verdict}", world.path));
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
    found
}

impl World {
    fn new(scope: &Scope) -> World {
        let homes = [NodeId(0), NodeId(1), NodeId(2)];
        let rule = Rule::Range(vec!["b".into(), "c".into()]);
        let options = SpaceOptions { rule, ..SpaceOptions::default() };
        let catalog = Catalog::new(&homes, scope.replicas, &homes).expect("possible numbers");
        let catalog = Arc::new(catalog.with_space("s", options).expect("ascending splits"));
        let settings = Arc::new(Settings { keep_tombstones: true, ..Settings::default() });
        let node = |id| Node::new(id, 1, catalog.clone(), settings.clone(), &scope.rules);
        let mut world = World {
            nodes: homes.into_iter().map(node).collect(),
            links: BTreeMap::new(),
            clients: Vec::new(),
            lock_timers: BTreeSet::new(),
            evidence: Evidence::default(),
            now: Nanos(0),
            path: Vec::new(),
        };
        for (serial, program) in scope.before.iter().enumerate() {
            world.clients = vec![Client::new(&format!("before{serial}"), *program)];
            while let Some(&choice) = world.choices(false).first() {
                world.take(choice);
            }
            assert!(world.clients[0].has_committed(), "what ran before has committed");
        }
        let named = |(at, program): (usize, &Program)| Client::new(&format!("t{}", at + 1), *program);
        world.clients = scope.programs.iter().enumerate().map(named).collect();
        world.path.clear();
        world
    }

    /// What can happen next; nothing, once every client has its answer and every message arrived.
    fn choices(&self, reordered: bool) -> Vec<Choice> {
        let mut choices = Vec::new();
        let ready = self.clients.iter().enumerate().filter(|(_, client)| client.is_ready());
        choices.extend(ready.map(|(at, _)| Choice::Client(at)));
        for (&(from, to), link) in &self.links {
            let places = if reordered { link.len() } else { link.len().min(1) };
            choices.extend((0..places).map(|place| Choice::Deliver(from, to, place)));
        }
        if choices.is_empty() && self.clients.iter().any(|client| !client.is_done()) {
            let first = self.lock_timers.first().expect("somebody waits, and for nothing");
            choices.push(Choice::LockWaitEnds(first.0, first.1));
        }
        choices
    }

    fn take(&mut self, choice: Choice) {
        self.path.push(choice);
        let mut effects = Effects::<Score> {
            now: self.now,
            recorder: Some(Box::new(Recorder::new())),
            ..Effects::default()
        };
        let at = match choice {
            Choice::Client(which) => {
                let client = &mut self.clients[which];
                client.step(&mut self.nodes[client.node as usize], &mut effects);
                client.node
            }
            Choice::Deliver(from, to, place) => {
                let link = self.links.get_mut(&(from, to)).expect("a link with messages");
                let envelope = link.remove(place).expect("a message");
                self.nodes[to as usize].deliver(envelope, &mut effects);
                to
            }
            Choice::LockWaitEnds(node, role) => {
                self.lock_timers.remove(&(node, role));
                self.now = self.now + Settings::default().lock_wait;
                effects.now = self.now;
                self.nodes[node as usize].timer(role, LOCK_TIMER, &mut effects);
                node
            }
        };
        self.perform(at, effects);
    }

    fn perform(&mut self, at: u32, mut effects: Effects<Score>) {
        for effect in std::mem::take(&mut effects.list) {
            match effect {
                Effect::Send { envelope, .. } => {
                    self.links.entry((at, envelope.to.node.0)).or_default().push_back(envelope);
                }
                Effect::Complete { op, result, .. } => {
                    let waits = |client: &&mut Client| client.node == at && client.waits_for(op);
                    if let Some(client) = self.clients.iter_mut().find(waits) {
                        client.hear(&result);
                    }
                }
                Effect::SetTimer { role: role @ Role::Repository(_), timer: LOCK_TIMER, .. } => {
                    self.lock_timers.insert((at, role));
                }
                Effect::SetTimer { .. } => {} // Nothing is lost, so nothing need be sent again.
                Effect::Log { .. } => unreachable!("nothing is logged"),
            }
        }
        self.links.retain(|_, link| !link.is_empty());
        let recorder = effects.recorder.expect("given above");
        self.now = self.now + Nanos(2 * recorder.len() as u64);
        self.evidence.absorb(&recorder, []);
        self.evidence.transactions.sort_by_key(|(record, _)| record.id);
    }

    fn outcome(&self) -> String {
        let ends = self.clients.iter().map(Client::to_string);
        ends.collect::<Vec<_>>().join(", ")
    }

    /// A hash of all that can make a difference to what follows, or to the verdict.
    fn fingerprint(&self) -> u64 {
        let mut text = Fingerprint(DefaultHasher::new());
        let all = (&self.nodes, &self.links, &self.clients, &self.lock_timers);
        write!(text, "{all:?}{:?}{:?}", self.evidence, self.now).expect("hashing cannot fail");
        text.0.finish()
    }
}

/// The timer by which a repository ends waits for locks, as the protocol numbers it.
const LOCK_TIMER: u32 = 1;

struct Fingerprint(DefaultHasher);

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
