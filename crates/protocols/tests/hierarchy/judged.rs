//! What is asked of a message between leaves, validators and coordinators: each rule has a message
//! that breaks it alone.

use std::sync::Arc;

use muesli_core::catalog::{Hierarchy, InnerNode};
use muesli_core::{
    Abort, Address, Catalog, Decision, Effect, Effects, Envelope, Node, NodeId, Rejection,
    RepositoryId, Sender, ServiceId, ServiceKind, Settings, Timestamp, TxnId,
};
use muesli_protocols::hierarchy::Leaves;
use muesli_protocols::score::Snapshots as Plain;
use muesli_protocols::two_phase::message::merged_decision::MergedDecision;
use muesli_protocols::two_phase::message::merged_vote::MergedVote;
use muesli_protocols::two_phase::message::{Message, Mostly, Repositories};
use muesli_protocols::two_phase::{TwoPhase, Variant};

const TXN: TxnId = TxnId { node: NodeId(0), incarnation: 1, sequence: 1 };

fn validator(inner: u16) -> ServiceId {
    ServiceId::new(ServiceKind::Validator, inner)
}

fn at(counter: u64) -> Timestamp {
    Timestamp::new(counter, RepositoryId(0))
}

fn repositories(all: &[u16]) -> Repositories {
    all.iter().copied().map(RepositoryId).collect()
}

/// Three nodes with a repository each: a root and a validator above the first two at node 0, one
/// above the last at node 2. All that is judged is judged at node 0.
fn node<V: Variant>() -> Node<TwoPhase<V>> {
    let inner = |home, parent| InnerNode::new(NodeId(home), parent);
    let all = vec![inner(0, None), inner(0, Some(0)), inner(2, Some(0))];
    node_in(Hierarchy::new(all, vec![1, 1, 2]).expect("a tree"))
}

/// Node 0 of three, in this tree.
fn node_in<V: Variant>(tree: Hierarchy) -> Node<TwoPhase<V>> {
    let homes: Vec<_> = (0..3).map(NodeId).collect();
    let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog");
    let catalog = catalog.with_hierarchy(tree).expect("a leaf for each repository");
    Node::new(NodeId(0), 1, Arc::new(catalog), Arc::new(Settings::default()), &Default::default())
}

/// What node 0 says of a message of a member.
fn judged<V: Variant>(from: Address, to: Address, message: Message<V>) -> Result<(), Rejection> {
    let envelope = Envelope { from, to, message };
    node::<V>().receive(Sender::Member, envelope, &mut Effects::default())
}

/// A vote of the repository at node 1, to the validator above it.
fn vote() -> MergedVote {
    MergedVote { proposal: at(7), ..MergedVote::of(TXN, repositories(&[0, 1, 2]), RepositoryId(1)) }
}

fn ballot(from: Address, to: u16, ballot: MergedVote) -> Result<(), Rejection> {
    let to = Address::service(NodeId(0), validator(to));
    judged::<Leaves>(from, to, Message::MergedVote(Box::new(ballot)))
}

fn leaf(repository: u16) -> Address {
    Address::repository(NodeId(u32::from(repository)), RepositoryId(repository))
}

#[test]
fn a_leaf_votes_for_itself_to_the_validator_above_it() {
    assert_eq!(ballot(leaf(1), 1, vote()), Ok(()));
    assert_eq!(ballot(leaf(2), 1, vote()), Err(Rejection::Sender), "the vote of another one");
    let for_two = MergedVote { voters: repositories(&[0, 1]), ..vote() };
    assert_eq!(ballot(leaf(1), 1, for_two), Err(Rejection::Sender));
    let coordinator = Address::coordinator(NodeId(1));
    assert_eq!(ballot(coordinator, 1, vote()), Err(Rejection::Sender));
}

#[test]
fn a_voter_tells_who_waits_for_a_transaction_of_the_coordinator() {
    let (to, node) = (Address::coordinator(NodeId(0)), NodeId(2));
    let other = TxnId { node: NodeId(1), ..TXN };
    let judge_waiting = |from, txn, many: u64| {
        let waiting = (0..many).map(|request| (node, request)).collect();
        judged::<Leaves>(from, to, Message::Waiting { txn, waiting })
    };
    assert_eq!(judge_waiting(leaf(1), TXN, 64), Ok(()));
    assert_eq!(judge_waiting(leaf(1), TXN, 65), Err(Rejection::Range));
    assert_eq!(
        judge_waiting(leaf(1), other, 1),
        Err(Rejection::Sender),
        "another one's transaction"
    );
    assert_eq!(judge_waiting(Address::coordinator(node), TXN, 1), Err(Rejection::Sender));
    let changed = |from| judged::<Leaves>(from, to, Message::Changed { request: 7 });
    assert_eq!((changed(leaf(1)), changed(Address::coordinator(node))), (Ok(()), Ok(())));
}

/// A client that is told the end reads above it: what the validator's node tells it proves that
/// this was issued, though nothing was issued there.
#[test]
fn a_validator_proves_what_was_proposed_to_it() {
    let (mut node, mut effects) = (node::<Leaves>(), Effects::default());
    assert_eq!(node.issued(), Timestamp::ZERO);
    let to = Address::service(NodeId(0), validator(1));
    let message = Message::MergedVote(Box::new(vote()));
    let envelope = Envelope { from: leaf(1), to, message };
    node.receive(Sender::Member, envelope, &mut effects).expect("a vote that can be");
    assert_eq!(node.issued(), at(7));
}

/// Which validator a leaf votes to depends on who decides, so it is the validator that looks.
#[test]
fn a_validator_counts_no_votes_of_leaves_that_are_not_below_it() {
    let sent = |voter: u16| {
        let alone = MergedVote { participants: repositories(&[0, voter]), ..vote() };
        let of_both = [0, voter].map(|it| {
            let vote = MergedVote { voters: repositories(&[it]), ..alone.clone() };
            let to = Address::service(NodeId(0), validator(1));
            Envelope { from: leaf(it), to, message: Message::MergedVote(Box::new(vote)) }
        });
        let (mut node, mut effects) = (node::<Leaves>(), Effects::default());
        for vote in of_both {
            match vote.from.node == node.id() {
                true => node.deliver(vote, &mut effects),
                false => node.receive(Sender::Member, vote, &mut effects).expect("a vote"),
            }
        }
        let is_sent = |it: &&Effect<_, _>| matches!(it, Effect::Send { .. });
        effects.list.iter().filter(is_sent).count()
    };
    assert_eq!(sent(1), 1, "both are there: the participant elsewhere is told the end");
    assert_eq!(sent(2), 0, "one vote counts, and the root waits for the other");
}

#[test]
fn a_validator_votes_for_those_below_it_to_the_one_above() {
    let from = Address::service(NodeId(2), validator(2));
    let below = MergedVote { voters: repositories(&[2]), ..vote() };
    assert_eq!(ballot(from, 0, below.clone()), Ok(()));
    assert_eq!(ballot(from, 1, below), Err(Rejection::Sender), "it is not below that one");
    assert_eq!(ballot(from, 0, vote()), Err(Rejection::Sender), "repository 1 is elsewhere");
}

#[test]
fn a_validator_takes_its_share_of_the_transactions() {
    let inner = |homes: &[u32], parent| InnerNode {
        homes: homes.iter().copied().map(NodeId).collect(),
        parent,
    };
    let all = vec![inner(&[0], None), inner(&[0, 0], Some(0)), inner(&[1, 2], Some(0))];
    let tree = Hierarchy::new(all, vec![1, 1, 2]).expect("a tree");
    // Validators 1 and 2 are above the first two, 3 and 4 above the last.
    let taken = |from, to, vote: &MergedVote| {
        let to = Address::service(NodeId(0), validator(to));
        let message = Message::MergedVote(Box::new(vote.clone()));
        let envelope = Envelope { from, to, message };
        let (mut node, mut effects) = (node_in::<Leaves>(tree.clone()), Effects::default());
        let taken = node.receive(Sender::Member, envelope, &mut effects);
        taken.map(|()| effects.list.iter().any(|it| matches!(it, Effect::Send { .. })))
    };
    let mut shares = [0; 2];
    for sequence in 1..50 {
        let txn = TxnId { sequence, ..TXN };
        let participants = repositories(&[0, 1]);
        let refusal = MergedVote { txn, participants, refused: Some(Abort::Locked), ..vote() };
        // Who counts a refusal tells the other participants at once.
        let counted = [1, 2].map(|to| taken(leaf(1), to, &refusal).expect("a vote that can be"));
        assert_ne!(counted[0], counted[1], "one has this transaction");
        shares[usize::from(counted[1])] += 1;
        let below = MergedVote { txn, voters: repositories(&[2]), ..vote() };
        let of = |at: u32| Address::service(NodeId(at), validator(2 + at as u16));
        let from = [taken(of(1), 0, &below), taken(of(2), 0, &below)];
        assert_eq!(from.iter().filter(|it| it.is_ok()).count(), 1, "one has this transaction");
    }
    assert!(shares.iter().all(|share| *share > 10), "{shares:?}");
    assert_ne!(taken(leaf(1), 5, &vote()), Ok(true), "there is no such validator");
}

#[test]
fn votes_are_of_those_who_take_part_in_their_order() {
    let unsorted = MergedVote { participants: repositories(&[1, 0]), ..vote() };
    assert_eq!(ballot(leaf(1), 1, unsorted), Err(Rejection::Range));
    let not_taking_part = MergedVote { participants: repositories(&[0, 2]), ..vote() };
    assert_eq!(ballot(leaf(1), 1, not_taking_part), Err(Rejection::Range));
    let of_nobody = MergedVote { voters: Repositories::new(), ..vote() };
    assert_eq!(ballot(leaf(1), 1, of_nobody), Err(Rejection::Range));
    let for_no_time = MergedVote { proposal: Timestamp::ZERO, ..vote() };
    assert_eq!(ballot(leaf(1), 1, for_no_time), Err(Rejection::Range));
    let too_late = MergedVote { proposal: Timestamp::MAX, ..vote() };
    assert_eq!(ballot(leaf(1), 1, too_late), Err(Rejection::Range));
    let refused = MergedVote { proposal: Timestamp::ZERO, refused: Some(Abort::Locked), ..vote() };
    assert_eq!(ballot(leaf(1), 1, refused), Ok(()));
}

fn ended<V: Variant<Snapshot = Timestamp>>(txn: TxnId) -> Message<V> {
    let decision = Decision::Abort(Abort::Locked);
    Message::Ended { txn, decision, newest: Timestamp::ZERO, tag: 0 }
}

#[test]
fn a_validator_tells_a_coordinator_of_its_own_transactions() {
    let (root, me) = (Address::service(NodeId(2), validator(2)), Address::coordinator(NodeId(0)));
    assert_eq!(judged::<Leaves>(root, me, ended(TXN)), Ok(()));
    let others = TxnId { node: NodeId(1), ..TXN };
    assert_eq!(judged::<Leaves>(root, me, ended(others)), Err(Rejection::Sender));
    assert_eq!(judged::<Leaves>(leaf(1), me, ended(TXN)), Err(Rejection::Sender));
    let orderer = ServiceId::new(ServiceKind::Orderer, 0);
    let other_service = Address::service(NodeId(2), orderer);
    assert_eq!(judged::<Leaves>(other_service, me, ended(TXN)), Err(Rejection::Sender));
    assert_eq!(judged::<Leaves>(root, leaf(0), ended(TXN)), Err(Rejection::Role));
}

#[test]
fn validators_decide_where_the_protocol_has_some() {
    let root = Address::service(NodeId(2), validator(2));
    let decision = || Decision::Abort(Abort::Locked);
    let message = Message::Decide { txn: TXN, decision: decision(), ballots: Mostly::new() };
    assert_eq!(judged::<Leaves>(root, leaf(0), message), Ok(()));
    let message = Message::Decide { txn: TXN, decision: decision(), ballots: Mostly::new() };
    assert_eq!(judged::<Plain>(root, leaf(0), message), Err(Rejection::Role));
    let me = Address::coordinator(NodeId(0));
    assert_eq!(judged::<Plain>(root, me, ended(TXN)), Err(Rejection::Role));
}

/// An end for the two repositories below validator 1 of node 0.
fn end_below<V: Variant>() -> MergedDecision<V> {
    let decision = Decision::Abort(Abort::Locked);
    MergedDecision { txn: TXN, decision, participants: repositories(&[0, 1]), carried: None }
}

fn passed_down(from: Address, ended: MergedDecision<Leaves>) -> Result<(), Rejection> {
    let me = Address::service(NodeId(0), validator(1));
    judged::<Leaves>(from, me, Message::MergedDecision(Box::new(ended)))
}

/// By the same rules as where a validator tells each of them itself; which one it is and who is
/// below it is not asked, as the trees of the two may differ.
#[test]
fn a_validator_passes_down_what_validators_say() {
    let other = Address::service(NodeId(2), validator(2));
    assert_eq!(passed_down(other, end_below()), Ok(()));
    let elsewhere = MergedDecision { participants: repositories(&[2]), ..end_below() };
    assert_eq!(passed_down(other, elsewhere), Ok(()));
    assert_eq!(passed_down(leaf(1), end_below()), Err(Rejection::Sender));
    let coordinator = Address::coordinator(NodeId(1));
    assert_eq!(passed_down(coordinator, end_below()), Err(Rejection::Sender));
    let message = || Message::MergedDecision(Box::new(end_below()));
    // As printed a participant is told so, alone, with what it holds.
    let alone = MergedDecision { participants: repositories(&[0]), ..end_below() };
    let alone = Message::MergedDecision(Box::new(alone));
    assert_eq!(judged::<Leaves>(other, leaf(0), alone), Ok(()));
    assert_eq!(judged::<Leaves>(other, leaf(0), message()), Err(Rejection::Range));
    let me = Address::coordinator(NodeId(0));
    assert_eq!(judged::<Leaves>(other, me, message()), Err(Rejection::Role));
    let message = Message::MergedDecision(Box::new(end_below()));
    assert_eq!(judged::<Plain>(other, leaf(0), message), Err(Rejection::Role));
}

#[test]
fn what_is_passed_down_is_for_somebody_in_order_and_can_be() {
    let other = Address::service(NodeId(2), validator(2));
    let for_whom =
        |all: &[u16]| MergedDecision { participants: repositories(all), ..end_below::<Leaves>() };
    assert_eq!(passed_down(other, for_whom(&[])), Err(Rejection::Range));
    assert_eq!(passed_down(other, for_whom(&[1, 0])), Err(Rejection::Range));
    assert_eq!(passed_down(other, for_whom(&[1, 1])), Err(Rejection::Range));
    assert_eq!(passed_down(other, for_whom(&[0, 3])), Err(Rejection::Catalog), "there are three");
    let never = Decision::Commit(Timestamp::MAX);
    let never = MergedDecision { decision: never, ..end_below() };
    assert_eq!(passed_down(other, never), Err(Rejection::Range));
    let no_number = MergedDecision { txn: TxnId { sequence: u64::MAX, ..TXN }, ..end_below() };
    assert_eq!(passed_down(other, no_number), Err(Rejection::Range));
}
