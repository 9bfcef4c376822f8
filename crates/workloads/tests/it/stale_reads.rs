//! Read-only transactions that say how stale what they see may be: the checker judges that they see
//! all that had ended before that, and a rule that is broken is noticed.

use muesli_protocols::certified::{CertifiedSwitch, Switches};
use muesli_protocols::sharded::{self, Sharded, ShardedSwitch};
use muesli_protocols::two_phase::Sabotage as _;
use muesli_workloads::seeded_run::SeededRun;

use crate::certified::{PROTOCOLS, is_noticed_in, problems, seeded_run};

/// A run whose readers may be stale; where all transactions are strict none is.
fn stale(protocol: &str, workload: &str, parameters: &[&str]) -> SeededRun {
    SeededRun { strict: Some(false), ..seeded_run(protocol, workload, parameters) }
}

#[test]
fn readers_see_what_had_ended_before_their_bound() {
    // Under `score` they are strict.
    let protocols = PROTOCOLS.into_iter().chain(["score", "sharded-pob", "sharded-multipaxos"]);
    let bounds = ["stale=5", "stale=40", "stale=300"];
    for (place, protocol) in protocols.enumerate() {
        let run = stale(protocol, "bank", &[bounds[place % bounds.len()], "reads=70"]);
        let seed = 1 + 10 * place as u64;
        assert_eq!(problems(&run, seed), Vec::<String>::new(), "{protocol}, seed {seed}");
    }
}

#[test]
fn a_site_that_loses_its_disk_has_no_cut_and_numbers_as_the_others_do() {
    let run = SeededRun {
        faults: "loss,crash,pause".parse().expect("kinds of faults"),
        ..stale("alvin", "bank", &["stale=20"])
    };
    for seed in 0..2 {
        assert_eq!(problems(&run, seed), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn a_shard_that_says_what_its_clock_was_long_ago_is_noticed() {
    let mut switches = sharded::Switches::pob();
    switches.set(ShardedSwitch::BoundsStaleness, false);
    let name = "sharded-stale";
    muesli::register_protocol::<Sharded>(name, switches).expect("a name that is free");
    let run = stale(name, "bank", &["stale=20", "reads=70"]);
    let found = (0..20).find(|&seed| !problems(&run, seed).is_empty());
    assert!(found.is_some(), "twenty seeds are fine");
}

/// Without a rule of `alvin` some seed has a problem.
fn is_noticed(name: &str, broken: CertifiedSwitch, parameters: &[&str], seeds: u64) {
    is_noticed_in((broken, &Switches::default()), stale(name, "bank", parameters), seeds);
}

#[test]
fn a_cut_that_counts_as_of_its_delivery_is_noticed() {
    let broken = CertifiedSwitch::CountsCutsFromProposal;
    is_noticed("certified-late-cuts", broken, &["stale=1", "reads=70"], 40);
}

#[test]
fn a_session_that_reads_before_its_own_commit_is_noticed() {
    let broken = CertifiedSwitch::CutsFollowSessions;
    is_noticed("certified-forgetting-sessions", broken, &["stale=300"], 20);
}

#[test]
fn commits_behind_a_cut_that_are_numbered_as_before_it_are_noticed() {
    let broken = CertifiedSwitch::NumbersBehindCuts;
    is_noticed("certified-numbers-apart", broken, &["stale=300", "objects=400"], 60);
}
