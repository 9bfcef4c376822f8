//! The transcripts of sharded protocols.

use std::path::Path;

use test_each_file::test_each_path;

use crate::clusters::cluster;
use crate::harness::transcripts::broken;

test_each_path! { for ["txt"] in "crates/protocols/tests/transcripts/sharded" => transcript }

fn transcript([path]: [&Path; 1]) {
    crate::harness::transcripts::transcript(cluster, path);
}

#[test]
fn without_its_rule_a_script_shows_the_anomaly_and_with_it_does_not() {
    let broken = broken("sharded", "not serializable: ", &[]);
    let all =
        "a cycle, a late one, half of a transaction, a torn snapshot, an old one, and one twice";
    assert_eq!(broken, 6, "{all}");
}
