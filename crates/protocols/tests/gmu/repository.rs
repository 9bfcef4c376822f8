//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use muesli_protocols::gmu::Vectors;
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, Switches};

use crate::two_phase::checkpoint::prepared_transactions_are_missed;

crate::two_phase::repository_tests!(Vectors);

#[test]
fn a_checkpoint_without_the_prepared_transactions_is_noticed() {
    let switches = Switches::broken(FamilySwitch::CheckpointPrepared);
    let switches = muesli_protocols::gmu::Switches::default().with_family(switches);
    prepared_transactions_are_missed::<Vectors>(switches);
}
