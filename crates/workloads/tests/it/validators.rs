//! A node on which validators live is gone: commits go on without it, and do not each wait until
//! their coordinator's patience is over.

use std::sync::Arc;
use std::time::Duration;

use muesli_core::Settings;
use muesli_core::catalog::{TreePlan, TreeShape};
use muesli_sim::plan::Plan;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::simulated::{self, Simulated, Upkeep};
use muesli_workloads::tally::Tallies;

use crate::workloads::assert_checks;

const CLIENTS: u32 = 16;
const RUN_MILLIS: u64 = 700;
const GONE_MILLIS: u64 = 500;

/// How many updates on four nodes commit in the time of a run, where so many keep each repository;
/// two validators of three live on node 4, one on node 5.
fn committed(protocol: &str, group: u16, faults: &str) -> u64 {
    let given = ["objects=400".to_owned(), "bytes=100".to_owned()];
    let workload = available::find("objects").unwrap().build(&given, CLIENTS).unwrap();
    let plan: Plan = format!("horizon {RUN_MILLIS}ms{faults}").parse().unwrap();
    let length = Length::Time(Duration::from_millis(RUN_MILLIS / 2));
    let plan = Simulated {
        plan,
        tree: Some(TreePlan::from("2x2".parse::<TreeShape>().unwrap())),
        validator_nodes: 2,
        logging: true,
        upkeep: Upkeep { group, ..Upkeep::default() },
        ..Simulated::calm(protocol, 4, 7, length)
    };
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let outcome = simulated::run(&workload, &plan, &tallies).unwrap();
    assert_checks(&outcome.checks, &format!("{protocol}{faults}"));
    outcome.in_time.0.committed
}

#[test]
fn commits_over_a_dead_validator_wait_once() {
    let patience = Settings::default().retry_after.as_millis();
    // Of the time in which it is gone, were each commit to wait.
    let waiting = u64::from(CLIENTS) * GONE_MILLIS / patience;
    for protocol in ["hierarchy", "hierarchy-locking"] {
        for group in [1, 3] {
            let calm = committed(protocol, group, "");
            let gone = committed(protocol, group, &format!("; 150ms+{GONE_MILLIS}ms crash n4"));
            let what = format!("{protocol}, groups of {group}");
            println!("{what}: {calm} where it lives, {gone} where it is gone, {waiting} waiting");
            let before = calm * (RUN_MILLIS - GONE_MILLIS) / RUN_MILLIS;
            assert!(gone > before + 4 * waiting, "{what}: {gone} of {calm}");
        }
    }
}
