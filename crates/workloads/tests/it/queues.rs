//! Clients that wait for items: nobody sleeps on when there is one.

use std::sync::Arc;

use muesli_core::Protocol;
use muesli_protocols::certified::{self, Certified, CertifiedSwitch};
use muesli_protocols::score::{FamilySwitch, Score, Switches};
use muesli_protocols::sharded::{self, Sharded, ShardedSwitch};
use muesli_protocols::tfa::{self, Tfa};
use muesli_protocols::two_phase::Sabotage;
use muesli_workloads::embedded::Length;
use muesli_workloads::parameters::Values;
use muesli_workloads::queues::{PARAMETERS, QueueCounts, Queues};
use muesli_workloads::simulated::{self, Simulated, SimulatedOutcome, run_protocol};
use muesli_workloads::tally::Tallies;
use muesli_workloads::workload::AnyWorkload;

use crate::workloads::assert_checks;

const CLIENTS: u32 = 6;
const TRANSACTIONS: u64 = 600;

/// Fewer items than clients, so that some always wait.
fn queues() -> Arc<Queues> {
    let given = ["items=2", "capacity=1", "wait=2000"].map(str::to_owned);
    let values = Values::read("queues", PARAMETERS, &given).unwrap();
    Arc::new(Queues::new(&values, CLIENTS).unwrap())
}

fn plan(protocol: &str) -> Simulated {
    Simulated::calm(protocol, 3, 5, Length::Transactions(TRANSACTIONS))
}

fn counts(queues: &Queues, outcome: &SimulatedOutcome, context: &str) -> QueueCounts {
    assert_checks(&outcome.checks, context);
    let counts = queues.counts();
    assert!(counts.taken > TRANSACTIONS / 3, "{context}: {counts:?}");
    counts
}

#[test]
fn who_waits_for_an_item_is_woken_when_there_is_one() {
    for protocol in [
        "score",
        "gmu",
        "bumper",
        "tfa",
        "two-phase-commit",
        "hierarchy-locking",
        "alvin",
        "certified-multipaxos",
        "sharded-multipaxos",
        "sharded-pob",
    ] {
        let queues = queues();
        let workload: Arc<dyn AnyWorkload> = queues.clone();
        let tallies = Arc::new(Tallies::new(CLIENTS));
        let outcome = simulated::run(&workload, &plan(protocol), &tallies).unwrap();
        assert_eq!(counts(&queues, &outcome, protocol).in_vain, 0, "{protocol}");
    }
}

/// How many transactions of two clients with one item waited in vain, over many short runs: in the
/// last one nobody else changes anything any more.
fn in_vain<P: Protocol>((protocol, client_nodes): (&str, usize), switches: &P::Switches) -> u64 {
    let runs = (1..100).map(|seed| {
        let given = ["items=1", "capacity=1", "queues=1"].map(str::to_owned);
        let values = Values::read("queues", PARAMETERS, &given).unwrap();
        let queues = Arc::new(Queues::new(&values, 2).unwrap());
        let workload: Arc<dyn AnyWorkload> = queues.clone();
        let tallies = Arc::new(Tallies::new(2));
        let calm = Simulated::calm(protocol, 3, seed, Length::Transactions(4));
        let plan = Simulated { client_nodes, ..calm };
        let run = run_protocol::<P>(&workload, &plan, switches.clone(), &tallies).unwrap();
        assert_checks(&run.checks, &format!("seed {seed}"));
        queues.counts().in_vain
    });
    runs.sum()
}

/// What changed between the read and the watch wakes nobody then.
#[test]
fn a_watch_that_is_not_compared_sleeps_on() {
    let compared = Switches::default();
    assert_eq!(in_vain::<Score>(("score", 0), &compared), 0);
    assert!(in_vain::<Score>(("score", 0), &compared.without(FamilySwitch::WatchesCompared)) > 0);
    // Where keys move, an owner may give one away before it is asked to watch it.
    let compared = tfa::Switches::default();
    assert_eq!(in_vain::<Tfa>(("tfa", 0), &compared), 0);
    assert!(in_vain::<Tfa>(("tfa", 0), &compared.without(FamilySwitch::WatchesCompared)) > 0);
    // A site reads for its own node at once: nothing comes in between.
    let at_nodes_of_their_own = ("alvin", 2);
    let compared = certified::Switches::default();
    assert_eq!(in_vain::<Certified>(at_nodes_of_their_own, &compared), 0);
    let without = compared.without(CertifiedSwitch::ComparesWatches);
    assert!(in_vain::<Certified>(at_nodes_of_their_own, &without) > 0);
    let compared = sharded::Switches::multipaxos();
    assert_eq!(in_vain::<Sharded>(("sharded-multipaxos", 2), &compared), 0);
    let without = compared.without(ShardedSwitch::ComparesWatches);
    assert!(in_vain::<Sharded>(("sharded-multipaxos", 2), &without) > 0);
}
