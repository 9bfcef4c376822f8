//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use muesli_protocols::gmu::Vectors;
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, Switches};
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
    let switches = Switches::broken(FamilySwitch::CheckpointPrepared);
    let switches = muesli_protocols::gmu::Switches::default().with_family(switches);
    prepared_transactions_are_missed::<Vectors>(switches);
}
