//! Golden files of formats: messages and records.

use muesli_protocols::sharded::Sharded;

use crate::clusters::cluster;
use crate::harness::samples;

#[test]
fn bytes_of_this_version_mean_what_they_meant() {
    samples::bytes_mean_what_they_meant::<Sharded>(cluster, "sharded", None);
}
