//! Votes on their way while the tree changes: dropped where they have no place any more, and never
//! merged with those of another tree. And decisions on their way, which are never dropped.

use std::sync::Arc;

use muesli_core::catalog::{Hierarchy, InnerNode};
use muesli_core::{
    Abort, Address, Catalog, Decision, Effect, Effects, Envelope, Node, NodeId, RepositoryId, Role,
    ServiceId, ServiceKind, Settings, Timestamp, TxnId,
};
use muesli_protocols::hierarchy::HierarchicalValidation;
use muesli_protocols::two_phase::message::Message;
use muesli_protocols::two_phase::message::merged_decision::MergedDecision;
use muesli_protocols::two_phase::message::merged_vote::MergedVote;

const TXN: TxnId = TxnId { node: NodeId(2), incarnation: 1, sequence: 1 };

/// Node 0 of three with a repository each, with the validators of a root and of an inner node above
/// the first two repositories; the last one is right below the root.
fn node() -> Node<HierarchicalValidation> {
    let homes: Vec<_> = (0..3).map(NodeId).collect();
    let inner = |parent| InnerNode::new(NodeId(0), parent);
    let tree = Hierarchy::new(vec![inner(None), inner(Some(0))], vec![1, 1, 0]).expect("a tree");
    let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog");
    let catalog = catalog.with_hierarchy(tree).expect("a leaf for each repository");
    Node::new(NodeId(0), 1, Arc::new(catalog), Arc::new(Settings::default()), &Default::default())
}

/// The vote of a repository, as it comes to a validator that judges it no more: it has waited for
/// the log of its own node.
fn vote(node: &mut Node<HierarchicalValidation>, voter: u16, validator: u16) -> usize {
    let participants = (0..3).map(RepositoryId).collect();
    let ballot = MergedVote::of(TXN, participants, RepositoryId(voter));
    let proposal = Timestamp::new(7 + u64::from(voter), RepositoryId(voter));
    let message = Message::MergedVote(Box::new(MergedVote { proposal, ..ballot }));
    let from = Address::repository(NodeId(u32::from(voter)), RepositoryId(voter));
    let service = ServiceId::new(ServiceKind::Validator, validator);
    let (to, mut effects) = (Address::service(NodeId(0), service), Effects::default());
    node.deliver(Envelope { from, to, message }, &mut effects);
    node.assert_invariants();
    let ends = effects.list.iter().filter(|effect| {
        matches!(effect, Effect::Send { envelope, .. }
            if matches!(envelope.message, Message::Ended { .. }))
    });
    ends.count()
}

fn figure(node: &Node<HierarchicalValidation>, name: &str) -> u64 {
    let figures = node.figures();
    figures.iter().find(|(it, _)| it == name).map(|(_, count)| *count).expect("it is counted")
}

#[test]
fn votes_of_an_earlier_tree_are_dropped_and_those_of_the_next_one_decide() {
    let mut node = node();
    assert_eq!(vote(&mut node, 0, 1), 0);
    assert_eq!(vote(&mut node, 2, 0), 0);
    let waiting = ["validator-0-waiting", "validator-1-waiting"].map(|it| figure(&node, it));
    assert_eq!(waiting, [1, 1]);
    // All are right below the root from now on.
    let root = Hierarchy::new(vec![InnerNode::new(NodeId(0), None)], vec![0; 3]).expect("a tree");
    let next = Catalog::clone(node.catalog()).with_next_tree(Some(root));
    node.place(Arc::new(next), &mut Effects::default());
    node.assert_invariants();
    let dropped = ["validator-0-dropped", "validator-1-dropped"].map(|it| figure(&node, it));
    assert_eq!(dropped, [1, 1], "nobody knows any more what the tree was that they climbed");
    assert_eq!(vote(&mut node, 1, 1), 0, "a validator that is gone");
    assert_eq!(figure(&node, "validator-1-dropped"), 2);
    // Whoever votes by the new tree is waited for, one and all.
    assert_eq!((vote(&mut node, 0, 0), vote(&mut node, 1, 0), vote(&mut node, 2, 0)), (0, 0, 1));
    assert_eq!(figure(&node, "validator-0-decided"), 1);
}

#[test]
fn a_validator_takes_no_votes_that_are_not_below_it_by_the_tree_of_its_node() {
    let mut node = node();
    assert_eq!(vote(&mut node, 2, 1), 0);
    assert_eq!(figure(&node, "validator-1-dropped"), 1);
    assert_eq!(figure(&node, "validator-1-merged"), 0);
    // Two of two below, and one more beside: the root decides, which has all of them.
    assert_eq!((vote(&mut node, 0, 1), vote(&mut node, 1, 1)), (0, 0));
    assert_eq!(figure(&node, "validator-1-passed-up"), 1);
    assert_eq!(vote(&mut node, 2, 0), 1);
    assert_eq!(figure(&node, "validator-0-decided"), 1);
}

/// Who is told an end, other than this node, that a validator has said to another one of node 0.
fn recipients(
    node: &mut Node<HierarchicalValidation>,
    from: u16,
    to: u16,
    all: &[u16],
) -> Vec<Role> {
    let participants = all.iter().copied().map(RepositoryId).collect();
    let decision = Decision::Abort(Abort::Locked);
    let ended = MergedDecision { txn: TXN, decision, participants, carried: None };
    let validator = |it| Address::service(NodeId(0), ServiceId::new(ServiceKind::Validator, it));
    let message = Message::MergedDecision(Box::new(ended));
    let (from, to, mut effects) = (validator(from), validator(to), Effects::default());
    node.deliver(Envelope { from, to, message }, &mut effects);
    node.assert_invariants();
    let notified = effects.list.iter().filter_map(|effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.message {
            Message::Decide { .. } | Message::MergedDecision(_) => Some(envelope.to.role),
            _ => None,
        },
        _ => None,
    });
    notified.collect()
}

fn repository(number: u16) -> Role {
    Role::Repository(RepositoryId(number))
}

#[test]
fn a_decision_that_came_by_another_tree_is_told_directly() {
    let homes: Vec<_> = (0..5).map(NodeId).collect();
    let inner = |home, parent| InnerNode::new(NodeId(home), parent);
    // A root at node 0, below it an inner node there and one at node 1, which has two leaves and is
    // below the former.
    let tree = vec![inner(0, None), inner(0, Some(0)), inner(1, Some(1))];
    let tree = Hierarchy::new(tree, vec![0, 1, 2, 2, 0]).expect("a tree");
    let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog");
    let catalog = catalog.with_hierarchy(tree).expect("a leaf for each repository");
    let settings = Arc::new(Settings::default());
    let mut node = Node::new(NodeId(0), 1, Arc::new(catalog), settings, &Default::default());
    let below = Role::Service(ServiceId::new(ServiceKind::Validator, 2));
    assert_eq!(recipients(&mut node, 0, 1, &[1, 2, 3]), [repository(1), below]);
    assert_eq!(figure(&node, "validator-1-passed-down"), 1);
    // From one that is not above it: were it passed on by both trees, it could go round.
    let directly = [1, 2, 3].map(repository);
    assert_eq!(recipients(&mut node, 2, 1, &[1, 2, 3]), directly);
    assert_eq!(recipients(&mut node, 1, 1, &[1, 2, 3]), directly);
    // For some who are not below it.
    assert_eq!(recipients(&mut node, 0, 1, &[1, 4]), [1, 4].map(repository));
    // All are right below the root from now on, and validator 1 is gone.
    let root = Hierarchy::new(vec![InnerNode::new(NodeId(0), None)], vec![0; 5]).expect("a tree");
    let next = Catalog::clone(node.catalog()).with_next_tree(Some(root));
    node.place(Arc::new(next), &mut Effects::default());
    assert_eq!(recipients(&mut node, 0, 1, &[1, 2, 3]), directly);
    assert_eq!(figure(&node, "validator-1-passed-down"), 5);
    assert_eq!(figure(&node, "validator-1-dropped"), 0);
}
