//! A member that votes, and whose participant's state is still under way to it.

use std::cell::RefCell;
use std::rc::Rc;

use muesli_core::{Address, Envelope, ReplicaRole};
use muesli_group::agreement::transfer::Fetch;
use muesli_group::{GroupSettings, Limits, Message};
use muesli_protocols::score;

use crate::network::{KEY, Network};

/// So many increments commit; where a member was cut off just now, some are not answered.
fn increments(network: &mut Network, times: usize) {
    let committed = (0..10 * times).filter(|_| network.increments()).take(times).count();
    assert_eq!(committed, times);
}

struct Group {
    network: Network,
    leader: Address,
    /// It came back so late that it needs the state of another one, of which it gets the first
    /// piece and no more.
    late: Address,
    /// It is cut off.
    third: Address,
}

/// Members of which one votes without state: it and the leader decide what a third one misses.
fn without_state() -> Group {
    let limits = Limits { log_bytes_min: 0, ..Limits::tight() };
    let mut network = Network::with(GroupSettings { limits, ..GroupSettings::default() });
    let (leader, third) = network.elect();
    let late = network.members().into_iter().find(|it| ![leader, third].contains(it));
    let late = late.expect("there are three");
    network.passes_on = Some(leader);
    increments(&mut network, 5);
    (0..100).for_each(|_| network.ring());

    network.loses = Box::new(move |it| it.from.node == late.node || it.to.node == late.node);
    increments(&mut network, 100);
    let is_held_up = |it: &Message<_>| matches!(it, Message::State(piece) if piece.number > 0);
    network.loses = Box::new(move |it| it.to.node == late.node && is_held_up(&it.message));
    (0..200).for_each(|_| network.ring());
    network.loses = Box::new(move |it| {
        let cut_off = it.from.node == third.node || it.to.node == third.node;
        cut_off || it.to.node == late.node && is_held_up(&it.message)
    });
    increments(&mut network, 60);
    let late_role = network.hosts[&late.node].node.replica_roles()[0].1;
    assert_eq!(late_role, ReplicaRole::Joins, "it votes without state");
    Group { network, leader, late, third }
}

/// The leader's disk is lost, so many ticks later: the third member has the only state, and the
/// late one the last entries.
fn a_disk_is_lost(ticks: usize) {
    let Group { mut network, leader, .. } = without_state();
    let counted = network.count(KEY).expect("the leader and the late one are two of three");
    (0..ticks).for_each(|_| network.ring());
    network.loses = Box::new(|_| false);
    network.lose(leader.node);
    (0..1_000).for_each(|_| network.ring());
    network.passes_on = None;
    assert_eq!(network.count(KEY), Some(counted), "{ticks} ticks later");
    assert!(network.increments());
}

#[test]
fn what_it_decided_survives_whose_state_it_lacks() {
    (0..30).map(|it| 10 * it).for_each(a_disk_is_lost);
}

/// What the late member answers the third one, which knows of nothing as decided and has so many
/// entries, of the leader or of nobody.
fn answers(length: u64, is_of_leader: bool) -> Vec<Message<score::Message>> {
    let Group { mut network, late, third, .. } = without_state();
    let seen: Rc<RefCell<Vec<Message<_>>>> = Rc::default();
    let sees = Rc::clone(&seen);
    network.loses = Box::new(move |it| {
        let is_of_entries =
            matches!(it.message, Message::Confirm { .. } | Message::Entries(_) | Message::NoState);
        if is_of_entries && (it.to == late || it.to == third && it.from == late) {
            sees.borrow_mut().push(it.message.clone());
        }
        it.to == third
    });
    increments(&mut network, 1);
    let followed = seen.borrow().iter().find_map(|it| match it {
        Message::Confirm { ballot, .. } => Some(*ballot),
        _ => None,
    });
    seen.borrow_mut().clear();
    let accepted = followed.filter(|_| is_of_leader).unwrap_or_default();
    let message = Message::Fetch(Fetch { after: 0, whole: false, again: true, accepted, length });
    network.send(Envelope { from: third, to: late, message });
    seen.take()
}

#[test]
fn nobody_drops_a_state_for_what_it_has() {
    let has_none = |answers: Vec<_>| matches!(answers[..], [Message::NoState]);
    assert!(has_none(answers(0, true)));
    assert!(has_none(answers(1_000, false)), "of whom they are, nobody knows");
}

#[test]
fn who_has_the_entries_before_its_own_is_sent_those() {
    let answers = answers(1_000, true);
    let Some(Message::Entries(batch)) = answers.first() else { panic!("{answers:?}") };
    assert_eq!(batch.base, None);
    assert!(batch.from > 0 && !batch.entries.is_empty());
}
