//! What a member passes on for a client is judged by what the leader knows to have been issued.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Node, NodeId, OpId, OpResult, Post, Protocol,
    Rejection, Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Step, TxnOptions,
};
use muesli_group::{Grouped, Rules, layout};
use muesli_protocols::score::Score;

type Groups = Grouped<Score>;
type Envelopes = VecDeque<Envelope<<Groups as Protocol>::Message>>;

const CLIENT: NodeId = NodeId(1 << 31);
const MEMBERS: u32 = 3;
const SPACE: SpaceId = SpaceId(0);

struct Host {
    node: Node<Groups>,
    effects: Effects<Groups>,
    timers: BTreeSet<(Role, u32)>,
}

/// Three members of a group and a client, which are as one turn after the other: what is logged is
/// stable at once, and no message is lost.
struct Network {
    hosts: BTreeMap<NodeId, Host>,
    messages: Envelopes,
    answers: BTreeMap<OpId, OpResult>,
    /// What the client says goes to this member instead.
    passes_on: Option<Address>,
}

impl Network {
    fn new() -> Network {
        let nodes: Vec<_> = (0..MEMBERS).map(NodeId).collect();
        let homes = layout::homes(1, MEMBERS as u16, MEMBERS).unwrap();
        let catalog = Catalog::new(&homes, 1, &nodes).unwrap().with_visiting_coordinators();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let settings = Arc::new(Settings::default());
        let host = |id: NodeId| {
            let (catalog, settings) = (Arc::clone(&catalog), Arc::clone(&settings));
            let node = Node::new(id, 1, catalog, settings, &Rules::default());
            (id, Host { node, effects: Effects::default(), timers: BTreeSet::new() })
        };
        let hosts = nodes.iter().copied().chain([CLIENT]).map(host).collect();
        let (messages, answers) = (Envelopes::new(), BTreeMap::new());
        let mut network = Network { hosts, messages, answers, passes_on: None };
        for host in network.hosts.values_mut() {
            host.node.start(&mut host.effects);
        }
        network.run();
        network
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
            if let (CLIENT, Some(member)) = (from, self.passes_on) {
                envelope.to = member;
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

    /// Every timer that is set rings once.
    fn ring(&mut self) {
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

    fn elect(&mut self) -> (Address, Address) {
        for _ in 0..1_000 {
            self.ring();
            if let Some(found) = self.member(Post::Leads).zip(self.member(Post::Follows)) {
                return found;
            }
        }
        panic!("nobody was elected");
    }

    fn client(&mut self) -> &mut Host {
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
    fn increments(&mut self) -> bool {
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

#[test]
fn a_client_that_does_not_find_the_leader_is_served_by_way_of_another_member() {
    let mut network = Network::new();
    let (leader, follower) = network.elect();
    network.passes_on = Some(follower);
    // From the second one on, what it says names timestamps that the leader has issued.
    for number in 0..4 {
        assert!(network.increments(), "transaction {number}");
    }
    let rejections = network.hosts[&leader.node].node.rejections();
    assert_eq!(rejections.iter().collect::<Vec<_>>(), []);
}

#[test]
fn a_timestamp_that_nobody_issued_is_left_out_though_a_member_passes_it_on() {
    let mut elsewhere = Network::new();
    elsewhere.elect();
    assert!((0..30).all(|_| elsewhere.increments()));
    let (_, past) = elsewhere.client().node.past().unwrap();
    let mut network = Network::new();
    let (leader, follower) = network.elect();
    network.passes_on = Some(follower);
    assert!(network.increments());
    network.client().node.adopt(&past);
    assert!(!network.increments());
    let rejections = network.hosts[&leader.node].node.rejections();
    assert!(rejections.iter().all(|(_, reason, _)| reason == Rejection::Unissued));
    assert!(rejections.total() > 0);
}
