//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use muesli_protocols::two_phase_commit::TryLocks;

crate::two_phase::repository_tests!(TryLocks);
