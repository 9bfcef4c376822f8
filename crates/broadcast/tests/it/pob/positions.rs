//! Scripts of how members come to a position, and of what they name with it.

use muesli_broadcast::pob::{Pob, PobSwitch, Switches};
use muesli_core::sabotage::Sabotage as _;

use super::{TWO_ORDERS, assert_needed};
use crate::script::Script;

/// Member 1 has the second command final at 1, and is asked about the first one at 1. The first one
/// would come before the second, by its name, and the second one does not name it.
#[test]
fn a_position_that_another_command_has_is_raised() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let second = group.propose(1, &[1]);
        group.exchange(1, 2, second);
        let first = group.propose(0, &[1]);
        group.exchange(0, 1, first);
        group.deliver_all();
        group
    };
    for switch in [PobSwitch::RaisesEqual, PobSwitch::TakesHighest] {
        let sound = assert_needed(&Switches::default(), switch, TWO_ORDERS, run);
        assert_eq!(sound.order(0).len(), 2);
    }
}

/// Member 0 has delivered a command at 1 when it proposes another one, of which nobody else need
/// know better.
#[test]
fn a_leader_proposes_a_position_above_all_that_it_has_seen() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let before = group.propose(1, &[1]);
        group.exchange(1, 0, before);
        let after = group.propose(0, &[1]);
        group.exchange(0, 2, after);
        group.deliver_all();
        group
    };
    let sound = assert_needed(&Switches::default(), PobSwitch::ProposesAbove, TWO_ORDERS, run);
    assert_eq!(sound.order(2).len(), 2);
}

/// A proposal that stays as it is can be agreed with.
#[test]
fn a_proposal_that_nothing_is_in_the_way_of_is_decided_after_one_exchange() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.deliver(0, 2, id);
        group.deliver(2, 0, id);
        let at_once = group.order(0).len();
        group.deliver_all();
        assert_eq!(group.order(1).len(), 1);
        at_once
    };
    assert_eq!(run(&Switches::fast()), 1);
    assert_eq!(run(&Switches::fast().without(PobSwitch::KeepsProposed)), 0);
}

/// Member 0 decides a command at once with member 2, which alone of the two knows the other one.
#[test]
fn an_answer_names_what_is_known_to_conflict() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let before = group.propose(1, &[1]);
        group.exchange(1, 2, before);
        group.propose(0, &[7]);
        let after = group.propose(0, &[1]);
        group.deliver(0, 2, after);
        group.deliver(2, 0, after);
        assert!(group.members[0].final_position(after).is_some(), "two of three agree");
        group.deliver_all();
        group
    };
    for switch in [PobSwitch::AnswersComplete, PobSwitch::AwaitsDependencies] {
        let sound = assert_needed(&Switches::fast(), switch, TWO_ORDERS, run);
        assert_eq!(sound.order(0).len(), 3);
    }
}

/// Of five members that live, the last one met `first` before `second`, and its answer to
/// the proposal of `second` was not counted. Another member had `second` raised above `first`.
#[test]
fn who_accepts_names_what_it_knew_at_the_proposal() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(5, switches);
        // Nobody else knows what raises the second one to 5.
        [7, 8, 9, 1].into_iter().for_each(|object| _ = group.propose(1, &[object]));
        let first = group.propose(3, &[1]);
        group.deliver(3, 4, first);
        let second = group.propose(0, &[1]);
        [1, 2, 4].into_iter().for_each(|member| group.deliver(0, member, second));
        [1, 2].into_iter().for_each(|member| group.deliver(member, 0, second));
        group.deliver(3, 2, first);
        [2, 4].into_iter().for_each(|member| group.deliver(member, 3, first));
        // The first one is to be at 2, the second one at 5; member 4 accepts that last.
        group.deliver(0, 1, second);
        group.deliver(1, 0, second);
        group.deliver(0, 4, second);
        [0, 1].into_iter().for_each(|_| group.deliver(4, 0, second));
        assert_eq!(group.members[0].final_position(second).map(|it| it.0), Some(5));
        [2, 4].into_iter().for_each(|member| group.exchange(3, member, first));
        group.lose_all(3, 0, first);
        group.deliver_all();
        group.recover(0, first);
        group.deliver_all();
        group
    };
    for switch in
        [PobSwitch::AcceptsEarlier, PobSwitch::AnnouncesAnswers, PobSwitch::AcceptsComplete]
    {
        let sound = assert_needed(&Switches::default(), switch, TWO_ORDERS, run);
        assert!((0..5).all(|at| sound.order(at).len() == 6), "all are delivered");
    }
}

/// Two members each raise the command of the other to 2, and name it. Nothing is lost.
#[test]
fn of_two_commands_at_one_position_one_comes_first() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let first = group.propose(0, &[1]);
        group.deliver(0, 2, first);
        let second = group.propose(1, &[1]);
        group.deliver(0, 1, first);
        group.deliver(1, 0, first);
        group.deliver(1, 2, second);
        group.deliver(2, 1, second);
        group.deliver_all();
        let finals = [first, second].map(|id| group.members[2].final_position(id).map(|it| it.0));
        assert_eq!(finals, [Some(2), Some(2)]);
        assert_eq!(group.violation(), None);
        group.order(2).to_vec()
    };
    assert_eq!(run(&Switches::default()).len(), 2);
    assert_eq!(run(&Switches::broken(PobSwitch::TieBreak)), []);
}

/// Nobody sees to a command that a member has forgotten, if one that has not delivered it comes to
/// another one.
#[test]
fn who_has_forgotten_what_another_lacks_names_it_no_more() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let before = group.propose(0, &[1]);
        group.exchange(0, 1, before);
        group.tick(0, 1_000);
        let after = group.propose(0, &[1]);
        group.exchange(0, 2, after);
        group
    };
    for switch in [PobSwitch::CollectsDelivered, PobSwitch::KeepsConflicts] {
        let sound = assert_needed(&Switches::default(), switch, TWO_ORDERS, run);
        assert_eq!(sound.order(2).len(), 0, "it waits for what it lacks");
    }
}
