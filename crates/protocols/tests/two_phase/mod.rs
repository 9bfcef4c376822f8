//! What the programs of the protocols with two phases have in common.

#![allow(dead_code, reason = "no protocol needs all of it")]

pub mod checkpoint;
pub mod checkpoint_page;
pub mod exploring;
pub mod false_records;
pub mod nested;
pub mod server;
mod subject;
pub mod switches;
pub mod voter;

/// What each protocol's repositories are tested for: checkpoints, records that a lying member made
/// up, and the limit of what is prepared.
macro_rules! repository_tests {
    ($variant:ty) => {
        proptest::proptest! {
            #![proptest_config(proptest::prelude::ProptestConfig::with_cases(700))]

            #[test]
            fn restore_and_replay_give_the_state(
                script in crate::two_phase::checkpoint::happenings(),
            ) {
                crate::two_phase::checkpoint::restored_is_the_same::<$variant>(script)?;
            }

            /// Pieces of a real checkpoint with bytes changed, in any order.
            #[test]
            fn changed_pieces_are_refused_or_taken(
                script in crate::two_phase::checkpoint::happenings(),
                changes in crate::two_phase::checkpoint::changed_bytes(),
            ) {
                crate::two_phase::checkpoint::changed_pieces::<$variant>(&script, &changes);
            }
        }

        proptest::proptest! {
            #![proptest_config(proptest::prelude::ProptestConfig::with_cases(600))]

            #[test]
            fn members_outlive_false_records(
                script in crate::two_phase::checkpoint::happenings(),
                changes in crate::two_phase::false_records::changes(),
                then in crate::two_phase::checkpoint::happenings(),
            ) {
                let then = crate::two_phase::false_records::without_pieces(then);
                let live = crate::two_phase::false_records::members_live::<$variant>;
                live(&script, &changes, &then)?;
            }
        }

        #[test]
        fn prepares_that_nobody_decides_keep_further_writes_out_at_the_limit() {
            crate::two_phase::voter::undecided_ones_meet_the_limit::<$variant>();
        }

        #[test]
        fn contradictions_are_left_out_in_each_protocol() {
            crate::two_phase::false_records::contradictions_are_left_out::<$variant>();
        }
    };
}

pub(crate) use repository_tests;
