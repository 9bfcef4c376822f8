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

use crate::certified::{PROTOCOLS, is_noticed_in, seeded_run};

/// So many use two accounts at two sites that are near each other, and the last one is far away.
const CLIENTS: u32 = 9;
const FAR: u32 = CLIENTS - 1;
const SITES: &str = "north\nsouth 2\nfar 100 100\n";
/// It loses eight times before it says so, twice more to hold what it reads and to use that, and
/// now and then what it holds is over too soon.
const ATTEMPTS_MOST: u64 = 12;

/// Committed transactions and lost attempts of the client that is far away, and what all committed.
fn far_client(protocol: &str, seed: u64) -> ((u64, u64), u64) {
    let given = ["objects=2", "totals=0", "reads=0"].map(str::to_owned);
    let workload = available::find("bank").unwrap().build(&given, CLIENTS).unwrap();
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let retry = Retry { attempts: u32::MAX, ..MachineModel::measured().retry };
    let geography = Some(Geography::parse(SITES).unwrap());
    let machine = MachineModel { retry, geography, ..MachineModel::measured() };
    let length = Length::Time(Duration::from_secs(60));
    let plan = Simulated::calm(protocol, 3, seed, length);
    run_on(&machine, &workload, &plan, &tallies).unwrap();
    let far = tallies.of(FAR);
    ((far.committed, far.aborted), tallies.total().committed)
}

#[test]
fn who_is_far_from_others_that_write_the_same_keys_commits_in_a_few_attempts() {
    let mut switches = Switches::default();
    switches.set(CertifiedSwitch::LetsLosersThrough, false);
    let name = "certified-starving";
    muesli::register_protocol::<Certified>(name, switches).expect("a name that is free");
    for seed in 1..3 {
        let (with, without) = (far_client("alvin", seed), far_client(name, seed));
        println!("seed {seed}: {with:?} with claims, {without:?} without");
        let ((committed, lost), _) = with;
        assert!(committed >= 10 && lost <= committed * ATTEMPTS_MOST, "{with:?}");
        assert!(without.0.0 * 4 < committed, "{with:?} {without:?}");
    }
}

/// Few accounts and many clients: some of them keep losing.
fn crowded(protocol: &str) -> SeededRun {
    SeededRun { clients: 24, ..seeded_run(protocol, "bank", &["objects=3"]) }
}

#[test]
fn losers_are_let_through_among_faults_and_all_sites_agree() {
    for (place, protocol) in PROTOCOLS.into_iter().enumerate() {
        let mut all = Backgrounds::default();
        for seed in [1, 2].map(|seed| seed + 10 * place as u64) {
            let trialled = crowded(protocol).run(seed, false).unwrap();
            assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol}, seed {seed}");
            trialled.background.iter().for_each(|run| all.add(run));
        }
        assert!(all.of("claimed").unwrap().times > 0, "{protocol}: nobody keeps losing");
    }
}

#[test]
fn losers_without_a_place_among_readers_are_noticed() {
    let broken = (CertifiedSwitch::OrdersLosers, &Switches::default());
    is_noticed_in(broken, crowded("certified-losers-unordered"), 60);
}
