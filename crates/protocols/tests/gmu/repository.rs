//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use muesli_protocols::gmu::Vectors;
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, Switches};
use proptest::prelude::*;

use crate::two_phase::checkpoint::{
    changed_pieces, happenings, prepared_transactions_are_missed, restored_is_the_same,
};
use crate::two_phase::false_records::{self, changes, members_live, without_pieces};
use crate::two_phase::voter;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(700))]

    #[test]
    fn restore_and_replay_give_the_state_with_vectors(script in happenings()) {
        restored_is_the_same::<Vectors>(script)?;
    }

    /// Pieces of a real checkpoint with bytes changed, in any order.
    #[test]
    fn changed_pieces_are_refused_or_taken(
        script in happenings(),
        changes in prop::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 0..6),
    ) {
        changed_pieces::<Vectors>(&script, &changes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn members_outlive_false_records(
        script in happenings(),
        changes in changes(),
        then in happenings(),
    ) {
        members_live::<Vectors>(&script, &changes, &without_pieces(then))?;
    }
}

#[test]
fn prepares_that_nobody_decides_keep_further_writes_out_at_the_limit() {
    voter::undecided_ones_meet_the_limit::<Vectors>();
}

#[test]
fn contradictions_are_left_out_in_each_protocol() {
    false_records::contradictions_are_left_out::<Vectors>();
}

#[test]
fn a_checkpoint_without_the_prepared_transactions_is_noticed() {
    let switches = Switches::broken(FamilySwitch::CheckpointPrepared);
    let switches = muesli_protocols::gmu::Switches::default().with_family(switches);
    prepared_transactions_are_missed::<Vectors>(switches);
}
