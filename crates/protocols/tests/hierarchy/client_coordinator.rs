//! A client of which no member is certain: it is told by a validator how its transaction ended, and
//! shows that to a repository that the decision did not reach.

use std::sync::Arc;

use muesli_core::parts::locator::Static;
use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Environment, Nanos, Node, NodeId, Rejection,
    RepositoryId, Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, StateMachine as _,
    TxnOptions,
};
use muesli_protocols::hierarchy::{HierarchicalValidation, Leaves};
use muesli_protocols::two_phase::message::{Message, Mostly};

use crate::two_phase::server::{CLIENT, HERE, SPACE, THERE, issuer};

type Sent = Vec<Envelope<Message<Leaves>>>;

/// Two members with a repository each, and a client. There is no tree: the validator is the first
/// member's.
struct Cluster {
    nodes: [Node<HierarchicalValidation>; 3],
    now: Nanos,
}

impl Cluster {
    fn new() -> Cluster {
        let homes = [NodeId(0), NodeId(1)];
        let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog");
        let catalog = catalog.with_visiting_coordinators();
        let catalog = catalog.with_space("s", SpaceOptions::default()).expect("a space");
        let catalog = Arc::new(catalog);
        let node = |id: NodeId| {
            let issuer = (id != CLIENT).then(issuer);
            let settings = Arc::new(Settings { issuer, ..Settings::default() });
            let mut node = Node::new(id, 1, catalog.clone(), settings, &Default::default());
            node.start(&mut Effects::default());
            node
        };
        Cluster { nodes: [homes[0], homes[1], CLIENT].map(node), now: Nanos(0) }
    }

    fn node(&mut self, id: NodeId) -> &mut Node<HierarchicalValidation> {
        self.nodes.iter_mut().find(|node| node.id() == id).expect("one of three")
    }

    /// Has a node do something at the time that it is; what it says to others.
    fn on(
        &mut self,
        id: NodeId,
        run: impl FnOnce(&mut Node<HierarchicalValidation>, &mut Effects<HierarchicalValidation>),
    ) -> Sent {
        let environment = Environment { now: self.now, ..Environment::default() };
        let mut effects = Effects { environment, ..Effects::default() };
        run(self.node(id), &mut effects);
        let sent = effects.list.into_iter().filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some(envelope),
            _ => None,
        });
        sent.collect()
    }

    /// A message arrives; what comes of it, or why it is left out.
    fn deliver(&mut self, envelope: Envelope<Message<Leaves>>) -> Result<Sent, Rejection> {
        let sender = match envelope.from.node {
            CLIENT => Sender::CLIENT,
            _ => Sender::Member,
        };
        let mut judged = Ok(());
        let sent = self.on(envelope.to.node, |node, effects| {
            judged = node.receive(sender, envelope, effects);
        });
        judged.map(|()| sent)
    }

    /// How many transactions a member is in doubt of.
    fn in_doubt(&mut self, id: NodeId) -> usize {
        self.node(id).participants()[0].1.unfinished()
    }

    /// Some key of a repository.
    fn key(&mut self, repository: RepositoryId) -> SmallBytes {
        let catalog = self.nodes[0].catalog();
        let mut keys = (0u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
        let holds =
            |key: &SmallBytes| Static.holds(repository, catalog.partition(SPACE, key), catalog);
        keys.find(holds).expect("a key of each repository")
    }
}

/// The client commits a write at both members, of which the second one is not told the end. What
/// the client says to that one as its patience is over.
fn decision_repeated() -> (Cluster, Envelope<Message<Leaves>>) {
    let mut cluster = Cluster::new();
    let keys = [HERE, THERE].map(|repository| cluster.key(repository));
    let asked = cluster.on(CLIENT, |node, effects| {
        let txn = node.begin(TxnOptions::default(), effects).expect("it begins");
        for key in keys {
            let value = Some(SmallBytes::from("new"));
            node.put(txn, SpaceId(0), key, value, effects).expect("a small value");
        }
        let _ = node.commit(txn, effects);
    });
    let of_commit = |it: &Envelope<_>| matches!(it.message, Message::Prepare(_));
    let mut votes = Sent::new();
    for envelope in asked.into_iter().filter(of_commit) {
        votes.extend(cluster.deliver(envelope).expect("it is asked to vote"));
    }
    let is_vote = |it: &&Envelope<_>| matches!(it.message, Message::MergedVote(_));
    let vote = votes.iter().find(is_vote).expect("the second member votes to the first").clone();
    let ends = cluster.deliver(vote).expect("a vote");
    let (to_client, lost): (Sent, Sent) = ends.into_iter().partition(|it| it.to.node == CLIENT);
    assert!(lost.iter().any(|it| matches!(it.message, Message::Decide { .. })), "{lost:?}");
    for envelope in to_client {
        cluster.deliver(envelope).expect("its end");
    }
    let patience = Settings::default().retry_after;
    cluster.now = Nanos(2 * patience.0);
    let sweep = 1;
    let again = cluster.on(CLIENT, |node, effects| node.timer(Role::Coordinator, sweep, effects));
    let to_second = Address::repository(NodeId(1), THERE);
    let again = again.into_iter().find(|it| it.to == to_second).expect("it is told again");
    (cluster, again)
}

#[test]
fn a_client_shows_what_a_validator_has_told_it() {
    let (mut cluster, again) = decision_repeated();
    assert_eq!(cluster.in_doubt(NodeId(1)), 1);
    cluster.deliver(again).expect("the validator is believed");
    assert_eq!(cluster.in_doubt(NodeId(1)), 0);
}

#[test]
fn a_client_is_not_believed_what_it_does_not_show() {
    let (mut cluster, mut again) = decision_repeated();
    let Message::Decide { ballots, .. } = &mut again.message else { panic!("{again:?}") };
    *ballots = Mostly::new();
    assert_eq!(cluster.deliver(again).err(), Some(Rejection::Unproven));
    assert_eq!(cluster.in_doubt(NodeId(1)), 1);
}
