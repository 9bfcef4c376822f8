//! The transcripts of TFA.

use std::path::Path;

use test_each_file::test_each_path;

use crate::clusters::cluster;
use crate::harness::transcripts::broken;

test_each_path! {
    for ["txt"] in "crates/protocols/tests/transcripts/tfa" => transcript
}

fn transcript([path]: [&Path; 1]) {
    crate::harness::transcripts::transcript(cluster, path);
}

#[test]
fn without_its_rule_a_script_shows_the_anomaly_and_with_it_does_not() {
    let broken = broken("tfa", "\nnot s", &[]);
    assert_eq!(broken, 19);
}
