//! The workloads in one-round transactions, embedded and simulated: their checks hold, and so do
//! their histories.

use std::sync::Arc;

use muesli::Options;
use muesli_sim::time::Span;
use muesli_workloads::history;
use muesli_workloads::simulated::{Simulated, SimulatedOutcome, Upkeep, run};
use muesli_workloads::tally::Tallies;
use serde_json::Map;

use super::workloads::{
    CLIENTS, assert_checks, assert_serializable, drawn, embedded_run, workload,
};

const CASES: &[(&str, &str)] = &[
    ("counter-procedures", "distributed=50 conflicts=30 reads=20"),
    ("counter-procedures", "distributed=60 participants=3 work=10 keys=3 coordinated=50 full=90"),
    ("append-procedures", "keys=5 length=20"),
    ("append-procedures", "keys=5 length=20 moving=10"),
    ("tpcc-procedures", "keys=100 warehouses=4 districts=3 remote-items=20 remote-payments=40"),
    ("tpcc-procedures", "keys=20 payment=40 delivery=20 new-order=40 rollbacks=20 home=any"),
    ("tpcc-procedures", "keys=20 warehouses=3 districts=2 columns=rows home=any"),
    ("tpcc-procedures", "keys=20 warehouses=3 districts=2 remote-items=20 procedures=plans"),
    ("retwis", "users=12 follows=3 community=6 refused=5 ties=30"),
    ("epinions", "users=12 items=6 communities=2 mixing=20"),
    ("tpcw", "items=12 customers=6 communities=2 mixing=20 refused=10 recounts=50"),
    ("auctionmark", "users=6 items=3 communities=2 mixing=20 refused=10 ends=10"),
];

const PROTOCOLS: [&str; 3] = ["granola", "granola-locking", "sinfonia"];

#[test]
fn every_workload_is_right_in_a_process() {
    for protocol in PROTOCOLS {
        for case in CASES {
            let options = Options { protocol: protocol.to_owned(), ..Options::default() };
            embedded_run(case, options, &format!("{protocol}, {case:?}"));
        }
    }
}

fn simulated(case: &(&str, &str), protocol: &str, seed: u64, kinds: &str) -> SimulatedOutcome {
    judged(case, Simulated { protocol: protocol.to_owned(), replicas: 1, ..drawn(seed, kinds) })
}

fn judged(case: &(&str, &str), plan: Simulated) -> SimulatedOutcome {
    let (protocol, seed) = (&plan.protocol, plan.seed);
    let (workload, context) =
        (workload(case), format!("{protocol}, {case:?}, seed {seed}, {}", plan.plan));
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let outcome = run(&workload, &plan, &tallies).unwrap();
    assert_checks(&outcome.checks, &context);
    assert!(outcome.tally.ended() >= 200, "{context}");
    assert_serializable(&outcome.run.history(Map::new()).unwrap(), &context);
    if let Some(lists) = workload.history() {
        assert_serializable(&history::by_lists(&lists, Map::new()).unwrap(), &context);
    }
    outcome
}

#[test]
fn lists_are_right_where_procedures_are_run_together() {
    for protocol in ["granola", "granola-passing", "alvin", "certified-multipaxos"] {
        let parallel = (0..6).map(|seed| {
            let calm = drawn(seed, if seed < 3 { "none" } else { "all" });
            let upkeep = Upkeep { parallel: 4, ..calm.upkeep };
            let (protocol, pause_most) = (protocol.to_owned(), Span::ZERO);
            let plan = Simulated { protocol, upkeep, pause_most, replicas: 1, ..calm };
            judged(&("append-procedures", "keys=30 length=20"), plan).run.modes.parallel
        });
        let parallel: u64 = parallel.sum();
        println!("{protocol}: {parallel} were run together");
        assert!(parallel > 100, "{protocol}: only {parallel} were run together");
    }
}

#[test]
fn every_workload_is_right_in_the_simulator_under_faults() {
    for (place, protocol) in PROTOCOLS.iter().enumerate() {
        for (seed, case) in (place as u64 * 10..).zip(CASES) {
            simulated(case, protocol, seed, "none");
            simulated(case, protocol, seed, "all");
        }
    }
}
