//! Validators that a coordinator has lost its link to: it gathers the votes itself, until the link
//! is there again.

use std::sync::Arc;

use muesli_core::catalog::{Hierarchy, InnerNode};
use muesli_core::parts::locator::Static;
use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Environment, Nanos, Node, NodeId, RepositoryId,
    Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, TxnOptions,
};
use muesli_protocols::hierarchy::{HierarchicalValidation, Leaves, Switches};
use muesli_protocols::two_phase::message::Message;
use muesli_protocols::two_phase::{Sabotage as _, TreeSwitch};

const SPACE: SpaceId = SpaceId(0);
/// Where the root lives.
const ROOT: NodeId = NodeId(4);
/// Where the validator above the first two repositories lives, and nothing else.
const RACK: NodeId = NodeId(5);
/// The coordinator's timer for what is not answered.
const SWEEP_TIMER: u32 = 1;

type Sent = Vec<Envelope<Message<Leaves>>>;

/// A node of four with a repository each, in two racks; the second rack's validator is on node 2.
fn node(id: u32, switches: &Switches) -> Node<HierarchicalValidation> {
    let inner = |home, parent| InnerNode::new(home, parent);
    let tree = vec![inner(ROOT, None), inner(RACK, Some(0)), inner(NodeId(2), Some(0))];
    let tree = Hierarchy::new(tree, vec![1, 1, 2, 2]).expect("a tree");
    let homes: Vec<_> = (0..4).map(NodeId).collect();
    let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog");
    let catalog = catalog.with_space("s", SpaceOptions::default()).expect("a space");
    let catalog = catalog.with_hierarchy(tree).expect("a leaf for each repository");
    let settings = Arc::new(Settings::default());
    let mut node = Node::new(NodeId(id), 1, Arc::new(catalog), settings, switches);
    let mut effects = at(Nanos::from_millis(1_000));
    node.start(&mut effects);
    node
}

fn at(now: Nanos) -> Effects<HierarchicalValidation> {
    let environment = Environment { now, ..Environment::default() };
    Effects { environment, ..Effects::default() }
}

fn sent(effects: Effects<HierarchicalValidation>) -> Sent {
    let sent = effects.list.into_iter().filter_map(|effect| match effect {
        Effect::Send { envelope, .. } => Some(envelope),
        _ => None,
    });
    sent.collect()
}

/// Some key of a repository.
fn key(node: &Node<HierarchicalValidation>, repository: u16) -> SmallBytes {
    let mut keys = (0u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
    let catalog = node.catalog();
    let holds = |key: &SmallBytes| {
        Static.holds(RepositoryId(repository), catalog.partition(SPACE, key), catalog)
    };
    keys.find(holds).expect("a key of each repository")
}

/// What a coordinator asks of others to write at these repositories.
fn prepares(node: &mut Node<HierarchicalValidation>, repositories: &[u16]) -> Sent {
    let mut effects = at(Nanos::from_millis(1_000));
    let txn = node.begin(TxnOptions::default(), &mut effects).expect("it begins");
    for repository in repositories {
        let (key, value) = (key(node, *repository), Some(SmallBytes::from("new")));
        node.put(txn, SPACE, key, value, &mut effects).expect("a small value");
    }
    let _ = node.commit(txn, &mut effects);
    node.assert_invariants();
    sent(effects)
}

/// Whether votes on a write at these repositories come to the coordinator.
fn gathers(node: &mut Node<HierarchicalValidation>, repositories: &[u16]) -> bool {
    let asked = prepares(node, repositories);
    let directly = asked.iter().filter_map(|envelope| match &envelope.message {
        Message::Prepare(prepare) => Some(prepare.votes_directly()),
        _ => None,
    });
    let directly: Vec<bool> = directly.collect();
    assert!(!directly.is_empty(), "somebody is asked: {asked:?}");
    assert!(directly.windows(2).all(|pair| pair[0] == pair[1]), "all alike: {directly:?}");
    directly[0]
}

#[test]
fn votes_are_kept_away_from_validators_that_cannot_be_reached() {
    let mut node = node(3, &Switches::default());
    assert!(!gathers(&mut node, &[0, 1]));
    node.unlinked(RACK, &mut at(Nanos::from_millis(1_000)));
    assert!(gathers(&mut node, &[0, 1]), "they would decide there");
    assert!(gathers(&mut node, &[0, 2]), "one would pass there");
    assert!(!gathers(&mut node, &[2, 3]), "none would");
    assert!(!gathers(&mut node, &[1]), "who is alone decides");
    node.linked(RACK, &mut at(Nanos::from_millis(1_000)));
    assert!(!gathers(&mut node, &[0, 1]));
    node.unlinked(ROOT, &mut at(Nanos::from_millis(1_000)));
    assert!(!gathers(&mut node, &[0, 1]), "it is above the one that decides");
    assert!(gathers(&mut node, &[1, 2]));
}

#[test]
fn a_client_that_goes_is_no_validator() {
    let mut node = node(3, &Switches::default());
    node.unlinked(NodeId(77), &mut at(Nanos::from_millis(1_000)));
    assert!(!gathers(&mut node, &[0, 2]));
}

#[test]
fn without_the_rule_votes_go_where_nobody_is() {
    let mut node = node(3, &Switches::default().without(TreeSwitch::BypassesUnreachable));
    node.unlinked(RACK, &mut at(Nanos::from_millis(1_000)));
    assert!(!gathers(&mut node, &[0, 1]));
}

/// A commit under way does not wait out its patience, either.
#[test]
fn votes_that_were_lost_with_a_validator_are_asked_for_at_the_next_look() {
    let again = |other: NodeId| {
        let mut node = node(3, &Switches::default());
        prepares(&mut node, &[0, 1]);
        node.unlinked(other, &mut at(Nanos::from_millis(1_001)));
        let mut effects = at(Nanos::from_millis(1_010));
        node.timer(Role::Coordinator, SWEEP_TIMER, &mut effects);
        let is_prepare = |it: &&Envelope<_>| matches!(it.message, Message::Prepare(_));
        sent(effects).iter().filter(is_prepare).count()
    };
    assert_eq!((again(RACK), again(ROOT)), (2, 0));
}

/// Where a leaf sends its vote on a write of this coordinator.
fn voted_to(coordinator: &mut Node<HierarchicalValidation>) -> Address {
    let mut leaf = node(1, &Switches::default());
    let asked = prepares(coordinator, &[0, 1]);
    let asked = asked.into_iter().find(|it| it.to.node == leaf.id()).expect("it is asked");
    let mut effects = at(Nanos::from_millis(1_000));
    leaf.receive(Sender::Member, asked, &mut effects).expect("a prepare");
    let votes = sent(effects);
    assert_eq!(votes.len(), 1, "{votes:?}");
    votes[0].to
}

#[test]
fn a_leaf_votes_to_the_coordinator_that_gathers_votes_itself() {
    let mut coordinator = node(3, &Switches::default());
    assert_eq!(voted_to(&mut coordinator).node, RACK);
    coordinator.unlinked(RACK, &mut at(Nanos::from_millis(1_000)));
    assert_eq!(voted_to(&mut coordinator), Address::coordinator(NodeId(3)));
}
