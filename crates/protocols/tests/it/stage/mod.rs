//! A stage for nodes: the script decides which message arrives when, what is lost, when time
//! passes, and who crashes.

mod clusters;
mod script;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

use muesli_core::recorder::{Operation, Status};
use muesli_core::{
    Answer, Catalog, Effect, Effects, Envelope, Failure, LogPosition, Nanos, Node, NodeId, OpId,
    Recorder, RepositoryId, Role, Rule, Settings, SpaceOptions, Txn,
};

use crate::judge::Evidence;
use crate::subject::{Names, Subject, lines, procedures};
pub use script::Script;

/// A node while it lives.
struct Host<P: Subject> {
    node: Node<P>,
    effects: Effects<P>,
    /// Effects in order that wait for the log.
    held: Vec<Effect<P::Message, P::Record>>,
    stable: LogPosition,
    timers: BTreeMap<(Nanos, u64), (Role, u32)>,
    /// Timers without delay, which ring as soon as all has been said that can be.
    left_over: VecDeque<(Role, u32)>,
    /// Operations not yet answered, with what the script calls them.
    waiting: BTreeMap<OpId, String>,
    /// How far its clock is ahead.
    skew: Nanos,
}

/// What survives a crash.
struct Disk<P: Subject> {
    incarnation: u32,
    stable: Vec<(RepositoryId, P::Record)>,
    unstable: Vec<(RepositoryId, P::Record)>,
}

impl<P: Subject> Default for Disk<P> {
    fn default() -> Disk<P> {
        Disk { incarnation: 0, stable: Vec::new(), unstable: Vec::new() }
    }
}

/// The nodes, the links between them, and the printed page.
pub struct Stage<P: Subject> {
    catalog: Arc<Catalog>,
    settings: Arc<Settings>,
    rules: P::Rules,
    /// Whether logs become stable only when the script says so.
    manual_sync: bool,
    now: Nanos,
    hosts: BTreeMap<u32, Host<P>>,
    disks: BTreeMap<u32, Disk<P>>,
    links: BTreeMap<(u32, u32), VecDeque<Envelope<P::Message>>>,
    timers_set: u64,
    /// The script's transactions: their node and handle.
    transactions: BTreeMap<String, (u32, Txn)>,
    /// Their names by the id that their commit got.
    names: Names,
    /// Their names by when they began.
    begun: BTreeMap<u64, String>,
    /// What sessions may count on: where each committed transaction lies.
    committed_at: BTreeMap<String, muesli_core::Timestamp>,
    committing: Option<String>,
    evidence: Evidence,
    page: String,
}

impl<P: Subject> Stage<P> {
    fn new(
        (nodes, masters): (u32, u32),
        (replicas, spread): (usize, usize),
        settings: Settings,
        rules: P::Rules,
        manual: bool,
    ) -> Stage<P> {
        let homes: Vec<_> = (0..nodes).map(NodeId).collect();
        // Keys go by their first letter: a… to r0, b… to r1, and so on, and round again.
        let splits =
            (1..(nodes as usize * spread) as u8).map(|n| [b'a' + n].as_slice().into()).collect();
        let options = SpaceOptions { rule: Rule::Range(splits), ..SpaceOptions::default() };
        let masters: Vec<_> = (nodes..nodes + masters).map(NodeId).collect();
        let catalog = Catalog::new(&homes, replicas, &homes).expect("possible numbers");
        let catalog = catalog.with_spread(spread).expect("possible numbers");
        let catalog = catalog.with_masters(&masters);
        let catalog = catalog.with_space(procedures::SPACE, options).expect("ascending splits");
        let mut stage = Stage {
            catalog: Arc::new(catalog),
            settings: Arc::new(settings),
            rules,
            manual_sync: manual,
            now: Nanos(0),
            hosts: BTreeMap::new(),
            disks: BTreeMap::new(),
            links: BTreeMap::new(),
            timers_set: 0,
            transactions: BTreeMap::new(),
            names: BTreeMap::new(),
            begun: BTreeMap::new(),
            committed_at: BTreeMap::new(),
            committing: None,
            evidence: Evidence::default(),
            page: String::new(),
        };
        homes.iter().chain(&masters).for_each(|id| stage.boot(id.0));
        stage.deliver_all(); // The first bounds, of which no script has more to say.
        stage.page.clear();
        stage
    }

    /// Starts a node from what its disk holds.
    fn boot(&mut self, id: u32) {
        let disk = self.disks.entry(id).or_default();
        disk.incarnation += 1;
        let mut effects = Effects { now: self.now, ..Effects::default() };
        let (catalog, settings) = (self.catalog.clone(), self.settings.clone());
        let mut node = Node::new(NodeId(id), disk.incarnation, catalog, settings, &self.rules);
        for (repository, record) in &disk.stable {
            node.replay(*repository, record.clone(), &mut effects);
        }
        assert!(effects.list.is_empty(), "a replay says nothing");
        effects.recorder = Some(Box::new(Recorder::new()));
        node.start(&mut effects);
        let host = Host {
            node,
            effects,
            held: Vec::new(),
            stable: LogPosition(0),
            timers: BTreeMap::new(),
            left_over: VecDeque::new(),
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
        host.node.record_running(&mut recorder);
        self.evidence.absorb_crashed(id, &recorder);
        let disk = self.disks.get_mut(&id).expect("a booted node");
        for (repository, record) in std::mem::take(&mut disk.unstable) {
            let line = P::show_record(&record, &self.names);
            writeln!(self.page, "r{} loses {line}", repository.0).expect("into a string");
        }
        for what in host.waiting.values() {
            writeln!(self.page, "{what}: never answered").expect("into a string");
            forget_untold(&mut self.evidence, |begin| self.begun.get(&begin) == Some(what));
        }
    }

    fn host(&mut self, id: u32) -> Result<&mut Host<P>, String> {
        self.hosts.get_mut(&id).ok_or_else(|| format!("n{id} is down"))
    }

    /// Does what a node asks for, as far as its log is stable, and what follows on the node.
    fn perform(&mut self, id: u32) {
        loop {
            let host = self.hosts.get_mut(&id).expect("a live node");
            let new = std::mem::take(&mut host.effects.list);
            host.held.extend(new);
            let stable = host.stable;
            let ready = host.held.iter().position(|effect| match effect {
                Effect::Send { after, .. } | Effect::Complete { after, .. } => *after <= stable,
                Effect::Log { .. } | Effect::SetTimer { .. } => true,
            });
            if let Some(place) = ready {
                let effect = host.held.remove(place);
                self.perform_one(id, effect);
            } else if let Some((role, timer)) = host.left_over.pop_front() {
                host.node.timer(role, timer, &mut host.effects);
            } else {
                break;
            }
        }
        let host = self.hosts.get_mut(&id).expect("a live node");
        let recorder = host.effects.recorder.replace(Box::new(Recorder::new()));
        let recorder = recorder.expect("always recording");
        self.evidence.absorb(id, &recorder, self.names.keys().copied());
    }

    fn perform_one(&mut self, id: u32, effect: Effect<P::Message, P::Record>) {
        let now = self.now;
        let host = self.hosts.get_mut(&id).expect("a live node");
        match effect {
            Effect::Send { envelope, .. } if envelope.to.node == NodeId(id) => {
                self.name(&envelope.message);
                let host = self.hosts.get_mut(&id).expect("a live node");
                host.node.deliver(envelope, &mut host.effects);
            }
            Effect::Send { envelope, .. } => self.send(envelope),
            Effect::Complete { op, result, .. } => {
                let what = host.waiting.remove(&op).unwrap_or_else(|| "nobody".to_owned());
                self.answer(&what, &result);
            }
            Effect::Log { repository, record } => {
                let disk = self.disks.get_mut(&id).expect("a booted node");
                crate::golden::note::<P, _>("record", &record);
                let line = P::show_record(&record, &self.names);
                writeln!(self.page, "r{} logs {line}", repository.0).expect("into a string");
                if self.manual_sync {
                    disk.unstable.push((repository, record));
                } else {
                    disk.stable.push((repository, record));
                    host.stable.0 += 1;
                }
            }
            Effect::SetTimer { role, timer, after: Nanos(0) } => {
                host.left_over.push_back((role, timer));
            }
            Effect::SetTimer { role, timer, after } => {
                self.timers_set += 1;
                host.timers.insert((now + after, self.timers_set), (role, timer));
            }
        }
    }

    fn send(&mut self, envelope: Envelope<P::Message>) {
        crate::golden::note::<P, _>("message", &envelope.message);
        self.name(&envelope.message);
        writeln!(self.page, "{}", lines::envelope::<P>(&envelope, &self.names))
            .expect("into a string");
        let link = (envelope.from.node.0, envelope.to.node.0);
        self.links.entry(link).or_default().push_back(envelope);
    }

    /// A transaction that begins or ends is that of the command under way.
    fn name(&mut self, message: &P::Message) {
        if let (Some(txn), Some(name)) = (P::begins(message), &self.committing) {
            self.names.entry(txn).or_insert_with(|| name.clone());
        }
    }

    /// Everything logged at a node so far is stable now.
    fn sync(&mut self, id: u32) -> Result<(), String> {
        let disk = self.disks.get_mut(&id).expect("a booted node");
        let unstable = std::mem::take(&mut disk.unstable);
        let count = unstable.len() as u64;
        disk.stable.extend(unstable);
        self.host(id)?.stable.0 += count;
        self.perform(id);
        Ok(())
    }

    /// Delivers the first message of a link; a node that is down loses it.
    fn deliver_one(&mut self, link: (u32, u32)) -> bool {
        let Some(envelope) = self.links.get_mut(&link).and_then(VecDeque::pop_front) else {
            return false;
        };
        let now = self.now;
        match self.hosts.get_mut(&link.1) {
            Some(host) => {
                host.effects.now = now + host.skew;
                host.node.deliver(envelope, &mut host.effects);
                self.perform(link.1);
            }
            None => {
                let line = lines::envelope::<P>(&envelope, &self.names);
                writeln!(self.page, "lost: {line}").expect("into a string");
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
            host.effects.now = self.now + host.skew;
            host.node.timer(role, timer, &mut host.effects);
            self.perform(id);
        }
        self.now = end;
    }

    fn answer(&mut self, what: &str, result: &Result<Answer, Failure>) {
        let at = match result {
            Ok(Answer::Committed(committed) | Answer::Answered(committed, _)) => Some(committed.at),
            Ok(Answer::Invoked(invoked)) => Some(invoked.at),
            _ => None,
        };
        if let (Some(at), Some(name)) = (at, what.split(' ').next()) {
            self.committed_at.insert(name.to_owned(), at);
        }
        writeln!(self.page, "{what}: {}", lines::result(result)).expect("into a string");
    }

    fn running_evidence(&self) -> Evidence {
        let mut evidence = self.evidence.clone();
        for (id, host) in &self.hosts {
            let mut recorder = Recorder::new();
            host.node.record_running(&mut recorder);
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
        operations.retain(|operation| matches!(operation, Operation::Write { .. }));
    }
}
