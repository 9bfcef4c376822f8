//! The transcripts of SCORe.

use std::path::Path;

use test_each_file::test_each_path;

use crate::clusters::cluster;
use crate::harness::transcripts::{broken, scripts};

test_each_path! { for ["txt"] in "crates/protocols/tests/transcripts/score" => transcript }

fn transcript([path]: [&Path; 1]) {
    crate::harness::transcripts::transcript(cluster, path);
}

#[test]
fn without_its_rule_a_script_shows_the_anomaly_and_with_it_does_not() {
    let broken = broken("score", "not serializable: ", &[]);
    assert_eq!(broken, 9, "one for each of eight rules, and one without floors");
}

#[test]
fn every_trap_has_its_script() {
    let scripts = scripts("score");
    for trap in 'a'..='n' {
        let named = |name: &str| name.starts_with(&format!("trap_{trap}_"));
        assert!(scripts.iter().any(|(name, _)| named(name)), "no script for trap {trap}");
    }
}
