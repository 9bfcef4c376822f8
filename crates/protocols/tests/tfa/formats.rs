//! Golden files of formats: messages, records and checkpoints.

use muesli_protocols::tfa::{OwnedObjects, Tfa};

use crate::clusters::cluster;
use crate::harness::samples;
use crate::two_phase::checkpoint_page;

#[test]
fn bytes_of_this_version_mean_what_they_meant() {
    samples::bytes_mean_what_they_meant::<Tfa>(cluster, "tfa", None);
}

#[test]
fn checkpoints_of_protocols_with_two_phases_are_as_they_were() {
    checkpoint_page::of_two_phases::<OwnedObjects>();
}
