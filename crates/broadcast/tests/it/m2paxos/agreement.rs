//! Interleavings in which two values are decided at one place where a switch is broken.

use muesli_broadcast::CommandId;
use muesli_broadcast::m2paxos::{M2Paxos, M2PaxosSwitch, Switches};
use muesli_core::sabotage::Sabotage as _;

use crate::script::Script;

/// Runs an interleaving with a switch and without it: it alone keeps two values from one place.
fn assert_notices(switch: M2PaxosSwitch, run: impl Fn(&Switches) -> Script<M2Paxos>) {
    assert_notices_beside(&Switches::default(), switch, run);
}

/// The same, where others are broken both times.
fn assert_notices_beside(
    others: &Switches,
    switch: M2PaxosSwitch,
    run: impl Fn(&Switches) -> Script<M2Paxos>,
) {
    let sound = run(others);
    assert_eq!(sound.violation(), None, "{switch:?}");
    let violation = run(&others.clone().without(switch)).violation();
    let is_place = |it: &String| it.starts_with("ObjectSlot");
    assert!(violation.as_ref().is_some_and(is_place), "{switch:?}: {violation:?}");
}

/// A group in which a member owns object 1 with a command at its first place, known to all.
fn owned_by(owner: u16, members: usize, switches: &Switches) -> Script<M2Paxos> {
    let mut group = Script::new(members, switches);
    group.propose(owner, &[1]);
    group.deliver_all();
    group
}

/// After a while a member that does not own object 1 asks for it for a new command.
fn take_over(group: &mut Script<M2Paxos>, at: u16, owner: u16) -> CommandId {
    let id = group.propose(at, &[1]);
    group.lose_kind(at, owner, "Forward");
    group.tick(at, 100);
    group.recover(at, id);
    id
}

/// What an owner asks another one to accept is accepted.
fn accept_at(group: &mut Script<M2Paxos>, owner: u16, at: u16) {
    group.deliver_kinds(&[(owner, at, "Accept"), (at, owner, "AckAccept")]);
}

/// What a member asks another one for is promised.
fn prepare_at(group: &mut Script<M2Paxos>, asks: u16, at: u16) {
    group.deliver_kinds(&[(asks, at, "Prepare"), (at, asks, "Promise")]);
}

/// Notes, point 1: two proposals at an owner, no faults.
#[test]
fn two_proposals_at_an_owner_take_two_places() {
    assert_notices(M2PaxosSwitch::OneValue, |switches| {
        let mut group = owned_by(0, 3, switches);
        let first = group.propose(1, &[1]);
        group.deliver(1, 0, first);
        group.propose(0, &[1]);
        group.deliver(0, 1, first); // Its proposer counts itself and the owner.
        group.lose(0, 2, first);
        accept_at(&mut group, 0, 2);
        group
    });
}

/// Notes, point 2: an answer that comes twice is one.
#[test]
fn answers_are_counted_by_member() {
    assert_notices(M2PaxosSwitch::CountsSenders, |switches| {
        let mut group = owned_by(0, 5, switches);
        let first = group.propose(0, &[1]);
        group.deliver(0, 1, first);
        group.tick(0, 300); // It asks all again.
        group.deliver(0, 1, first);
        group.deliver_kinds(&[(1, 0, "AckAccept"), (1, 0, "AckAccept")]);
        take_over(&mut group, 2, 0);
        [3, 4].into_iter().for_each(|at| prepare_at(&mut group, 2, at));
        [3, 4].into_iter().for_each(|at| accept_at(&mut group, 2, at));
        group
    });
}

/// Notes, point 2: answers about two values are not of one value. Where an owner sends one value
/// for a place there are no such answers.
#[test]
fn answers_are_counted_by_value() {
    let two_values = Switches::broken(M2PaxosSwitch::OneValue);
    assert_notices_beside(&two_values, M2PaxosSwitch::CountsValues, |switches| {
        let mut group = owned_by(0, 3, switches);
        group.propose_all(0, &[&[1], &[1]]);
        accept_at(&mut group, 0, 1); // The first one, when the owner has accepted the second one.
        take_over(&mut group, 1, 0);
        prepare_at(&mut group, 1, 2);
        accept_at(&mut group, 1, 2);
        group
    });
}

/// Notes, point 3, by an epoch that was observed: an owner has promised its object to another one.
#[test]
fn who_has_promised_an_object_owns_it_no_more() {
    assert_notices(M2PaxosSwitch::OwnsByPromise, |switches| {
        let mut group = owned_by(2, 3, switches);
        take_over(&mut group, 1, 2);
        prepare_at(&mut group, 1, 2);
        group.propose(2, &[1]);
        accept_at(&mut group, 2, 0);
        accept_at(&mut group, 1, 0);
        group
    });
}

/// Notes, point 3, by an epoch of its own: a member has asked for an object, and nobody answers.
#[test]
fn who_has_asked_for_an_object_does_not_own_it() {
    assert_notices(M2PaxosSwitch::OwnsByMajority, |switches| {
        let mut group = Script::new(3, switches);
        group.propose(0, &[1]);
        prepare_at(&mut group, 0, 2);
        accept_at(&mut group, 0, 2);
        (0..2).for_each(|_| _ = group.propose(1, &[1]));
        accept_at(&mut group, 1, 2);
        group
    });
}

/// Notes, point 4: a new owner sees what was accepted at all places.
#[test]
fn a_new_owner_is_shown_all_places() {
    assert_notices(M2PaxosSwitch::ShowsAllPlaces, |switches| {
        let mut group = owned_by(0, 3, switches);
        group.propose_all(0, &[&[1], &[1]]);
        (0..2).for_each(|_| accept_at(&mut group, 0, 2));
        take_over(&mut group, 1, 0);
        prepare_at(&mut group, 1, 2);
        (0..2).for_each(|_| accept_at(&mut group, 1, 2));
        group
    });
}

/// Notes, point 4: nothing of an earlier owner is taken at any place.
#[test]
fn an_earlier_owner_is_refused_at_all_places() {
    assert_notices(M2PaxosSwitch::RefusesAtAllPlaces, |switches| {
        let mut group = owned_by(0, 3, switches);
        group.propose_all(0, &[&[1], &[1]]);
        take_over(&mut group, 1, 0);
        prepare_at(&mut group, 1, 2);
        group.propose(1, &[1]);
        (0..2).for_each(|_| accept_at(&mut group, 1, 2));
        (0..2).for_each(|_| accept_at(&mut group, 0, 2));
        group
    });
}

/// Notes, point 5: two members ask for an object in the same round.
#[test]
fn epochs_of_two_members_are_never_the_same() {
    assert_notices(M2PaxosSwitch::UniqueEpochs, |switches| {
        let mut group = Script::new(3, switches);
        [0, 2].into_iter().for_each(|at| _ = group.propose(at, &[1]));
        prepare_at(&mut group, 2, 1);
        prepare_at(&mut group, 0, 1);
        accept_at(&mut group, 0, 1);
        accept_at(&mut group, 2, 1);
        group
    });
}

/// Notes, point 5: a member lacks an object for two commands.
#[test]
fn an_object_is_asked_for_once_at_a_time() {
    assert_notices(M2PaxosSwitch::AsksOnce, |switches| {
        let mut group = Script::new(3, switches);
        let own = group.propose(1, &[1]);
        group.deliver_kinds(&[(1, 0, "Prepare")]);
        let forwarded = group.propose(0, &[1]);
        group.deliver(0, 1, forwarded);
        group.deliver_kinds(&[(0, 1, "Promise")]);
        prepare_at(&mut group, 1, 2);
        group.deliver_kinds(&[(1, 0, "Accept")]);
        group.deliver(1, 2, own);
        group.deliver_kinds(&[(2, 1, "AckAccept")]);
        group
    });
}

/// Notes, point 6: two commands were decided at two objects, and a third one is to be at both.
#[test]
fn a_new_owner_says_again_what_was_accepted_at_each_place() {
    assert_notices(M2PaxosSwitch::ForcesByPlace, |switches| {
        let mut group = Script::new(3, switches);
        group.propose_all(0, &[&[1], &[2]]);
        (0..2).for_each(|_| prepare_at(&mut group, 0, 2));
        (0..2).for_each(|_| accept_at(&mut group, 0, 2));
        group.propose(1, &[1, 2]);
        prepare_at(&mut group, 1, 2);
        (0..3).for_each(|_| accept_at(&mut group, 1, 2));
        group
    });
}

/// Notes, point 9: a member knows that the second place is decided, and nothing of the first one.
#[test]
fn a_new_owner_asks_for_what_is_missing_before_what_it_knows() {
    assert_notices(M2PaxosSwitch::AsksFromPrefix, |switches| {
        let mut group = Script::new(3, switches);
        let missed = group.propose(0, &[1]);
        prepare_at(&mut group, 0, 1);
        accept_at(&mut group, 0, 1);
        group.lose(0, 2, missed);
        group.lose_kind(0, 2, "Decide");
        group.propose(0, &[1]);
        accept_at(&mut group, 0, 2);
        group.deliver_kinds(&[(0, 2, "Decide")]);
        take_over(&mut group, 2, 0);
        prepare_at(&mut group, 2, 1);
        accept_at(&mut group, 2, 1);
        group
    });
}

/// Notes, point 11: a command was decided in the first epoch of all.
#[test]
fn what_was_accepted_in_the_first_epoch_was_accepted() {
    assert_notices(M2PaxosSwitch::FirstEpochCounts, |switches| {
        let mut group = Script::new(3, switches);
        group.propose(0, &[1]);
        prepare_at(&mut group, 0, 2);
        accept_at(&mut group, 0, 2);
        group.propose(1, &[1]);
        prepare_at(&mut group, 1, 2);
        accept_at(&mut group, 1, 2);
        group
    });
}
