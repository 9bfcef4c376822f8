//! Scripts of members that crash, and come back with what they have written down.

use muesli_broadcast::pob::{Pob, PobSwitch, Switches};

use super::epochs::accepted_in_an_earlier_epoch;
use super::{TWO_ORDERS, TWO_POSITIONS, assert_needed};
use crate::script::Script;

/// Member 2 has answered in a later epoch, crashes, and is asked to accept in the first one.
#[test]
fn an_epoch_is_written_down_before_it_is_answered() {
    let run = |switches: &Switches| accepted_in_an_earlier_epoch(switches, true);
    assert_needed(&Switches::default(), PobSwitch::WritesEpochs, TWO_POSITIONS, run);
}

/// Member 1 has answered to the proposal of `first`, and crashes. If it has forgotten that, it
/// raises nothing for `second`, and does not name `first` with it.
#[test]
fn an_answer_to_a_proposal_is_written_down() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let first = group.propose(0, &[1]);
        group.deliver(0, 1, first);
        group.deliver(1, 0, first); // It is to be at 1.
        group.restart(1);
        let second = group.propose(2, &[1]);
        group.exchange(2, 1, second);
        group.exchange(0, 1, first);
        group.deliver_all();
        group
    };
    let broken = PobSwitch::WritesProposals;
    let sound = assert_needed(&Switches::default(), broken, TWO_ORDERS, run);
    assert_eq!(sound.order(2).len(), 2);
}

/// With the answer of member 1 a position is final, and of the others only member 1 knows it.
#[test]
fn a_position_that_is_accepted_is_written_down() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        for _ in 0..2 {
            group.deliver(0, 1, id);
            group.deliver(1, 0, id);
        }
        group.lose_all(0, 1, id);
        group.restart(1);
        group.recover(1, id);
        group.exchange(1, 2, id);
        group
    };
    let broken = PobSwitch::WritesAccepted;
    let sound = assert_needed(&Switches::default(), broken, TWO_POSITIONS, run);
    assert_eq!(sound.order(1).len(), 1);
}

/// Member 0 has decided `first` at once, has delivered it, and crashes. Member 1 asks it.
#[test]
fn a_final_position_is_written_down_before_it_is_delivered() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let first = group.propose(0, &[1]);
        group.deliver(0, 2, first);
        group.deliver(2, 0, first);
        assert_eq!(group.order(0), [first]);
        [1, 2].into_iter().for_each(|member| group.lose_all(0, member, first));
        group.restart(0);
        let second = group.propose(1, &[1]);
        group.exchange(1, 2, second);
        group.recover(1, first);
        group.exchange(1, 0, first);
        group.deliver_all();
        group
    };
    let sound = assert_needed(&Switches::fast(), PobSwitch::WritesStable, TWO_ORDERS, run);
    assert_eq!(sound.order(1).len(), 2);
}
