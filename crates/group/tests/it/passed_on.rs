//! What a member passes on for a client is judged by what the leader knows to have been issued.

use muesli_core::{Envelope, Rejection, Sender};

use crate::network::{Host, Network};

#[test]
fn a_client_that_does_not_find_the_leader_is_served_by_way_of_another_member() {
    let mut network = Network::new();
    let (leader, follower) = network.elect();
    network.passes_on = Some(follower);
    // From the second one on, what it says names timestamps that the leader has issued.
    for number in 0..4 {
        let done = network.increments();
        let rejections = |host: &Host| format!("{:?}", host.node.rejections());
        let all: Vec<_> = network.hosts.values().map(rejections).collect();
        assert!(done, "transaction {number}: {all:?}");
    }
    let rejections = network.hosts[&leader.node].node.rejections();
    assert_eq!(rejections.iter().collect::<Vec<_>>(), []);
}

#[test]
fn a_timestamp_that_nobody_issued_is_left_out_though_a_member_passes_it_on() {
    let mut elsewhere = Network::new();
    elsewhere.elect();
    assert!((0..30).all(|_| elsewhere.increments()));
    let mut network = Network::new();
    let (leader, follower) = network.elect();
    assert!(network.increments());
    // What a client of a cluster says that has come further.
    let message = elsewhere.decided.take().expect("a client decides");
    let envelope = Envelope { from: follower, to: leader, message };
    let host = network.hosts.get_mut(&leader.node).unwrap();
    let judged = host.node.receive(Sender::Member, envelope, &mut host.effects);
    assert_eq!(judged, Err(Rejection::Unissued));
}
