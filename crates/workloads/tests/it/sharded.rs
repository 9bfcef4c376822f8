//! Data split over shards: transactions over several hold among faults, whichever broadcast orders
//! each shard, and a rule that is broken is noticed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use muesli_protocols::sharded::{Sharded, ShardedSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_workloads::available;
use muesli_workloads::seeded_run::SeededRun;

fn seeded_run(protocol: &str, workload: &str, parameters: &[&str]) -> SeededRun {
    let workload = available::find(workload).expect("a workload of the product");
    let parameters = parameters.iter().map(|it| (*it).to_owned()).collect();
    SeededRun { protocol: protocol.to_owned(), parameters, ..SeededRun::of(workload) }
}

/// What is wrong with a seed; an assertion of the protocol may notice before a judge does.
fn problems(run: &SeededRun, seed: u64) -> Vec<String> {
    let ran = catch_unwind(AssertUnwindSafe(|| run.run(seed, false).expect("a run")));
    ran.map_or_else(|_| vec!["it panicked".to_owned()], |trialled| trialled.problems)
}

#[test]
fn they_hold_among_faults_whichever_broadcast_orders_a_shard() {
    let protocols = [
        "sharded-epaxos",
        "sharded-generalized",
        "sharded-m2paxos",
        "sharded-multipaxos",
        "sharded-pob",
    ];
    for (place, protocol) in protocols.into_iter().enumerate() {
        let run = seeded_run(protocol, "bank", &[]);
        let seed = 1 + 10 * place as u64;
        assert_eq!(problems(&run, seed), Vec::<String>::new(), "{protocol}, seed {seed}");
    }
}

/// A rule that is broken is noticed within so many seeds.
fn is_noticed(
    name: &'static str,
    broken: ShardedSwitch,
    (workload, parameters): (&str, &[&str]),
    seeds: u64,
) {
    let mut switches = Switches::multipaxos();
    switches.set(broken, false);
    muesli::register_protocol::<Sharded>(name, switches).expect("a name that is free");
    let run = seeded_run(name, workload, parameters);
    let found = (0..seeds).find(|&seed| !problems(&run, seed).is_empty());
    assert!(found.is_some(), "without {broken:?}, {seeds} seeds are fine");
}

#[test]
fn shards_that_order_alone_are_noticed() {
    is_noticed("sharded-alone", ShardedSwitch::OneTimestamp, ("bank", &[]), 10);
}

#[test]
fn transactions_that_do_not_wait_for_lower_proposals_are_noticed() {
    is_noticed("sharded-hasty", ShardedSwitch::WaitsForProposals, ("bank", &[]), 10);
}

#[test]
fn votes_that_are_not_counted_are_noticed() {
    is_noticed("sharded-in-halves", ShardedSwitch::CountsVotes, ("bank", &[]), 10);
}

#[test]
fn reads_that_do_not_wait_are_noticed() {
    is_noticed("sharded-torn", ShardedSwitch::ReadsWait, ("bank", &[]), 10);
}

#[test]
fn commits_that_are_not_validated_are_noticed() {
    is_noticed("sharded-blindly", ShardedSwitch::Validates, ("bank", &[]), 10);
}

#[test]
fn ranges_that_are_not_validated_are_noticed() {
    let scans = ("ycsb", &["workload=s"][..]);
    is_noticed("sharded-with-phantoms", ShardedSwitch::ValidatesRanges, scans, 20);
}

#[test]
fn a_key_that_was_there_in_between_is_noticed_where_deletions_are_not_counted() {
    let queues = ("skiplist", &["objects=8", "initial=4"][..]);
    is_noticed("sharded-absent-again", ShardedSwitch::CountsDeletions, queues, 60);
}

#[test]
fn versions_that_go_while_somebody_reads_are_noticed() {
    is_noticed("sharded-forgetful", ShardedSwitch::KeepsReaders, ("bank", &[]), 20);
}

#[test]
fn transactions_that_are_prepared_twice_are_noticed() {
    is_noticed("sharded-twice", ShardedSwitch::PreparesOnce, ("bank", &[]), 20);
}
