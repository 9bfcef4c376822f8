//! Scripts of decisions at once.

use muesli_broadcast::MemberId;
use muesli_broadcast::pob::{Pob, PobSwitch, Switches};
use muesli_core::sabotage::Sabotage as _;

use super::{TWO_ORDERS, TWO_POSITIONS, assert_needed};
use crate::script::Script;
use crate::simulation::{Faults, seeds, simulate};

/// Member 0 has decided with member 2, one of the two that are asked. A majority of these would
/// have to be both.
#[test]
fn as_many_are_enough_as_may_be_left_of_a_fast_quorum() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.deliver(0, 2, id);
        group.deliver(2, 0, id);
        group.lose_all(0, 2, id);
        group.lose_all(0, 1, id);
        group.recover(2, id);
        group.exchange(2, 1, id);
        group
    };
    for switch in [PobSwitch::FewAgree, PobSwitch::FastRecovery] {
        let sound = assert_needed(&Switches::fast(), switch, TWO_POSITIONS, run);
        assert_eq!(sound.order(1).len(), 1);
    }
}

/// Member 2 suspects member 0 without reason, which has delivered `first`.
#[test]
fn what_was_decided_at_once_stays_before_what_comes_after() {
    let orders = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let first = group.propose(0, &[1]);
        group.deliver(0, 2, first);
        group.deliver(2, 0, first);
        [1, 2].into_iter().for_each(|member| group.lose_all(0, member, first));
        let second = group.propose(1, &[1]);
        group.deliver(1, 2, second);
        group.deliver(2, 1, second); // It is to be at 2.
        group.recover(2, first);
        group.exchange(2, 1, first);
        group.deliver_all();
        [0, 1, 2].map(|at| group.order(at).iter().map(|id| id.leader.0).collect::<Vec<_>>())
    };
    assert_eq!(orders(&Switches::fast()), [[0, 1], [0, 1], [0, 1]]);
    let broken = Switches::fast().without(PobSwitch::FastRecovery);
    assert_eq!(orders(&broken), [[0, 1], [1, 0], [1, 0]]);
}

/// One of three that are asked agrees with the leader of `first`; the other two have `second`
/// final, which does not name it.
#[test]
fn fewer_than_may_be_left_of_a_fast_quorum_are_not_enough() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(5, switches);
        let first = group.propose(0, &[1]);
        group.deliver(0, 1, first);
        group.propose(4, &[7]);
        let second = group.propose(4, &[1]);
        for member in [2, 3] {
            group.deliver(4, member, second);
            group.deliver(member, 4, second);
        }
        group.tick(4, 1_000); // It waits no more for a fourth answer.
        [2, 3].into_iter().for_each(|member| group.exchange(4, member, second));
        assert_eq!(group.order(3).len(), 1);
        group.recover(1, first);
        for _ in 0..4 {
            [2, 3].into_iter().for_each(|member| group.exchange(1, member, first));
        }
        group.deliver_all();
        group
    };
    let sound = assert_needed(&Switches::fast(), PobSwitch::EnoughAgree, TWO_ORDERS, run);
    assert_eq!(sound.order(0).len(), 3);
}

/// Member 1 has raised the position with which member 2 agrees; a position is kept that nobody
/// decided.
#[test]
fn who_has_raised_a_position_does_not_agree() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        group.propose(1, &[1]);
        let id = group.propose(0, &[1]);
        group.deliver(0, 2, id);
        group.deliver(2, 0, id); // It is final at 1, as member 0 knows.
        group.deliver(0, 1, id); // Member 1 has it at 2.
        group.recover(1, id);
        group.exchange(1, 2, id);
        group
    };
    assert_needed(&Switches::fast(), PobSwitch::AgreesWithLeader, TWO_POSITIONS, run);
}

/// Nobody but its leader knows `first`, and members 1 and 2 have delivered `second`.
#[test]
fn a_leader_that_is_asked_has_not_decided() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let first = group.propose(0, &[1]);
        [1, 2].into_iter().for_each(|member| group.lose(0, member, first));
        group.propose(1, &[7]);
        let second = group.propose(1, &[1]);
        group.exchange(1, 2, second);
        assert_eq!(group.order(2), [second]);
        group.recover(2, first);
        group.exchange(2, 0, first);
        group.deliver_all();
        group
    };
    let sound = assert_needed(&Switches::fast(), PobSwitch::LeaderAmongAsked, TWO_ORDERS, run);
    assert_eq!(sound.order(0).len(), 3);
}

/// Member 1 takes the command over, and member 2 agrees with its position. Who takes it over next
/// keeps none but that of the first epoch.
#[test]
fn later_epochs_do_not_decide_at_once() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        group.propose(1, &[1]);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id); // Member 1 does not agree.
        group.recover(1, id);
        for _ in 0..2 {
            group.deliver(1, 2, id);
            group.deliver(2, 1, id);
        }
        [0, 2].into_iter().for_each(|member| group.lose_all(1, member, id));
        group.lose_all(0, 2, id);
        group.recover(2, id);
        group.exchange(2, 0, id);
        group
    };
    assert_needed(&Switches::fast(), PobSwitch::FastInFirst, TWO_POSITIONS, run);
}

/// Member 1 has raised the position.
#[test]
fn a_position_that_was_raised_is_not_decided_at_once() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        group.propose(1, &[1]);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        group.deliver(1, 0, id);
        group.lose_all(0, 1, id);
        group.lose_all(0, 2, id);
        group.recover(1, id);
        group.exchange(1, 2, id);
        group
    };
    assert_needed(&Switches::fast(), PobSwitch::FastUnanimous, TWO_POSITIONS, run);
}

/// Three of five decide at once; then four must be asked.
#[test]
fn a_majority_can_decide_at_once_where_more_are_asked() {
    let mut group = Script::<Pob>::new(5, &Switches::fast_majority());
    let id = group.propose(0, &[1]);
    for member in [1, 2] {
        group.deliver(0, member, id);
        group.deliver(member, 0, id);
    }
    assert_eq!(group.order(0), [id]);
    (1..5).for_each(|member| group.lose_all(0, member, id));
    group.recover(4, id);
    for member in [3, 2] {
        group.deliver(4, member, id);
        group.deliver(member, 4, id);
    }
    group.lose_all(4, 0, id);
    assert!(group.order(4).is_empty(), "three of five know too little");
    group.deliver(4, 1, id);
    group.deliver(1, 4, id);
    (0..2).for_each(|_| (1..4).for_each(|member| group.exchange(4, member, id)));
    assert_eq!(group.order(4), [id]);
    assert_eq!(group.violation(), None);
}

/// With one dead member, or none, everything is ordered.
#[test]
fn groups_whose_majorities_decide_at_once_deliver_everything_in_one_order() {
    for (members, dead) in [(3, 0), (3, 1), (5, 0), (5, 1), (7, 1)] {
        for seed in seeds(5) {
            let faults = Faults { dead, ..Faults::of(members) };
            let found = simulate::<Pob>(seed, &faults, &Switches::fast_majority(), Pob::known);
            found.assert_sound(members, seed, dead);
        }
    }
}

/// With two of five dead what one of them has begun stands still.
#[test]
fn where_majorities_decide_at_once_two_dead_of_five_are_too_many() {
    let run = |switches: &Switches, dead: &[u16]| {
        let mut group = Script::<Pob>::new(5, switches);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        for second in 1..200 {
            for at in (0..5).filter(|at| !dead.contains(at)) {
                group.tick(at, second * 1_000);
            }
            dead.iter().for_each(|member| group.lose_all_to(*member));
            group.lose_all(0, 2, id);
            group.lose_all(0, 3, id);
            group.lose_all(0, 4, id);
            group.deliver_all();
        }
        assert_eq!(group.violation(), None);
        let known = group.members[1].delivered();
        assert!(known.len() <= 1 && known.iter().all(|it| it.leader == MemberId(0)));
        known.len()
    };
    assert_eq!(run(&Switches::fast_majority(), &[0]), 1);
    assert_eq!(run(&Switches::fast_majority(), &[0, 4]), 0);
    assert_eq!(run(&Switches::fast(), &[0, 4]), 1);
}
