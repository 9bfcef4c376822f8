//! Members that break a rule of theirs, at the moment at which it matters: what was committed is
//! gone then.

use std::cell::Cell;
use std::rc::Rc;

use muesli_core::{Envelope, NodeId, Protocol};
use muesli_group::{GroupSettings, Limits, Message};
use muesli_protocols::granola::Granola;
use muesli_protocols::score::Score;

use crate::network::{KEY, Network};

/// A key of which a transaction is never heard of.
const UNHEARD: &str = "unheard";

type SettingsOf<P> = GroupSettings<<P as Protocol>::Switches>;

/// The leader, and the two others.
fn replica_roles<P: Protocol>(network: &mut Network<P>) -> [NodeId; 3] {
    let (leader, other) = network.elect();
    let third = (0..3).map(NodeId).find(|it| *it != leader.node && *it != other.node);
    [leader.node, other.node, third.unwrap()]
}

/// The leader and one member have committed what the third has not heard of. That one member loses
/// its folder, and the leader is cut off when the member has fetched the first entries from it. How
/// many increments the two others know of, if they answer; and how many were committed.
fn counts_without_the_leader(group_settings: SettingsOf<Score>) -> (Option<u64>, u64) {
    let mut network = Network::<Score>::with(group_settings);
    let [leader, lost, behind] = replica_roles(&mut network);
    assert!((0..5).all(|_| network.increments()));
    network.loses = Box::new(move |it| it.from.node == leader && it.to.node == behind);
    assert!((0..20).all(|_| network.increments()), "two of three are there");
    let fetched = Rc::new(Cell::new(false));
    network.loses = Box::new(move |it| {
        let (from, to) = (it.from.node, it.to.node);
        let is_alone = fetched.get() && is_of(it, leader);
        let answers = from == leader && to == lost && matches!(it.message, Message::Entries(_));
        fetched.set(fetched.get() || answers);
        is_alone || from == leader && to == behind
    });
    network.lose(lost);
    (0..500).for_each(|_| network.ring());
    let without = network.count(KEY);
    network.loses = Box::new(|_| false);
    (0..500).for_each(|_| network.ring());
    (without, network.count(KEY).expect("all are there"))
}

fn with_few_entries_a_message() -> SettingsOf<Score> {
    GroupSettings {
        limits: Limits { piece_bytes: 400, ..Limits::default() },
        ..GroupSettings::default()
    }
}

#[test]
fn a_member_without_memory_votes_once_it_has_all_entries() {
    assert_eq!(counts_without_the_leader(with_few_entries_a_message()), (None, 25));
}

#[test]
fn a_member_without_memory_that_votes_before_loses_what_was_committed() {
    let group_settings = GroupSettings { joins_whole: false, ..with_few_entries_a_message() };
    let (without, after) = counts_without_the_leader(group_settings);
    assert!(without.is_some_and(|it| it < 25) && after < 25, "{without:?}, {after}");
}

/// A member has lost its folder and takes over the state of the leader, for the third member does
/// not answer it. Meanwhile the leader runs a transaction of its own node of which nobody hears,
/// and ends; the two others go on. What the client reads of that transaction while they do, and
/// later where the third member is away.
fn traces_of_what_nobody_decided(group_settings: SettingsOf<Granola>) -> [Option<u64>; 2] {
    let mut network = Network::<Granola>::with(group_settings);
    let [leader, lost, other] = replica_roles(&mut network);
    assert!((0..20).all(|_| network.increments()));
    (0..100).for_each(|_| network.ring());
    // The member knows all entries and votes. The leader's first piece comes to it, and it is to
    // ask for the rest later.
    network.loses = Box::new(move |it| match &it.message {
        Message::FetchState(asked) => it.to.node == other || asked.have.is_some(),
        _ => false,
    });
    network.lose(lost);
    (0..150).for_each(|_| network.ring());
    let txn = network.begins_increment(leader, UNHEARD).expect("two of three are there");
    network.loses = Box::new(move |it| {
        it.from.node == leader && it.to.node != leader && !matches!(it.message, Message::State(_))
    });
    network.asks_to_commit(leader, txn);
    (0..60).for_each(|_| network.ring());
    // That process ends before it learns that it was deposed, and is not there for a while.
    network.lose(leader);
    network.loses = Box::new(move |it| is_of(it, leader));
    (0..500).for_each(|_| network.ring());
    assert!((0..10).all(|_| network.increments()), "the two others are there");
    let without_leader = network.count(UNHEARD);
    network.loses = Box::new(|_| false);
    (0..500).for_each(|_| network.ring());
    network.loses = Box::new(move |it| is_of(it, other));
    (0..500).for_each(|_| network.ring());
    assert_eq!(network.count(KEY), Some(30), "two of three are there");
    [without_leader, network.count(UNHEARD)]
}

/// Whether a message goes from or to a node.
fn is_of<M>(envelope: &Envelope<M>, node: NodeId) -> bool {
    let (from, to) = (envelope.from.node, envelope.to.node);
    from != to && (from == node || to == node)
}

fn with_small_pieces() -> SettingsOf<Granola> {
    let limits =
        Limits { log_bytes_min: 0, piece_bytes: 100, window_bytes: 1, ..Limits::default() };
    GroupSettings { limits, ..GroupSettings::default() }
}

#[test]
fn a_state_of_the_leader_holds_what_is_decided() {
    assert_eq!(traces_of_what_nobody_decided(with_small_pieces()), [Some(0), Some(0)]);
}

#[test]
fn a_state_of_the_leader_that_holds_more_brings_back_what_was_lost() {
    let group_settings = GroupSettings { sends_decided: false, ..with_small_pieces() };
    assert_eq!(traces_of_what_nobody_decided(group_settings), [Some(0), Some(1)]);
}
