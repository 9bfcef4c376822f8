//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use muesli_protocols::tfa::OwnedObjects;

crate::two_phase::repository_tests!(OwnedObjects);
