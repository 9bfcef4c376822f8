//! Interleavings in which commands stand still, or cost more, where a switch is broken.

use muesli_broadcast::CommandId;
use muesli_broadcast::m2paxos::{M2Paxos, M2PaxosSwitch, Switches};
use muesli_core::sabotage::Sabotage as _;

use crate::script::Script;

/// Time goes on from this moment, and one of three members is dead: whether the others deliver
/// these commands within ten seconds.
pub fn delivers_without(
    dead: u16,
    group: &mut Script<M2Paxos>,
    from_ms: u64,
    ids: &[CommandId],
) -> bool {
    group.lose_all_from(dead);
    let alive = || (0..3).filter(|at| *at != dead);
    (from_ms..10_000).step_by(100).any(|ms| {
        alive().for_each(|at| group.tick(at, ms));
        group.deliver_all_but(dead);
        alive().all(|at| ids.iter().all(|id| group.order(at).contains(id)))
    })
}

/// Runs an interleaving with a switch and without it: it alone brings everything to its end.
pub fn assert_ends(switch: M2PaxosSwitch, ends: impl Fn(&Switches) -> bool) {
    assert!(ends(&Switches::default()), "{switch:?}: it stands still");
    assert!(!ends(&Switches::broken(switch)), "{switch:?}: it is of no use");
}

/// A group in which member 0 owns objects 1 and 2 with a command at their first places.
pub fn owned(switches: &Switches, members: usize) -> Script<M2Paxos> {
    let mut group = Script::new(members, switches);
    group.propose(0, &[1, 2]);
    group.deliver_all();
    group
}

/// A member asks for an object that member 0 owns, for a new command.
fn ask_for(group: &mut Script<M2Paxos>, at: u16, object: u64) -> CommandId {
    let id = group.propose(at, &[object]);
    group.lose(at, 0, id);
    group.tick(at, 100);
    group.recover(at, id);
    id
}

/// A command of objects 1 and 2 was accepted at the second place of object 1 alone by members 0 and
/// 1, as member 2 has taken object 2, with a command of its own at the second place there.
pub fn partly_placed(switches: &Switches) -> (Script<M2Paxos>, CommandId) {
    let mut group = owned(switches, 3);
    let split = group.propose(0, &[1, 2]);
    group.lose(0, 1, split);
    group.lose(0, 2, split);
    ask_for(&mut group, 2, 2);
    group.deliver_kinds(&[(2, 0, "Prepare"), (2, 1, "Prepare"), (1, 2, "Promise")]);
    group.deliver_kinds(&[(2, 1, "Accept"), (1, 2, "AckAccept"), (0, 1, "Accept")]);
    (group, split)
}

/// The proposer of a command that is decided at one of its objects is dead.
#[test]
fn a_command_at_some_of_its_objects_is_brought_to_the_others() {
    assert_ends(M2PaxosSwitch::HelpsOthers, |switches| {
        let (mut group, split) = partly_placed(switches);
        let behind = group.propose(1, &[1]);
        let ends = delivers_without(0, &mut group, 200, &[split, behind]);
        assert_eq!(group.violation(), None);
        ends
    });
}

/// The same, and it goes to no second place.
#[test]
fn a_command_goes_to_one_place_of_each_object() {
    let places = |switches: &Switches| {
        let (mut group, split) = partly_placed(switches);
        let behind = group.propose(1, &[1]);
        assert!(delivers_without(0, &mut group, 200, &[split, behind]));
        assert_eq!(group.violation(), None);
        group.members[1].decided().filter(|(_, value)| *value == Some(split)).count()
    };
    assert_eq!(places(&Switches::default()), 2);
    assert!(places(&Switches::broken(M2PaxosSwitch::SkipsDecided)) > 2);
}

/// An owner has asked for two places, and nobody has seen what is at the first.
#[test]
fn a_new_owner_fills_the_places_that_nobody_has_seen() {
    assert_ends(M2PaxosSwitch::FillsGaps, |switches| {
        let mut group = owned(switches, 3);
        let unseen = group.propose(0, &[1]);
        (1..3).for_each(|to| group.lose(0, to, unseen));
        let seen = group.propose(0, &[1]);
        group.deliver(0, 1, seen);
        let last = group.propose(1, &[1]);
        delivers_without(0, &mut group, 100, &[seen, last])
    });
}

/// The owner to which a command was forwarded is dead (algorithm 3, lines 12 and 13).
#[test]
fn a_command_is_not_forwarded_again() {
    assert_ends(M2PaxosSwitch::ForwardsOnce, |switches| {
        let mut group = owned(switches, 3);
        let id = group.propose(2, &[1]);
        let ends = delivers_without(0, &mut group, 100, &[id]);
        let forwarded = group.kinds().iter().filter(|it| *it == "2 to 0: Forward").count();
        assert_eq!(forwarded == 1, ends, "{forwarded} times");
        ends
    });
}

/// An owner is refused for a member that has asked for the object and is dead.
#[test]
fn an_owner_that_is_refused_asks_anew() {
    assert_ends(M2PaxosSwitch::ObservesRefusals, |switches| {
        let mut group = owned(switches, 3);
        ask_for(&mut group, 1, 1);
        group.deliver_kinds(&[(1, 2, "Prepare")]);
        let id = group.propose(0, &[1]);
        delivers_without(1, &mut group, 200, &[id])
    });
}

/// One of five members refuses, and the others are enough.
#[test]
fn one_refusal_does_not_end_what_a_majority_takes() {
    let accept = |switches: &Switches| {
        let mut group = owned(switches, 5);
        ask_for(&mut group, 1, 1);
        group.deliver_kinds(&[(1, 2, "Prepare")]);
        let id = group.propose(0, &[1]);
        group.deliver_kinds(&[(0, 2, "Accept"), (2, 0, "Refuse")]);
        for at in 3..5 {
            group.deliver_kinds(&[(0, at, "Accept"), (at, 0, "AckAccept")]);
        }
        group.order(0).contains(&id)
    };
    assert_ends(M2PaxosSwitch::AwaitsRefusals, accept);
    let acquire = |switches: &Switches| {
        let mut group = Script::<M2Paxos>::new(5, switches);
        group.propose(1, &[1]);
        group.deliver_kinds(&[(1, 2, "Prepare")]);
        group.propose(0, &[1]);
        group.deliver_kinds(&[(0, 2, "Prepare"), (2, 0, "Refuse")]);
        for at in 3..5 {
            group.deliver_kinds(&[(0, at, "Prepare"), (at, 0, "Promise")]);
        }
        group.kinds().contains(&"0 to 3: Accept".to_owned())
    };
    assert_ends(M2PaxosSwitch::AwaitsRefusals, acquire);
}

/// Of two objects that a member owns the others have promised one to another one.
#[test]
fn who_is_refused_for_one_object_still_owns_the_other_one() {
    assert_ends(M2PaxosSwitch::DropsBeatenAlone, |switches| {
        let mut group = owned(switches, 3);
        ask_for(&mut group, 1, 2);
        group.deliver_kinds(&[(1, 2, "Prepare"), (2, 1, "Promise")]);
        group.propose(0, &[1, 2]);
        for at in 1..3 {
            group.deliver_kinds(&[(0, at, "Accept"), (at, 0, "Refuse")]);
        }
        group.propose(0, &[1]);
        group.kinds().last().is_some_and(|it| it == "0 to 2: Accept")
    });
}

/// All that is sent to a member about a command is lost.
#[test]
fn what_was_missed_is_shown_to_who_asks() {
    assert_ends(M2PaxosSwitch::RepeatsDecisions, |switches| {
        let mut group = owned(switches, 3);
        let id = group.propose(0, &[1]);
        group.deliver_kinds(&[(0, 1, "Accept"), (1, 0, "AckAccept")]);
        group.lose_all_to(2);
        (100..10_000).step_by(100).any(|ms| {
            (0..3).for_each(|at| group.tick(at, ms));
            group.deliver_all();
            group.order(2).contains(&id)
        })
    });
}
