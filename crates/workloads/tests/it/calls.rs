//! What the benchmarks of nested transactions have in common: `objects`, `calls`, `reads` and
//! `length` mean the same in all of them.

use std::sync::Arc;
use std::time::Duration;

use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::simulated::{self, Simulated, SimulatedOutcome};
use muesli_workloads::tally::Tallies;

use crate::workloads::assert_checks;

const CLIENTS: u32 = 4;
/// All of them, with parameters that leave out what makes no calls, and what rolls back.
const WORKLOADS: &[(&str, &str)] = &[
    ("bank", "totals=0 overdraft=true"),
    ("loan", "totals=0"),
    ("list", "walks=0 rule=random initial=10"),
    ("skiplist", "walks=0 rule=random initial=10"),
    ("hashtable", "walks=0 rule=random buckets=7"),
    ("tree", "walks=0 rule=random initial=10"),
    ("counters", "hot=4"),
];

fn parameters(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn run(workload: &str, given: &str) -> SimulatedOutcome {
    let workload = available::find(workload).unwrap();
    let built = workload.build(&parameters(given), CLIENTS).unwrap();
    let plan = Simulated::calm("score", 2, 3, Length::Transactions(60));
    let outcome = simulated::run(&built, &plan, &Arc::new(Tallies::new(CLIENTS))).unwrap();
    assert_checks(&outcome.checks, given);
    outcome
}

#[test]
fn each_has_the_parameters_that_they_have_in_common() {
    for (name, _) in WORKLOADS {
        let workload = available::find(name).unwrap();
        for parameter in ["objects", "calls", "reads", "length", "nesting"] {
            assert!(workload.takes(parameter), "{name}: {parameter}");
        }
        for retired in ["keys", "operations", "outer", "inner"] {
            assert!(!workload.takes(retired), "{name}: {retired}");
        }
    }
}

#[test]
fn a_transaction_takes_its_length_at_least() {
    for (name, own) in WORKLOADS {
        let nestings = ["flat", "closed", "open"];
        let takes_open = !["bank", "loan"].contains(name);
        for nesting in nestings.into_iter().filter(|it| *it != "open" || takes_open) {
            let patience = if takes_open { "patience=200" } else { "" };
            let given =
                format!("objects=40 calls=2 length=30 reads=40 nesting={nesting} {patience} {own}");
            let outcome = run(name, &given);
            // The histogram keeps three digits.
            let least = Duration::from_nanos(outcome.tally.latency.min());
            assert!(least >= Duration::from_micros(29_900), "{name} {given}: {least:?}");
        }
    }
}

#[test]
fn without_a_length_nobody_waits() {
    for (name, own) in WORKLOADS {
        let outcome = run(name, &format!("objects=40 calls=2 reads=40 {own}"));
        let least = Duration::from_nanos(outcome.tally.latency.min());
        assert!(least < Duration::from_millis(5), "{name}: {least:?}");
    }
}

#[test]
fn who_only_reads_changes_nothing_and_is_in_nobodys_way() {
    for (name, own) in WORKLOADS {
        let outcome = run(name, &format!("objects=40 calls=2 reads=100 {own}"));
        assert_eq!(outcome.tally.aborted, 0, "{name}");
        assert!(outcome.tally.committed >= 60, "{name}: {:?}", outcome.tally);
    }
}

#[test]
fn what_does_not_go_together_is_refused_and_why() {
    for (name, given, expected) in [
        ("bank", "objects=5 calls=3", "calls=3 needs 6 different objects"),
        ("bank", "reads=100", "reads, totals and write-all make 101 %, over 100 %"),
        ("bank", "interface=objects delayed=true", "delayed=true needs interface=rows"),
        ("bank", "keys=5", "bank has no parameter `keys`; it has: objects, initial"),
        ("bank", "length=-1", "`length` cannot be `-1`: allowed are numbers from 0"),
        ("bank", "calls=0", "`calls` cannot be `0`: allowed are whole numbers from 1 to 1000"),
        ("loan", "objects=5 group=6", "group must be 5 to 5 where there are 4 lenders"),
        ("loan", "reads=60 totals=60", "reads and totals make 120 %"),
        ("list", "objects=5 calls=6", "calls=6 needs 6 different objects"),
        ("tree", "reads=60 walks=60", "reads and walks make 120 %"),
        ("skiplist", "length=90 calls=3 nesting=open", "a part takes 30 ms is taken for abandoned"),
        ("counters", "objects=3 calls=4", "calls=4 needs 4 different objects"),
        ("counters", "hot=1 hot-calls=2", "hot-calls=2 needs 2 different objects"),
        ("counters", "calls=0 hot-calls=0", "calls and hot-calls are both 0"),
        ("counters", "interface=objects delayed=true", "needs interface=rows"),
    ] {
        let built = available::find(name).unwrap().build(&parameters(given), CLIENTS);
        let error = built.err().unwrap_or_else(|| panic!("{name} {given} is taken")).to_string();
        assert!(error.contains(expected), "{name} {given}: {error}");
    }
}
