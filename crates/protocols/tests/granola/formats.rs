//! Golden files of formats: messages, records and checkpoints.

use muesli_protocols::granola::Granola;

use crate::clusters::cluster;
use crate::harness::samples;

#[test]
fn bytes_of_this_version_mean_what_they_meant() {
    samples::bytes_mean_what_they_meant::<Granola>(cluster, "granola", None);
}
