//! Votes on their way while the tree changes: dropped where they have no place any more, and never
//! merged with those of another tree.

use std::sync::Arc;

use muesli_core::catalog::{Hierarchy, InnerNode};
use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Node, NodeId, RepositoryId, ServiceId,
    ServiceKind, Settings, Timestamp, TxnId,
};
use muesli_protocols::hierarchy::HierarchicalValidation;
use muesli_protocols::two_phase::message::Message;
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
