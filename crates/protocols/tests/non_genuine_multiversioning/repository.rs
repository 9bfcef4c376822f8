//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use muesli_protocols::non_genuine_multiversioning::Everybody;

crate::two_phase::repository_tests!(Everybody);
