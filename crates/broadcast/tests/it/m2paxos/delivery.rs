//! Interleavings in which what is decided is delivered in the wrong order, twice, or never, where a
//! switch is broken.

use std::panic::{AssertUnwindSafe, catch_unwind};

use muesli_broadcast::CommandId;
use muesli_broadcast::m2paxos::message::ObjectSlot;
use muesli_broadcast::m2paxos::{M2Paxos, M2PaxosSwitch, Switches};
use muesli_core::sabotage::Sabotage as _;

use super::progress::{assert_ends, delivers_without, owned, partly_placed};
use crate::script::Script;

/// Where a command is decided at an object, as a member knows it.
fn slot_of(group: &Script<M2Paxos>, at: usize, id: CommandId, object: u64) -> Option<u64> {
    let mut decided = group.members[at].decided();
    let found = decided.find(|(place, value)| place.object == object && *value == Some(id));
    found.map(|(ObjectSlot { slot, .. }, _)| slot)
}

/// Of three commands of objects 1 and 2, 1 and 2, and 2, the first comes before the second at one
/// object and after it at the other one, as the third took its place there; whether both are
/// delivered.
fn with_cycle(switches: &Switches) -> (Script<M2Paxos>, bool) {
    let (mut group, first) = partly_placed(switches);
    group.tick(2, 200);
    let second = group.propose(2, &[1, 2]);
    let ends = delivers_without(0, &mut group, 300, &[first, second]);
    let slots = [first, second].map(|id| [1, 2].map(|object| slot_of(&group, 1, id, object)));
    assert_eq!(slots, [[Some(2), Some(4)], [Some(3), Some(3)]], "it is no cycle");
    (group, ends)
}

/// The printed delivery waits for ever (algorithm 5, line 12).
#[test]
fn commands_that_come_before_each_other_are_delivered() {
    assert_ends(M2PaxosSwitch::DeliversCycles, |switches| {
        let (group, ends) = with_cycle(switches);
        assert_eq!(group.violation(), None);
        ends
    });
}

/// The same, and all members deliver them in one order.
#[test]
fn commands_that_come_before_each_other_are_delivered_in_one_order() {
    let (group, ends) = with_cycle(&Switches::broken(M2PaxosSwitch::OrdersCycles));
    assert!(ends && group.violation().is_some(), "{:?} {:?}", group.order(1), group.order(2));
}

/// Of two commands of an owner a member does not know what the first one says, or not even where it
/// is.
#[test]
fn a_command_waits_for_those_before_it() {
    let run = |switches: &Switches, knows_where: bool| {
        let mut group = owned(switches, 3);
        let unknown = group.propose(0, &[1]);
        group.lose(0, 1, unknown);
        group.propose(0, &[1]);
        (0..2).for_each(|_| group.deliver_kinds(&[(0, 2, "Accept"), (2, 0, "AckAccept")]));
        match knows_where {
            true => group.deliver_kinds(&[(0, 1, "Decide"), (0, 1, "Decide")]),
            false => group.lose_next(0, 1, "Decide"),
        }
        group.deliver_kinds(&[(0, 1, "Accept"), (0, 1, "Decide")]);
        group.violation()
    };
    let cases = [(M2PaxosSwitch::AwaitsAncestors, true), (M2PaxosSwitch::AwaitsPrefix, false)];
    for (switch, knows_where) in cases {
        assert_eq!(run(&Switches::default(), knows_where), None);
        let violation = run(&Switches::broken(switch), knows_where);
        assert_eq!(violation.as_deref(), Some("0 has m0-2 before m0-3, and 1 has not"));
    }
}

/// A command is decided at a second place as well, as its owner had asked
/// for that place before somebody else brought it to another one.
#[test]
fn a_command_at_two_places_is_delivered_once() {
    let run = |switches: &Switches| {
        let mut group = Script::<M2Paxos>::new(3, switches);
        group.propose(1, &[1]);
        group.deliver_all();
        let lost = group.propose(1, &[1]);
        let twice = group.propose(2, &[1]);
        group.deliver(2, 1, twice);
        for id in [lost, twice] {
            [0, 2].into_iter().for_each(|to| group.lose(1, to, id));
        } // Member 1 alone has accepted these, at the second and the third place.
        group.tick(2, 500);
        group.deliver_kinds(&[(2, 0, "Prepare"), (0, 2, "Promise")]);
        group.deliver_kinds(&[(2, 0, "Accept"), (0, 2, "AckAccept"), (2, 1, "Decide")]);
        ["Prepare", "Accept"].iter().for_each(|kind| _ = group.lose_kind(2, 1, kind));
        let last = group.propose(0, &[1]);
        group.lose(0, 2, last);
        group.tick(0, 1_000);
        group.lose_kind(0, 2, "Prepare");
        group.deliver_kinds(&[(0, 1, "Prepare"), (1, 0, "Promise")]);
        group.deliver_all();
        assert_eq!(group.violation(), None);
        assert_eq!(group.order(0)[1..], [twice, lost, last]);
    };
    run(&Switches::default());
    let broken = Switches::broken(M2PaxosSwitch::DeliversOnce);
    let failed = catch_unwind(AssertUnwindSafe(|| run(&broken))).expect_err("it is of no use");
    let failed = failed.downcast_ref::<String>().expect("a message");
    assert!(failed.contains("m2-1 is delivered once"), "{failed}");
}
