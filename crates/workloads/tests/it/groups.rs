//! Repositories on groups of three, in worlds where everything goes wrong.

use muesli_sim::fault::FaultKinds;
use muesli_workloads::registry;
use muesli_workloads::trial::Trial;

fn trial(faults: &str) -> Trial {
    Trial {
        transactions_least: 100,
        group: 3,
        faults: faults.parse::<FaultKinds>().unwrap(),
        ..Trial::of(registry::find("bank").unwrap())
    }
}

fn all_hold(faults: &str, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let trialled = trial(faults).run(seed, false).unwrap();
        let problems = trialled.problems.join("\n");
        assert!(problems.is_empty(), "seed {seed}, {}:\n{problems}", trialled.plan);
        assert!(trialled.transactions >= 100);
    }
}

#[test]
fn nothing_goes_wrong_where_nothing_fails() {
    all_hold("none", 1..4);
}

#[test]
fn everything_may_fail() {
    all_hold("all", 1..13);
}

#[test]
fn partitions_move_between_groups() {
    for seed in 1..6 {
        let trial = Trial {
            workload: registry::find("append-procedures").unwrap(),
            parameters: vec!["keys=10".to_owned(), "moving=10".to_owned()],
            protocol: "granola".to_owned(),
            spread: 3,
            ..trial("all")
        };
        let trialled = trial.run(seed, false).unwrap();
        let problems = trialled.problems.join("\n");
        assert!(problems.is_empty(), "seed {seed}, {}:\n{problems}", trialled.plan);
    }
}
