//! The objects of the thesis: who meets whom, and on how many nodes, is what was asked for.

use std::sync::Arc;

use muesli_core::catalog::{TreePlan, TreeShape};
use muesli_protocols::NAMES;
use muesli_registry::Grouping;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::seeded_run::SeededRun;
use muesli_workloads::simulated::{self, Simulated, SimulatedOutcome};
use muesli_workloads::tally::Tallies;
use muesli_workloads::workload::AnyWorkload;

use super::workloads::assert_checks;

const CLIENTS: u32 = 16;
const NODES: usize = 8;

fn workload(given: &str) -> Arc<dyn AnyWorkload> {
    let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
    available::find("objects").unwrap().build(&given, CLIENTS).unwrap()
}

/// Some transactions on eight nodes where nothing goes wrong.
fn run(protocol: &str, tree: Option<&str>, given: &str) -> SimulatedOutcome {
    let length = Length::Transactions(1_200);
    let tree = tree.map(|shape| TreePlan::from(shape.parse::<TreeShape>().unwrap()));
    let plan = Simulated { tree, ..Simulated::calm(protocol, NODES, 7, length) };
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let outcome = simulated::run(&workload(given), &plan, &tallies).unwrap();
    assert_checks(&outcome.checks, &format!("{protocol}, {given}"));
    assert!(outcome.tally.committed > 1_000, "{protocol}, {given}: {:?}", outcome.tally);
    outcome
}

/// The share of attempts of a run that met a conflict.
fn aborted(protocol: &str, sharing: u32) -> f64 {
    let given = format!("objects=4000 bytes=100 hot=8 sharing={sharing}");
    run(protocol, None, &given).tally.abort_rate()
}

#[test]
fn nobody_conflicts_where_nothing_is_shared_and_more_do_the_more_is() {
    for protocol in ["score", "hierarchy", "hierarchy-locking", "two-phase-commit"] {
        let rates = [0, 10, 50].map(|sharing| aborted(protocol, sharing));
        assert_eq!(rates[0], 0.0, "{protocol}");
        assert!(0.0 < rates[1] && rates[1] < rates[2], "{protocol}: {rates:?}");
    }
}

#[test]
fn the_fewer_nodes_a_transaction_uses_the_fewer_messages_it_takes() {
    let sent = |reach: &str| {
        let outcome = run("hierarchy", Some("4x2"), &format!("objects=4000 bytes=100 {reach}"));
        outcome.messages as f64 / outcome.tally.committed as f64
    };
    let [all, below, own] = ["local=0", "subtree=100", "local=100"].map(sent);
    assert!(own < 0.1, "all is on the client's node: {own} messages a commit");
    assert!(own < below && 2.0 * below < all, "{own}, {below}, {all}");
}

#[test]
fn objects_that_are_too_few_are_refused_before_anything_is_loaded() {
    let length = Length::Transactions(10);
    let plan = Simulated::calm("score", NODES, 7, length);
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let error = simulated::run(&workload("objects=100"), &plan, &tallies).unwrap_err().to_string();
    assert!(error.contains("100 objects leave a client 0 of its own on node 0"), "{error}");
}

#[test]
fn nothing_is_wrong_under_any_protocol_alone_or_in_groups() {
    // As papers print them, and without validation, protocols promise less.
    let is_right = |name: &&str| !(name.ends_with("-printed") || name.ends_with("-unchecked"));
    for (protocol, seed) in NAMES.iter().copied().filter(is_right).zip(1..) {
        // Those that keep their data at several nodes by themselves have no groups.
        let in_groups = muesli_registry::protocol(protocol, Some(Grouping::default())).is_ok();
        for group in [1, 3].into_iter().filter(|group| *group == 1 || in_groups) {
            let seeded_run = SeededRun {
                protocol: protocol.to_owned(),
                group,
                transactions_least: 40,
                ..SeededRun::of(available::find("objects").unwrap())
            };
            let trialled = seeded_run.run(seed, false).unwrap();
            let context = format!("{protocol}, groups of {group}, seed {seed}, {}", trialled.plan);
            assert_eq!(trialled.problems, Vec::<String>::new(), "{context}");
            assert!(trialled.transactions >= 40, "{context}");
        }
    }
}
