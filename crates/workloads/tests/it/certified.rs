//! Commits that are broadcast and certified: they hold among faults, whichever broadcast orders
//! them, and a rule that is broken is noticed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use muesli_protocols::certified::{Certified, CertifiedSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_workloads::available;
use muesli_workloads::seeded_run::SeededRun;

/// All of them.
pub(crate) const PROTOCOLS: [&str; 7] = [
    "alvin",
    "alvin-fast",
    "alvin-eus",
    "certified-epaxos",
    "certified-generalized",
    "certified-m2paxos",
    "certified-multipaxos",
];

pub(crate) fn seeded_run(protocol: &str, workload: &str, parameters: &[&str]) -> SeededRun {
    let workload = available::find(workload).expect("a workload of the product");
    let parameters = parameters.iter().map(|it| (*it).to_owned()).collect();
    SeededRun { protocol: protocol.to_owned(), parameters, ..SeededRun::of(workload) }
}

/// What is wrong with a seed; an assertion of the protocol may notice before a judge does.
pub(crate) fn problems(run: &SeededRun, seed: u64) -> Vec<String> {
    let ran = catch_unwind(AssertUnwindSafe(|| run.run(seed, false).expect("a run")));
    ran.map_or_else(|_| vec!["it panicked".to_owned()], |trialled| trialled.problems)
}

#[test]
fn they_hold_among_faults_whichever_broadcast_orders_them() {
    for (place, protocol) in PROTOCOLS.into_iter().enumerate() {
        let run = seeded_run(protocol, "bank", &[]);
        let seed = 1 + 10 * place as u64;
        assert_eq!(problems(&run, seed), Vec::<String>::new(), "{protocol}, seed {seed}");
    }
}

/// A node loses its disk: it comes back as another member, with a snapshot of another site.
#[test]
fn a_site_that_loses_its_disk_gets_its_data_back() {
    let protocols =
        ["alvin", "alvin-fast", "alvin-eus", "certified-epaxos", "certified-multipaxos"];
    let few = std::env::var("MUESLI_BROADCAST_SEEDS").ok().and_then(|it| it.parse().ok());
    for (place, protocol) in protocols.into_iter().enumerate() {
        let cases = [("loss", "bank"), ("loss,crash,pause", "ycsb")];
        // One for each protocol, unless more is asked for.
        for (kinds, workload) in cases.into_iter().skip(place % 2).take(few.map_or(1, |_| 2)) {
            let run = SeededRun {
                faults: kinds.parse().expect("kinds of faults"),
                ..seeded_run(protocol, workload, &[])
            };
            for seed in (0..few.unwrap_or(1_u64)).map(|seed| seed + 100 * place as u64) {
                let what = format!("{protocol}, {kinds}, {workload}, seed {seed}");
                assert_eq!(problems(&run, seed), Vec::<String>::new(), "{what}");
            }
        }
    }
}

/// Five nodes use three copies; one of them may lose its disk.
#[test]
fn nodes_that_share_a_copy_hold_among_faults() {
    for (protocol, seed) in [("alvin", 200), ("certified-multipaxos", 206)] {
        let run = seeded_run(protocol, "bank", &[]);
        let run = SeededRun { nodes: 5, repositories: Some(3), ..run };
        assert_eq!(problems(&run, seed), Vec::<String>::new(), "{protocol}, seed {seed}");
    }
}

/// A rule that is broken is noticed within so many seeds.
fn is_noticed(
    name: &'static str,
    broken: CertifiedSwitch,
    switches: &Switches,
    (workload, parameters): (&str, &[&str]),
    seeds: u64,
) {
    is_noticed_in((broken, switches), seeded_run(name, workload, parameters), seeds);
}

/// The same, in a run whose protocol is one without that rule.
pub(crate) fn is_noticed_in(
    (broken, switches): (CertifiedSwitch, &Switches),
    run: SeededRun,
    seeds: u64,
) {
    let mut switches = switches.clone();
    switches.set(broken, false);
    let name: &'static str = run.protocol.clone().leak();
    muesli::register_protocol::<Certified>(name, switches).expect("a name that is free");
    let found = (0..seeds).find(|&seed| !problems(&run, seed).is_empty());
    println!("without {broken:?}: seed {found:?}");
    assert!(found.is_some(), "without {broken:?}, {seeds} seeds are fine");
}

#[test]
fn conflicting_commands_that_are_decided_together_are_noticed() {
    let broken = (CertifiedSwitch::DecidesApart, &Switches::default());
    let run = seeded_run("certified-together", "append-procedures", &["keys=2", "length=40"]);
    is_noticed_in(broken, SeededRun { parallel: 8, clients: 24, ..run }, 40);
}

/// What is checked at the end is checked at every site: where these differ, one may be right.
#[test]
fn sites_that_have_come_to_differ_are_noticed_at_each_of_them() {
    let mut switches = Switches::default();
    switches.set(CertifiedSwitch::DecidesApart, false);
    let name = "certified-differing";
    muesli::register_protocol::<Certified>(name, switches).expect("a name that is free");
    let run = seeded_run(name, "append-procedures", &["keys=2", "length=40"]);
    let run = SeededRun { parallel: 8, clients: 24, ..run };
    let elsewhere = |problem: &String| problem.contains("at every other site");
    let found = (0..40).find(|seed| problems(&run, *seed).iter().any(elsewhere));
    assert!(found.is_some(), "no site differs from the first one");
}

#[test]
fn a_site_that_guesses_how_a_commit_of_another_one_ended_is_noticed() {
    let broken = (CertifiedSwitch::AnswersWhatItKnows, &Switches::default());
    let run = seeded_run("certified-guessing", "bank", &[]);
    let faults = "crash,partition,pause".parse().expect("kinds of faults");
    is_noticed_in(broken, SeededRun { faults, client_nodes: Some(2), ..run }, 40);
}

#[test]
fn a_commit_that_is_not_validated_is_noticed() {
    let broken = CertifiedSwitch::Validates;
    is_noticed("certified-blindly", broken, &Switches::default(), ("bank", &[]), 4);
}

#[test]
fn ranges_that_are_not_validated_are_noticed() {
    let broken = CertifiedSwitch::ValidatesRanges;
    let scans = ("ycsb", &["workload=s"][..]);
    is_noticed("certified-with-phantoms", broken, &Switches::default(), scans, 20);
}

#[test]
fn reads_that_are_of_several_moments_are_noticed() {
    let broken = CertifiedSwitch::ReadsAtSnapshot;
    is_noticed("certified-torn", broken, &Switches::alvin_eus(), ("bank", &[]), 20);
}

#[test]
fn readers_that_are_not_broadcast_are_noticed_where_commits_have_a_partial_order() {
    let broken = CertifiedSwitch::BroadcastsReads;
    is_noticed("certified-reading-alone", broken, &Switches::default(), ("bank", &[]), 20);
}

#[test]
fn versions_that_go_while_somebody_reads_are_noticed() {
    let broken = CertifiedSwitch::KeepsReaders;
    is_noticed("certified-forgetful", broken, &Switches::alvin_eus(), ("bank", &[]), 20);
}

#[test]
fn a_key_that_was_there_in_between_is_noticed_where_deletions_are_not_counted() {
    let broken = CertifiedSwitch::CountsDeletions;
    let queues = ("skiplist", &["objects=8", "initial=4"][..]);
    is_noticed("certified-absent-again", broken, &Switches::default(), queues, 60);
}
