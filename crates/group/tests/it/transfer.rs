//! A member takes over another one's state while entries come late to it.

use muesli_core::{Address, Envelope, ReplicaRole};
use muesli_group::{GroupSettings, Limits, Message};

use crate::network::Network;

/// Members of which one has lost its folder, and what they have dropped is in their states alone.
fn one_lost() -> (Network, Address) {
    let limits = Limits { log_bytes_min: 0, ..Limits::tight() };
    let mut network = Network::with(GroupSettings { limits, ..GroupSettings::default() });
    let (_, follower) = network.elect();
    assert!((0..50).all(|_| network.increments()));
    (0..100).for_each(|_| network.ring());
    network.lags = Some(follower.node);
    network.lose(follower.node);
    (network, follower)
}

/// How often the member asked for a state from its beginning until it follows. Each time it is told
/// of entries only after `meanwhile`, for which it has the first piece.
fn transfers(meanwhile: impl Fn(&mut Network, Address, Address)) -> usize {
    let (mut network, follower) = one_lost();
    let mut asked = 0;
    for _ in 0..1_000 {
        network.ring();
        if !network.requests.is_empty() {
            asked += 1;
            // Whoever answers has come further than the member.
            assert!(network.increments(), "two of three are there");
            let source = network.answer_request();
            meanwhile(&mut network, source, follower);
            network.let_arrive();
        }
        if asked > 0
            && network.hosts[&follower.node].node.replica_roles()[0].1 == ReplicaRole::Follows
        {
            return asked;
        }
    }
    panic!("it does not follow, though it asked {asked} times");
}

#[test]
fn a_state_that_is_ahead_is_waited_for_and_not_begun_anew() {
    assert_eq!(transfers(|_, _, _| {}), 1);
}

#[test]
fn so_it_is_where_the_member_lags_for_long() {
    let asked = transfers(|network, _, _| (0..200).for_each(|_| network.ring()));
    assert_eq!(asked, 1);
}

#[test]
fn a_member_that_fetches_entries_as_well_does_not_begin_anew() {
    let asked = transfers(|network, source, follower| {
        network.let_entries_arrive();
        network.ring();
        let message = Message::Behind(u64::MAX);
        network.send(Envelope { from: source, to: follower, message });
        (0..3).for_each(|_| network.ring());
    });
    assert_eq!(asked, 1);
}
