//! Members of a group and a client, one step after the other, without a simulator.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Node, NodeId, OpId, OpResult, Post, Protocol,
    Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Step, TxnOptions,
};
use muesli_group::{Grouped, Message, Rules, layout};
use muesli_protocols::score::Score;

pub type Groups = Grouped<Score>;
type GroupRules = <Groups as Protocol>::Rules;
type Envelopes = VecDeque<Envelope<<Groups as Protocol>::Message>>;

const CLIENT: NodeId = NodeId(1 << 31);
const MEMBERS: u32 = 3;
const SPACE: SpaceId = SpaceId(0);

pub struct Host {
    pub node: Node<Groups>,
    pub effects: Effects<Groups>,
    timers: BTreeSet<(Role, u32)>,
}

impl Host {
    fn new(id: NodeId, incarnation: u32, catalog: &Arc<Catalog>, rules: &GroupRules) -> Host {
        // Members sign what they say to clients; a client shows that to others.
        let issuer = (id != CLIENT).then(|| Issuer::new([7; 16]));
        let settings = Arc::new(Settings { issuer, logging: true, ..Settings::default() });
        let node = Node::new(id, incarnation, Arc::clone(catalog), settings, rules);
        Host { node, effects: Effects::default(), timers: BTreeSet::new() }
    }
}

/// Three members of a group and a client, which are as one turn after the other: what is logged is
/// stable at once, and no message is lost.
pub struct Network {
    pub hosts: BTreeMap<NodeId, Host>,
    messages: Envelopes,
    answers: BTreeMap<OpId, OpResult>,
    /// The last decision that the client told.
    pub decided: Option<<Groups as Protocol>::Message>,
    /// What the client says goes to this member instead.
    pub passes_on: Option<Address>,
    /// A request of this node for a state from its beginning is put aside, and from then on what
    /// the node is told of entries waits, and pieces of the state do but for the first.
    pub lags: Option<NodeId>,
    is_late: bool,
    /// Such requests.
    pub requests: Envelopes,
    waiting: Envelopes,
    rules: GroupRules,
}

impl Network {
    pub fn new() -> Network {
        Network::with(Rules::default())
    }

    /// Members that go by these rules.
    pub fn with(rules: GroupRules) -> Network {
        let nodes: Vec<_> = (0..MEMBERS).map(NodeId).collect();
        let homes = layout::homes(1, MEMBERS as u16, MEMBERS).unwrap();
        let catalog = Catalog::new(&homes, 1, &nodes).unwrap().with_visiting_coordinators();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let hosts = nodes.iter().copied().chain([CLIENT]);
        let hosts = hosts.map(|id| (id, Host::new(id, 1, &catalog, &rules))).collect();
        let mut network = Network {
            hosts,
            messages: Envelopes::new(),
            answers: BTreeMap::new(),
            decided: None,
            passes_on: None,
            lags: None,
            is_late: false,
            requests: Envelopes::new(),
            waiting: Envelopes::new(),
            rules,
        };
        for host in network.hosts.values_mut() {
            host.node.start(&mut host.effects);
        }
        network.run();
        network
    }

    /// A node's process ends, and another one begins without a folder.
    pub fn lose(&mut self, node: NodeId) {
        let lost = self.hosts.get_mut(&node).unwrap();
        let (catalog, now) = (Arc::clone(lost.node.catalog()), lost.effects.now);
        *lost = Host::new(node, 2, &catalog, &self.rules);
        lost.effects.now = now;
        lost.node.start(&mut lost.effects);
        self.run();
    }

    /// Performs what was asked for, until nothing is said any more.
    fn run(&mut self) {
        loop {
            for host in self.hosts.values_mut() {
                for effect in host.effects.list.drain(..) {
                    match effect {
                        Effect::Send { envelope, .. } => self.messages.push_back(envelope),
                        Effect::SetTimer { role, timer, .. } => {
                            host.timers.insert((role, timer));
                        }
                        Effect::Complete { op, result, .. } => {
                            self.answers.insert(op, result);
                        }
                        Effect::Log { .. } => {}
                    }
                }
            }
            let Some(mut envelope) = self.messages.pop_front() else { return };
            let (from, to) = (envelope.from.node, envelope.to.node);
            if from == CLIENT && Groups::message_name(&envelope.message) == "Decide" {
                self.decided = Some(envelope.message.clone());
            }
            if let (CLIENT, Some(member)) = (from, self.passes_on) {
                envelope.to = member;
            }
            let waits = match &envelope.message {
                Message::Consensus(..) | Message::Entries(_) => true,
                Message::State(piece) => piece.number > 0,
                _ => false,
            };
            if waits && self.is_late && self.lags == Some(to) && from != to {
                self.waiting.push_back(envelope);
                continue;
            }
            let is_new = matches!(&envelope.message, Message::FetchState(it) if it.have.is_none());
            if self.lags == Some(from) && is_new {
                self.is_late = true;
                self.requests.push_back(envelope);
                continue;
            }
            let Some(host) = self.hosts.get_mut(&envelope.to.node) else { continue };
            if from == to {
                host.node.deliver(envelope, &mut host.effects);
                continue;
            }
            let sender = if from == CLIENT { Sender::CLIENT } else { Sender::Member };
            let _ = host.node.receive(sender, envelope, &mut host.effects);
        }
    }

    /// The first request that was put aside arrives, and then the answer. Returns who answers.
    pub fn answer_request(&mut self) -> Address {
        let request = self.requests.front().cloned().expect("there is one");
        let asked = request.to;
        self.requests.clear();
        self.say(request);
        asked
    }

    /// What waited arrives.
    pub fn let_arrive(&mut self) {
        self.is_late = false;
        self.messages.append(&mut self.waiting);
        self.run();
    }

    /// What waited of entries arrives, and the next that comes of them waits again.
    pub fn let_entries_arrive(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let is_state = |it: &Envelope<_>| matches!(it.message, Message::State(_));
        let (states, entries): (Envelopes, Envelopes) = waiting.into_iter().partition(is_state);
        self.waiting = states;
        self.is_late = false;
        let lags = self.lags.take();
        self.messages.extend(entries);
        self.run();
        (self.is_late, self.lags) = (true, lags);
    }

    /// A member receives this of another one.
    pub fn say(&mut self, envelope: Envelope<Message<<Score as Protocol>::Message>>) {
        let host = self.hosts.get_mut(&envelope.to.node).unwrap();
        host.node.receive(Sender::Member, envelope, &mut host.effects).expect("members say so");
        self.run();
    }

    /// Every timer that is set rings once.
    pub fn ring(&mut self) {
        for host in self.hosts.values_mut() {
            host.effects.now.0 += 1_000_000;
            for (role, timer) in std::mem::take(&mut host.timers) {
                host.node.timer(role, timer, &mut host.effects);
            }
        }
        self.run();
    }

    /// The member with this post.
    fn member(&self, wanted: Post) -> Option<Address> {
        self.hosts.values().find_map(|host| {
            let posts = host.node.posts();
            let (id, _) = posts.iter().find(|(_, post)| *post == wanted)?;
            Some(Address::repository(host.node.id(), *id))
        })
    }

    pub fn elect(&mut self) -> (Address, Address) {
        for _ in 0..1_000 {
            self.ring();
            if let Some(found) = self.member(Post::Leads).zip(self.member(Post::Follows)) {
                return found;
            }
        }
        panic!("nobody was elected");
    }

    pub fn client(&mut self) -> &mut Host {
        self.hosts.get_mut(&CLIENT).unwrap()
    }

    /// Lets time pass until an operation is answered.
    fn answer<T>(&mut self, step: Step<T>) -> bool {
        let Step::Wait(op) = step else { return true };
        self.run();
        for _ in 0..200 {
            if let Some(result) = self.answers.remove(&op) {
                return !matches!(result, OpResult::Failed(_));
            }
            self.ring();
        }
        false
    }

    /// Whether the client reads a key, writes it and commits.
    pub fn increments(&mut self) -> bool {
        let (host, key) = (self.client(), SmallBytes::from("k"));
        let txn = host.node.begin(TxnOptions::default(), &mut host.effects).unwrap();
        let read = host.node.get(txn, SPACE, &key, &mut host.effects);
        if !self.answer(read) {
            return false;
        }
        let (host, value) = (self.client(), Some(SmallBytes::from("v")));
        host.node.put(txn, SPACE, key, value, &mut host.effects).unwrap();
        let commit = host.node.commit(txn, &mut host.effects);
        self.answer(commit)
    }
}
