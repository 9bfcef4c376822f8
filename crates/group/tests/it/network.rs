//! Members of a group and a client, one step after the other, without a simulator.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::{
    Address, Answer, Catalog, Effect, Effects, Envelope, Failure, Node, NodeId, OpId, Operation,
    Protocol, ReplicaRole, Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Step, Txn,
    TxnOptions,
};
use muesli_group::{GroupSettings, Grouped, Message, layout};
use muesli_protocols::score::Score;

type GroupEnvelope<P> = Envelope<Message<<P as Protocol>::Message>>;
type Loses<P> = Box<dyn Fn(&GroupEnvelope<P>) -> bool>;
type Envelopes<P> = VecDeque<GroupEnvelope<P>>;

const CLIENT: NodeId = NodeId(1 << 31);
const MEMBERS: u32 = 3;
const SPACE: SpaceId = SpaceId(0);
/// The key that the client counts in.
pub const KEY: &str = "k";

pub struct Host<P: Protocol = Score> {
    pub node: Node<Grouped<P>>,
    pub effects: Effects<Grouped<P>>,
    timers: BTreeSet<(Role, u32)>,
    incarnation: u32,
}

impl<P: Protocol> Host<P> {
    fn new(
        id: NodeId,
        incarnation: u32,
        catalog: &Arc<Catalog>,
        group_settings: &GroupSettings<P::Switches>,
    ) -> Host<P> {
        // Members sign what they say to clients; a client shows that to others.
        let issuer = (id != CLIENT).then(|| Issuer::new([7; 16]));
        let settings = Arc::new(Settings { issuer, logging: true, ..Settings::default() });
        let node = Node::new(id, incarnation, Arc::clone(catalog), settings, group_settings);
        Host { node, effects: Effects::default(), timers: BTreeSet::new(), incarnation }
    }
}

/// Three members of a group and a client, which are as one turn after the other: what is logged is
/// stable at once, and no message is lost.
pub struct Network<P: Protocol = Score> {
    pub hosts: BTreeMap<NodeId, Host<P>>,
    messages: Envelopes<P>,
    answers: BTreeMap<OpId, Result<Answer, Failure>>,
    /// The last decision that the client told.
    pub decided: Option<Message<P::Message>>,
    /// What the client says goes to this member instead.
    pub passes_on: Option<Address>,
    /// A request of this node for a state from its beginning is put aside, and from then on what
    /// the node is told of entries waits, and pieces of the state do but for the first.
    pub lags: Option<NodeId>,
    is_late: bool,
    /// Such requests.
    pub requests: Envelopes<P>,
    waiting: Envelopes<P>,
    /// Which messages are lost.
    pub loses: Loses<P>,
    group_settings: GroupSettings<P::Switches>,
}

impl Network {
    pub fn new() -> Network {
        Network::with(GroupSettings::default())
    }
}

impl<P: Protocol> Network<P> {
    /// Members that go by these rules.
    pub fn with(group_settings: GroupSettings<P::Switches>) -> Network<P> {
        let nodes: Vec<_> = (0..MEMBERS).map(NodeId).collect();
        let homes = layout::homes(1, MEMBERS as u16, MEMBERS).unwrap();
        let catalog = Catalog::new(&homes, 1, &nodes).unwrap().with_visiting_coordinators();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let hosts = nodes.iter().copied().chain([CLIENT]);
        let hosts = hosts.map(|id| (id, Host::new(id, 1, &catalog, &group_settings))).collect();
        let mut network = Network {
            hosts,
            messages: Envelopes::<P>::new(),
            answers: BTreeMap::new(),
            decided: None,
            passes_on: None,
            lags: None,
            is_late: false,
            requests: Envelopes::<P>::new(),
            waiting: Envelopes::<P>::new(),
            loses: Box::new(|_| false),
            group_settings,
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
        *lost = Host::new(node, lost.incarnation + 1, &catalog, &self.group_settings);
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
            let from = envelope.from.node;
            if from == CLIENT && Grouped::<P>::message_name(&envelope.message) == "Decide" {
                self.decided = Some(envelope.message.clone());
            }
            if let (CLIENT, Some(member)) = (from, self.passes_on) {
                envelope.to = member;
            }
            if (self.loses)(&envelope) {
                continue;
            }
            let to = envelope.to.node;
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
        self.send(request);
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
        let is_state = |it: &GroupEnvelope<P>| matches!(it.message, Message::State(_));
        let (states, entries): (Envelopes<P>, Envelopes<P>) =
            waiting.into_iter().partition(is_state);
        self.waiting = states;
        self.is_late = false;
        let lags = self.lags.take();
        self.messages.extend(entries);
        self.run();
        (self.is_late, self.lags) = (true, lags);
    }

    /// A member receives this of another one.
    pub fn send(&mut self, envelope: GroupEnvelope<P>) {
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

    /// Where the members are.
    pub fn members(&self) -> Vec<Address> {
        let nodes = self.hosts.values().map(|host| &host.node);
        let here = |node: &Node<_>| Some((node.id(), node.replica_roles().first()?.0));
        nodes.filter_map(here).map(|(node, id)| Address::repository(node, id)).collect()
    }

    /// The member with this post.
    fn member(&self, wanted: ReplicaRole) -> Option<Address> {
        self.hosts.values().find_map(|host| {
            let replica_roles = host.node.replica_roles();
            let (id, _) = replica_roles.iter().find(|(_, its_role)| *its_role == wanted)?;
            Some(Address::repository(host.node.id(), *id))
        })
    }

    pub fn elect(&mut self) -> (Address, Address) {
        for _ in 0..1_000 {
            self.ring();
            if let Some(found) =
                self.member(ReplicaRole::Leads).zip(self.member(ReplicaRole::Follows))
            {
                return found;
            }
        }
        panic!("nobody was elected");
    }

    /// Lets time pass until an operation is answered.
    fn answer(&mut self, step: Step) -> Option<Answer> {
        let op = match step {
            Step::Done(done) => return done.ok(),
            Step::Wait(op) => op,
        };
        self.run();
        for _ in 0..200 {
            if let Some(result) = self.answers.remove(&op) {
                return result.ok();
            }
            self.ring();
        }
        None
    }

    /// A transaction at a node, and what it reads: a number, or 0. `None`: no answer.
    fn reads(&mut self, at: NodeId, key: &str) -> Option<(Txn, u64)> {
        let (host, key) = (self.hosts.get_mut(&at).unwrap(), SmallBytes::from(key));
        let txn = host.node.begin(TxnOptions::default(), &mut host.effects).unwrap();
        let read = host.node.operate(Operation::Get(txn, SPACE, key), &mut host.effects);
        let value = self.answer(read)?.value();
        let number = |it: SmallBytes| u64::from_be_bytes(it.as_slice().try_into().unwrap());
        Some((txn, value.map_or(0, number)))
    }

    fn commits(&mut self, at: NodeId, txn: Txn) -> bool {
        let host = self.hosts.get_mut(&at).unwrap();
        let commit = host.node.operate(Operation::Commit(txn), &mut host.effects);
        self.answer(commit).is_some()
    }

    /// What number the client reads, if it commits.
    pub fn count(&mut self, key: &str) -> Option<u64> {
        let (txn, count) = self.reads(CLIENT, key)?;
        self.commits(CLIENT, txn).then_some(count)
    }

    /// Whether the client reads the number, writes the next one and commits.
    pub fn increments(&mut self) -> bool {
        self.begins_increment(CLIENT, KEY).is_some_and(|txn| self.commits(CLIENT, txn))
    }

    /// A transaction at a node that has read the number and written the next one.
    pub fn begins_increment(&mut self, at: NodeId, key: &str) -> Option<Txn> {
        let (txn, count) = self.reads(at, key)?;
        let value = SmallBytes::from((count + 1).to_be_bytes().as_slice());
        let (host, key) = (self.hosts.get_mut(&at).unwrap(), SmallBytes::from(key));
        host.node.put(txn, SPACE, key, Some(value), &mut host.effects).unwrap();
        Some(txn)
    }

    /// Such a transaction is to commit; what follows from that is as messages pass.
    pub fn asks_to_commit(&mut self, at: NodeId, txn: Txn) {
        let host = self.hosts.get_mut(&at).unwrap();
        let step = host.node.commit(txn, &mut host.effects);
        assert!(matches!(step, Step::Wait(_)), "a group decides later");
        self.run();
    }
}
