//! What a member without memory says of itself.

use muesli_core::{Lag, NodeId};

use crate::network::Network;

#[test]
fn a_member_that_lost_its_folder_does_not_say_that_it_is_up_to_date() {
    let mut network = Network::new();
    let (_, follower) = network.elect();
    assert!((0..5).all(|_| network.increments()));
    let lag = |network: &Network, node: NodeId| {
        network.hosts[&node].node.lags().first().map(|(_, lag)| *lag)
    };
    (0..100).for_each(|_| network.ring());
    assert_eq!(lag(&network, follower.node), Some(Lag::default()));
    network.lose(follower.node);
    assert_eq!(lag(&network, follower.node), None, "it knows nothing");
    let mut lags_seen = Vec::new();
    for _ in 0..1_000 {
        network.ring();
        lags_seen.push(lag(&network, follower.node));
    }
    let up_to_date = lags_seen.iter().position(|it| *it == Some(Lag::default())).unwrap();
    let replica_roles = network.hosts[&follower.node].node.replica_roles();
    assert!(up_to_date > 0 && replica_roles[0].1.takes_part(), "{replica_roles:?}, {lags_seen:?}");
}
