//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use muesli_protocols::gmu::Vectors;
use muesli_protocols::two_phase::{FamilySwitch, Rules, Sabotage};
use proptest::prelude::*;

use crate::two_phase::checkpoint::{changed_pieces, happenings, prepared_transactions_are_missed};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(700))]

    /// Pieces of a real checkpoint with bytes changed, in any order.
    #[test]
    fn changed_pieces_are_refused_or_taken(
        script in happenings(),
        changes in prop::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 0..6),
    ) {
        changed_pieces::<Vectors>(&script, &changes);
    }
}

crate::two_phase::repository_tests!(Vectors);

#[test]
fn a_checkpoint_without_the_prepared_transactions_is_noticed() {
    let rules = Rules::broken(FamilySwitch::CheckpointPrepared);
    let rules = muesli_protocols::gmu::Rules::default().with_family(rules);
    prepared_transactions_are_missed::<Vectors>(rules);
}
