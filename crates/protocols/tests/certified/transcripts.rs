//! The transcripts of certified protocols.

use std::path::Path;

use test_each_file::test_each_path;

use crate::clusters::cluster;
use crate::harness::transcripts::broken;

test_each_path! { for ["txt"] in "crates/protocols/tests/transcripts/certified" => transcript }

fn transcript([path]: [&Path; 1]) {
    crate::harness::transcripts::transcript(cluster, path);
}

#[test]
fn without_its_rule_a_script_shows_the_anomaly_and_with_it_does_not() {
    let broken = broken("certified", "not serializable: ", &[]);
    let what = "a lost update, a phantom, two orders, a session's own commit, a late cut, two \
                commits that were aborted, and one that was at other sites";
    assert_eq!(broken, 8, "{what}");
}
