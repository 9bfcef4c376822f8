//! Repositories on groups of three, in worlds where everything goes wrong.

use muesli_sim::plan::fault::FaultKinds;
use muesli_workloads::available;
use muesli_workloads::seeded_run::SeededRun;

fn seeded_run(faults: &str) -> SeededRun {
    SeededRun {
        transactions_least: 100,
        group: 3,
        faults: faults.parse::<FaultKinds>().unwrap(),
        ..SeededRun::of(available::find("bank").unwrap())
    }
}

fn all_hold(faults: &str, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let trialled = seeded_run(faults).run(seed, false).unwrap();
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
        let seeded_run = SeededRun {
            workload: available::find("append-procedures").unwrap(),
            parameters: vec!["keys=10".to_owned(), "moving=10".to_owned()],
            protocol: "granola".to_owned(),
            partitions_per_repository: 3,
            ..seeded_run("all")
        };
        let trialled = seeded_run.run(seed, false).unwrap();
        let problems = trialled.problems.join("\n");
        assert!(problems.is_empty(), "seed {seed}, {}:\n{problems}", trialled.plan);
    }
}

/// Clients that servers do not know before are told who leads, and are answered.
#[test]
fn clients_come_and_go() {
    let searches = [("score", "bank"), ("gmu", "bank"), ("bumper", "bank"), ("2pc", "bank")];
    for (protocol, workload) in searches.into_iter().chain([("granola", "append-procedures")]) {
        for (faults, seed) in [("none", 1), ("all", 2), ("all", 3)] {
            let seeded_run = SeededRun {
                protocol: protocol.to_owned(),
                client_nodes: Some(2),
                visiting: Some(true),
                transactions_least: 100,
                group: 3,
                faults: faults.parse::<FaultKinds>().unwrap(),
                ..SeededRun::of(available::find(workload).unwrap())
            };
            let trialled = seeded_run.run(seed, false).unwrap();
            let problems = trialled.problems.join("\n");
            assert!(problems.is_empty(), "{protocol}, {seed}, {}:\n{problems}", trialled.plan);
            assert!(trialled.transactions >= 100, "{protocol}, {seed}");
        }
    }
}

#[test]
fn nodes_have_members_of_several_groups_or_of_none() {
    for (repositories, seed) in [(1, 1), (9, 2)] {
        let seeded_run = SeededRun { repositories: Some(repositories), ..seeded_run("all") };
        let trialled = seeded_run.run(seed, false).unwrap();
        let problems = trialled.problems.join("\n");
        assert!(problems.is_empty(), "seed {seed}, {}:\n{problems}", trialled.plan);
        assert!(trialled.transactions >= 100);
    }
}

/// One member has the state in memory, of long ago, and nobody the entries that it lacks; another
/// one has the newest state on its disk alone. That one does not wait for the first.
#[test]
fn a_state_of_before_the_others_logs_keeps_nobody_waiting() {
    let plan = "horizon 687ms; 42061us+401570us break n0 n2; 268476us+3073us lose n1";
    let seeded_run = SeededRun {
        protocol: "hierarchy".to_owned(),
        nodes: 4,
        clients: 8,
        transactions_least: 300,
        plan: Some(plan.parse().unwrap()),
        ..seeded_run("all")
    };
    let trialled = seeded_run.run(106_435_882, false).unwrap();
    assert!(trialled.problems.is_empty(), "{}", trialled.problems.join("\n"));
}
