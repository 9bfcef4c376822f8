//! Scripts of messages that come late, or of other epochs.

use muesli_broadcast::pob::{Pob, PobSwitch, Switches};

use super::{TWO_POSITIONS, assert_needed};
use crate::script::Script;

/// Member 2 accepts a position before it has seen the proposal. With its answer that is final.
#[test]
fn a_late_proposal_does_not_undo_what_was_accepted() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        group.deliver(1, 0, id);
        group.deliver_kind(0, 2, "Accept");
        group.deliver_kind(0, 2, "Propose");
        group.deliver_kind(2, 0, "AckAccept"); // It is final at 1, as member 0 knows.
        [1, 2].into_iter().for_each(|member| group.lose_all(0, member, id));
        group.lose_all(2, 0, id);
        group.recover(1, id);
        group.exchange(1, 2, id);
        group
    };
    let broken = PobSwitch::StatusAdvances;
    let sound = assert_needed(&Switches::default(), broken, TWO_POSITIONS, run);
    assert_eq!(sound.order(2).len(), 1);
}

/// Member 2 has said that it had nothing of a command, in an epoch that was over then. Member 1
/// takes the command over again, and has that answer come first.
#[test]
fn answers_of_earlier_epochs_do_not_count() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        [1, 2].into_iter().for_each(|member| group.lose(0, member, id));
        group.recover(1, id);
        group.deliver(1, 2, id); // The answer stays on its way.
        group.lose(1, 0, id);
        group.recover(0, id);
        group.deliver(0, 2, id);
        group.deliver_kind(2, 0, "Superseded");
        group.recover(0, id);
        for _ in 0..3 {
            group.deliver(0, 2, id);
            group.deliver(2, 0, id);
        } // It is final at 2, as member 0 knows.
        [1, 2].into_iter().for_each(|member| group.lose_all(0, member, id));
        group.recover(1, id);
        group.exchange(1, 2, id);
        group
    };
    let broken = PobSwitch::CountsOneEpoch;
    let sound = assert_needed(&Switches::default(), broken, TWO_POSITIONS, run);
    assert_eq!(sound.order(1).len(), 1);
}

/// Members 1 and 2 have promised not to take anything of the first epoch, in which the command
/// could still be accepted at 1; member 2 may have crashed since.
pub(super) fn accepted_in_an_earlier_epoch(switches: &Switches, crashes: bool) -> Script<Pob> {
    let mut group = Script::<Pob>::new(3, switches);
    let id = group.propose(0, &[1]);
    group.deliver(0, 1, id);
    group.deliver(1, 0, id);
    group.recover(1, id);
    group.deliver(1, 2, id);
    group.deliver(2, 1, id); // It is to be at 2.
    if crashes {
        group.restart(2);
    }
    for _ in 0..2 {
        group.deliver(0, 2, id);
        group.deliver(2, 0, id);
    }
    group.lose_all(0, 2, id);
    group.exchange(1, 2, id);
    group
}

#[test]
fn what_is_said_in_an_epoch_that_is_over_is_refused() {
    let run = |switches: &Switches| accepted_in_an_earlier_epoch(switches, false);
    assert_needed(&Switches::default(), PobSwitch::RefusesEarlier, TWO_POSITIONS, run);
}

/// Members 1 and 2 take a command over at once; member 0 answers both, and member 2 alone has seen
/// other commands.
#[test]
fn two_members_do_not_lead_in_one_epoch() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        [7, 8].into_iter().for_each(|object| _ = group.propose(2, &[object]));
        for member in [1, 2] {
            group.deliver(0, member, id);
            group.lose(member, 0, id);
            group.recover(member, id);
        }
        for _ in 0..2 {
            [1, 2].into_iter().for_each(|member| group.deliver(member, 0, id));
            [1, 2].into_iter().for_each(|member| group.deliver(0, member, id));
        }
        group.deliver_all();
        group
    };
    let broken = PobSwitch::SeparateEpochs;
    let sound = assert_needed(&Switches::default(), broken, TWO_POSITIONS, run);
    assert_eq!(sound.order(0).len(), 3);
}

/// Were one of three enough, its leader would decide a command by itself, and so would who takes it
/// over without it.
#[test]
fn fewer_than_a_majority_decide_nothing() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        group.recover(1, id);
        group.exchange(1, 2, id);
        group
    };
    let sound = assert_needed(&Switches::default(), PobSwitch::Majorities, TWO_POSITIONS, run);
    assert_eq!(sound.order(1).len(), 1);
}
