//! Every workload, small, embedded and simulated: its checks hold, and so does its history.

use std::sync::Arc;
use std::time::Duration;

use muesli::{Db, Error, Options, SpaceOptions};
use muesli_check::{Level, check};
use muesli_sim::plan::PlanShape;
use muesli_sim::plan::fault::{FaultKind, FaultKinds};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_workloads::check::Check;
use muesli_workloads::embedded::{self, Embedded, Length};
use muesli_workloads::machines::MachineModel;
use muesli_workloads::simulated::{self, Simulated, SimulatedOutcome};
use muesli_workloads::tally::{Ended, Tallies};
use muesli_workloads::workload::{AnyWorkload, Seat, Workload};
use muesli_workloads::{available, history};
use serde_json::Map;

const CASES: &[(&str, &str)] = &[
    ("bank", "objects=20 reads=30 totals=10 write-all=2 calls=2"),
    ("bank", "objects=30 theta=0.9 overdraft=true locality=50"),
    ("bank", "objects=40 initial=100 amount=50 hot=3 hot-share=50"),
    ("bank", "objects=64 disjoint=true"),
    ("ycsb", "workload=a keys=30 fields=2 field-length=10"),
    ("ycsb", "workload=b keys=30 distribution=hotspot"),
    ("ycsb", "workload=c keys=30 distribution=exponential"),
    ("ycsb", "workload=d keys=30 fields=2"),
    ("ycsb", "workload=e keys=50 fields=1 scan=10"),
    ("ycsb", "workload=f keys=30 distribution=uniform"),
    ("ycsb", "workload=t keys=64 theta=0.7 fields=1"),
    ("ycsb", "workload=t keys=60 one-by-one=true reader-reads=1 groups=0 fields=1"),
    ("ycsb", "workload=t keys=60 reads=2 writes=1 disjoint=true fields=1"),
    ("ycsb", "workload=s keys=64 fields=1 reads=8"),
    ("tpcc", "keys=30 pending=60"),
    ("tpcc", "keys=100 warehouses=3 districts=3 remote-items=30 home=any delayed=false"),
    ("tpcc", "keys=20 districts=2 mix=gmu placement=hash item-copies=true"),
    ("tpcc", "keys=20 payment=40 delivery=20 new-order=40 rollbacks=20 home=node"),
    ("tpcc", "keys=50 districts=2 names=3 balance=apart lookups=each warehouses=3"),
    ("tpcc", "keys=50 districts=2 names=2 balance=apart delayed=false payment=50 delivery=50"),
    ("loan", "objects=30 reads=30 totals=10"),
    ("loan", "objects=24 group=12 lenders=6 calls=2"),
    ("skiplist", "objects=40 initial=20 levels=4 walks=5"),
    ("skiplist", "objects=60 rule=random calls=3 structures=2"),
    ("list", "objects=30 walks=5"),
    ("hashtable", "objects=40 buckets=7 walks=5"),
    ("hashtable", "objects=40 buckets=11 rule=random calls=2"),
    ("tree", "objects=40 walks=5 rule=random"),
    ("counters", "objects=20 hot=2"),
    ("counters", "objects=20 hot=3 hot-calls=2 delayed=true"),
    ("queues", "items=4"),
    ("queues", "items=2 queues=2 capacity=1"),
    ("vacation", "keys=20 users=70"),
    ("vacation", "keys=10 users=60 units=2 reads=20"),
    ("vacation", "keys=20 users=60 delayed=true"),
    ("home-lists", "homes=3 keys=40 initial=15 remote=40"),
    ("home-lists", "homes=2 keys=20 initial=8 remote=30 structure=list"),
    ("home-ycsb", "homes=3 keys=6 remote=40"),
    ("home-ycsb", "homes=3 keys=6 update=put"),
    ("home-vacation", "homes=3 keys=4 users=70 remote=40 reads=30"),
    ("home-vacation", "homes=2 keys=3 units=3 reads=20 delayed=false"),
    ("append", "keys=5 length=20"),
    ("append", "keys=20 distribution=zipfian appends=80"),
    ("objects", "objects=160 bytes=40 updates=4 local=20 subtree=20 siblings=2"),
    ("objects", "objects=90 bytes=30 updates=3 reads=2 blind=30 readonly=20 sharing=60 hot=3"),
    ("objects", "objects=90 updates=3 reads=1 blind=50 sharing=100 hot=5 one-by-one=false"),
    ("bank", "objects=30 calls=2 interface=objects totals=5 write-all=2"),
    ("bank", "objects=30 calls=2 interface=objects nesting=closed"),
    ("loan", "objects=30 interface=objects nesting=closed"),
    ("list", "objects=30 walks=5 interface=objects rule=random calls=2"),
    ("hashtable", "objects=40 buckets=7 walks=5 interface=objects rule=random calls=2"),
    ("counters", "objects=20 hot=2 reads=20 interface=objects"),
    ("skiplist", "objects=40 levels=4 walks=5 interface=objects rule=random calls=2 again=30"),
    ("tree", "objects=40 walks=5 interface=objects rule=random calls=2 again=30"),
    ("bank", "objects=30 calls=2 totals=5 pairs=true"),
    ("counters", "objects=20 hot=3 hot-calls=2 totals=10"),
];

pub const CLIENTS: u32 = 6;

pub fn workload(case: &(&str, &str)) -> Arc<dyn AnyWorkload> {
    let given: Vec<String> = case.1.split(' ').map(str::to_owned).collect();
    available::find(case.0).unwrap().build(&given, CLIENTS).unwrap()
}

pub fn assert_checks(checks: &[Check], context: &str) {
    assert!(checks.len() >= 2, "{context}: {checks:?}");
    for check in checks {
        assert!(check.ok, "{context}: {check:?}");
    }
}

pub fn assert_serializable(history: &muesli_check::History, context: &str) {
    let options = muesli_check::Options { session_order: true, ..Default::default() };
    let verdict = check(history, Level::Serializable, &options);
    assert!(verdict.holds(), "{context}: {verdict}");
    assert!(verdict.stats.committed > 100, "{context}: {:?}", verdict.stats);
}

/// A run on two loops of this process with four repositories: its checks hold, and its histories
/// are serializable.
pub fn embedded_run(case: &(&str, &str), options: Options, context: &str) -> embedded::Outcome {
    let workload = workload(case);
    let options = Options { repositories: 4, loops: 2, history: true, ..options };
    let length = Length::Transactions(600);
    let plan =
        Embedded { options, warm_up: Duration::from_millis(5), length, seed: 5, strict: false };
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let outcome = embedded::run(&workload, &plan, &tallies).unwrap();
    assert_checks(&outcome.checks, context);
    assert_eq!(outcome.tally.ended(), 600, "{context}");
    assert!(outcome.tally.committed > 300, "{context}: {:?}", outcome.tally);
    let recorded = history::by_versions(&outcome.reports, &outcome.catalog, Map::new());
    assert_serializable(&recorded.unwrap(), context);
    if let Some(lists) = workload.history() {
        assert_serializable(&history::by_lists(&lists, Map::new()).unwrap(), context);
    }
    outcome
}

#[test]
fn every_workload_is_right_in_a_process() {
    for case in CASES {
        let context = format!("{case:?}");
        let outcome = embedded_run(case, Options { replicas: 2, ..Options::default() }, &context);
        let all: u64 = outcome.reports.iter().map(|report| report.messages).sum();
        assert!(0 < outcome.messages && outcome.messages < all, "{context}: {all}");
    }
}

/// A simulated run whose faults are drawn from its seed.
pub fn drawn(seed: u64, kinds: &str) -> Simulated {
    let horizon = VirtualTime::ZERO + Span::from_millis(300);
    // Each node's data are on its own disk alone: none may be lost.
    let kinds = kinds.parse::<FaultKinds>().unwrap().without(FaultKind::Loss);
    let shape =
        PlanShape { nodes: 3, clients: CLIENTS + 1, horizon, kinds, trees: 0, faults_max: 5 };
    Simulated {
        repositories: 4,
        replicas: 2,
        partitions_per_repository: 1 + seed as usize % 3,
        plan: shape.draw(Seed::new(seed)),
        transactions_least: 200,
        pause_most: Span::from_millis(4),
        logging: true,
        history: true,
        ..Simulated::calm("score", 3, seed, Length::Time(Duration::from_millis(1)))
    }
}

fn simulated(case: &(&str, &str), seed: u64, kinds: &str) -> SimulatedOutcome {
    let plan = drawn(seed, kinds);
    let (workload, context) = (workload(case), format!("{case:?}, seed {seed}, {}", plan.plan));
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let outcome = simulated::run(&workload, &plan, &tallies).unwrap();
    assert_checks(&outcome.checks, &context);
    assert!(outcome.tally.ended() >= 200, "{context}");
    assert!(0 < outcome.messages && outcome.messages < outcome.run.messages, "{context}");
    let observe_all =
        || outcome.run.hosts.iter().all(|host| host.transactions().all(|txn| txn.end.is_some()));
    assert!(kinds != "none" || observe_all(), "{context}: clients are not told");
    let recorded = outcome.run.history(Map::new());
    assert_serializable(&recorded.unwrap(), &context);
    if let Some(lists) = workload.history() {
        assert_serializable(&history::by_lists(&lists, Map::new()).unwrap(), &context);
    }
    outcome
}

#[test]
fn every_workload_is_right_in_the_simulator_under_faults() {
    for (seed, case) in (0..).zip(CASES) {
        simulated(case, seed, "none");
        simulated(case, seed, "all");
    }
}

#[test]
fn a_simulated_run_repeats_to_the_byte() {
    for case in [&CASES[0], &CASES[7], &CASES[11], &CASES[12], &CASES[16]] {
        let (first, second) = (simulated(case, 9, "all"), simulated(case, 9, "all"));
        assert_eq!(first.run.digest, second.run.digest, "{case:?}");
        assert_eq!(first.tally.committed, second.tally.committed);
        assert_ne!(first.run.digest, simulated(case, 10, "all").run.digest);
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let refused = |protocol: &str, nodes, repositories, replicas| {
        let calm = Simulated::calm(protocol, nodes, 1, Length::Transactions(10));
        let plan = Simulated { repositories, replicas, ..calm };
        let tallies = Arc::new(Tallies::new(1));
        simulated::run(&workload(&CASES[0]), &plan, &tallies).unwrap_err().to_string()
    };
    assert!(refused("paxos", 1, 1, 1).contains("there are: score"));
    assert!(refused("score", 2, 2, 3).contains("allowed are 1 to 2"));
    assert!(refused("score", 0, 2, 1).contains("1 to 2"));
    assert!(refused("score", 3, 2, 1).contains("1 to 2"));
}

#[test]
fn clients_begin_though_what_was_loaded_is_not_everywhere_yet() {
    let case = ("ycsb", "workload=a keys=30 fields=1 distribution=uniform");
    for seed in 0..40 {
        let length = Length::Time(Duration::from_millis(4));
        let plan = Simulated { replicas: 2, ..Simulated::calm("rr", 3, seed, length) };
        let tallies = Arc::new(Tallies::new(CLIENTS));
        let machine = MachineModel::cloud_tm();
        let outcome = simulated::run_on(&machine, &workload(&case), &plan, &tallies).unwrap();
        for client in 0..CLIENTS {
            let tally = tallies.of(client);
            assert!(tally.committed > 0, "seed {seed}, client {client}: {:?}", tally.unexpected);
        }
        assert!(outcome.tally.unexpected.is_none(), "seed {seed}: {:?}", outcome.tally);
    }
}

/// A workload whose clients fail before their first transaction.
struct CannotBegin;

impl Workload for CannotBegin {
    type Memory = ();

    fn spaces(&self, _: usize) -> Vec<(&'static str, SpaceOptions)> {
        Vec::new()
    }

    async fn load(&self, _: &Db) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<(), Error> {
        seat.db.space("nowhere").map(drop)
    }

    async fn transact(&self, _: &mut Seat, (): &mut ()) -> (Ended, u32) {
        (Ended::Committed, 1)
    }

    async fn check(&self, _: &Db) -> Result<Vec<Check>, Error> {
        Ok(Vec::new())
    }
}

#[test]
fn a_client_that_cannot_begin_is_told_of() {
    let tallies = Arc::new(Tallies::new(2));
    let workload: Arc<dyn AnyWorkload> = Arc::new(CannotBegin);
    let outcome = simulated::run(&workload, &drawn(1, "none"), &tallies).unwrap();
    let context = outcome.checks.iter().find(|check| !check.ok).map(|check| check.details.clone());
    assert!(context.as_ref().is_some_and(|context| context.contains("nowhere")), "{context:?}");
}
