//! Transactions that keep losing under certification claim what they read, and are let through.

use std::sync::Arc;
use std::time::Duration;

use muesli::Retry;
use muesli_protocols::certified::{Certified, CertifiedSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_workloads::available;
use muesli_workloads::background::Backgrounds;
use muesli_workloads::embedded::Length;
use muesli_workloads::geography::Geography;
use muesli_workloads::machines::MachineModel;
use muesli_workloads::seeded_run::SeededRun;
use muesli_workloads::simulated::{Simulated, run_on};
use muesli_workloads::tally::Tallies;

use crate::certified::{PROTOCOLS, seeded_run};

/// So many use two accounts at three sites, of which one is far away.
const CLIENTS: u32 = 9;
const SITES: &str = "north\nsouth 2\nfar 100 100\n";
/// How much each client commits, and how often all lose.
fn committed(protocol: &str, seed: u64) -> (Vec<u64>, u64) {
    let given = ["objects=2", "totals=0", "reads=0"].map(str::to_owned);
    let workload = available::find("bank").unwrap().build(&given, CLIENTS).unwrap();
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let retry = Retry { attempts: u32::MAX, ..MachineModel::measured().retry };
    let geography = Some(Geography::parse(SITES).unwrap());
    let machine = MachineModel { retry, geography, ..MachineModel::measured() };
    let length = Length::Time(Duration::from_secs(30));
    let plan = Simulated::calm(protocol, 3, seed, length);
    run_on(&machine, &workload, &plan, &tallies).unwrap();
    let each = (0..CLIENTS).map(|client| tallies.of(client).committed).collect();
    (each, tallies.total().aborted)
}

/// Whoever has begun goes on, and others lose: which ones depends on the seed.
#[test]
fn everybody_commits_where_all_write_the_same_keys() {
    let mut switches = Switches::default();
    switches.set(CertifiedSwitch::LetsLosersThrough, false);
    let name = "certified-starving";
    muesli::register_protocol::<Certified>(name, switches).expect("a name that is free");
    for seed in 1..4 {
        let (with, without) = (committed("alvin", seed), committed(name, seed));
        println!("seed {seed}: {with:?} with claims, {without:?} without");
        let least = |(each, _): &(Vec<u64>, u64)| *each.iter().min().unwrap();
        assert!(least(&with) >= 10, "{with:?}");
        assert!(least(&without) * 4 < least(&with), "{with:?} {without:?}");
    }
}

/// Few accounts and many clients: some of them keep losing.
fn crowded(protocol: &str) -> SeededRun {
    SeededRun { clients: 24, ..seeded_run(protocol, "bank", &["objects=3"]) }
}

#[test]
fn losers_are_let_through_among_faults_and_all_sites_agree() {
    for (place, protocol) in PROTOCOLS.into_iter().enumerate() {
        let (mut all, seed) = (Backgrounds::default(), 1 + 10 * place as u64);
        let trialled = crowded(protocol).run(seed, false).unwrap();
        assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol}, seed {seed}");
        trialled.background.iter().for_each(|run| all.add(run));
        assert!(all.of("claimed").unwrap().times > 0, "{protocol}: nobody keeps losing");
    }
}
