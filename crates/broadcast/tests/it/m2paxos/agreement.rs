//! Interleavings in which two values are decided at one place where a switch is broken.

use muesli_broadcast::CommandId;
use muesli_broadcast::m2paxos::{M2Paxos, M2PaxosSwitch, Switches};
use muesli_core::sabotage::Sabotage as _;

use crate::script::Script;

/// Runs an interleaving with a switch and without it: it alone keeps two values from one place.
fn assert_notices(switch: M2PaxosSwitch, run: impl Fn(&Switches) -> Script<M2Paxos>) {
    assert_notices_beside(&Switches::default(), switch, &run);
    let mut sound = run(&Switches::default());
    sound.deliver_all();
    sound.assert_invariants();
    assert_eq!(sound.violation(), None, "{switch:?}");
}

/// The same, where others are broken both times.
fn assert_notices_beside(
    others: &Switches,
    switch: M2PaxosSwitch,
    run: impl Fn(&Switches) -> Script<M2Paxos>,
) {
    assert_eq!(run(others).violation(), None, "{switch:?}");
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

/// Two proposals at an owner, no faults (algorithm 3, lines 2 to 6).
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

/// An answer that comes twice is one (algorithm 5, lines 8 to 10).
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

/// Answers about two values are not of one value. Where an owner sends one value for a place there
/// are no such answers.
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

/// An owner has promised its object to another one: the latest epoch that it knows is not its own
/// (algorithm 3, line 6).
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

/// A member has asked for an object, and nobody answers: the latest epoch that it knows is its own
/// (algorithm 6, line 4).
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

/// A new owner sees what was accepted at all places.
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

/// Nothing of an earlier owner is taken at any place.
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

/// Two members ask for an object in the same round.
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

/// A member lacks an object for two commands.
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

/// Two commands were decided at two objects, and a third one is to be at both (algorithm 4, lines 4
/// to 7).
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

/// A member knows that the second place is decided, and nothing of the first one.
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

/// A command was decided in the first epoch of all.
#[test]
fn what_was_accepted_in_the_first_epoch_was_accepted() {
    for switch in [M2PaxosSwitch::ForcesVotes, M2PaxosSwitch::FirstEpochCounts] {
        assert_notices(switch, |switches| {
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
}

/// A value was accepted by one member in the first epoch, and another one was decided in
/// the second one.
#[test]
fn a_new_owner_says_again_what_was_accepted_last() {
    assert_notices(M2PaxosSwitch::ForcesLatest, |switches| {
        let mut group = Script::new(3, switches);
        group.propose(0, &[1]);
        prepare_at(&mut group, 0, 2);
        group.propose(1, &[1]);
        prepare_at(&mut group, 1, 2);
        accept_at(&mut group, 1, 2);
        for at in 1..3 {
            group.deliver_kinds(&[(0, at, "Accept"), (at, 0, "Refuse")]);
        }
        prepare_at(&mut group, 0, 2);
        accept_at(&mut group, 0, 2);
        group
    });
}

/// Who knows that something is decided has no vote for it any more.
#[test]
fn a_new_owner_is_shown_what_is_decided() {
    assert_notices(M2PaxosSwitch::ShowsDecisions, |switches| {
        let mut group = Script::new(3, switches);
        group.propose(0, &[1]);
        prepare_at(&mut group, 0, 2);
        accept_at(&mut group, 0, 2);
        group.deliver_kinds(&[(0, 2, "Decide")]);
        group.propose(1, &[1]);
        prepare_at(&mut group, 1, 2);
        accept_at(&mut group, 1, 2);
        group
    });
}

/// Of two objects of a command one is promised to somebody else.
#[test]
fn a_command_is_accepted_at_all_of_its_objects_or_at_none() {
    assert_notices(M2PaxosSwitch::ChecksAllObjects, |switches| {
        let mut group = Script::new(3, switches);
        group.propose(0, &[1, 2]);
        group.deliver_all();
        let id = group.propose(1, &[2]);
        group.lose(1, 0, id);
        group.tick(1, 100);
        group.recover(1, id);
        prepare_at(&mut group, 1, 2);
        accept_at(&mut group, 1, 2);
        group.propose(0, &[1, 2]);
        accept_at(&mut group, 0, 2);
        group
    });
}

/// A member forgets in which epoch it has promised an object.
#[test]
fn what_was_promised_is_known_after_a_crash() {
    assert_notices(M2PaxosSwitch::StoresEpochs, |switches| {
        let mut group = Script::new(3, switches);
        for at in 0..2 {
            group.propose(at, &[1]);
            prepare_at(&mut group, at, 2);
        }
        group.restart(2);
        (0..2).for_each(|at| accept_at(&mut group, at, 2));
        group
    });
}

/// A member forgets what it has accepted.
#[test]
fn what_was_accepted_is_known_after_a_crash() {
    assert_notices(M2PaxosSwitch::StoresVotes, |switches| {
        let mut group = Script::new(3, switches);
        group.propose(0, &[1]);
        prepare_at(&mut group, 0, 2);
        accept_at(&mut group, 0, 2);
        group.restart(2);
        group.propose(1, &[1]);
        prepare_at(&mut group, 1, 2);
        accept_at(&mut group, 1, 2);
        group
    });
}
