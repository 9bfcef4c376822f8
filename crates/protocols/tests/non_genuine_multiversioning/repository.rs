//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use muesli_protocols::non_genuine_multiversioning::Everybody;
use proptest::prelude::*;

use crate::two_phase::checkpoint::{happenings, restored_is_the_same};
use crate::two_phase::false_records::{self, changes, members_live, without_pieces};
use crate::two_phase::voter;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(700))]

    #[test]
    fn restore_and_replay_give_the_state_of_the_baselines(script in happenings()) {
        restored_is_the_same::<Everybody>(script)?;
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
        members_live::<Everybody>(&script, &changes, &without_pieces(then))?;
    }
}

#[test]
fn prepares_that_nobody_decides_keep_further_writes_out_at_the_limit() {
    voter::undecided_ones_meet_the_limit::<Everybody>();
}

#[test]
fn contradictions_are_left_out_in_each_protocol() {
    false_records::contradictions_are_left_out::<Everybody>();
}
