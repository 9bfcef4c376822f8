//! Workloads whose transactions have parts, in each model of nesting, among faults.

use std::sync::Arc;
use std::time::Duration;

use muesli_sim::plan::fault::FaultKinds;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::seeded_run::SeededRun;
use muesli_workloads::simulated::{self, Simulated};
use muesli_workloads::tally::Tallies;

use crate::workloads::assert_checks;

/// Workloads of whose parts no inverse is known, made so small that parts are run again.
pub const PARTED: &[(&str, &str)] = &[
    ("vacation", "keys=8"),
    ("vacation", "keys=8 delayed=true"),
    ("ycsb", "workload=t keys=32 reads=6"),
    ("ycsb", "workload=s keys=32 reads=6 ranges=3"),
    ("tpcc", "keys=20 warehouses=1 districts=2"),
    ("append", "keys=6"),
    ("queues", "queues=2"),
    ("objects", "objects=12 bytes=64 updates=3 reads=2 sharing=100 hot=3"),
    ("home-lists", "homes=2 keys=16"),
    ("home-ycsb", "homes=2 keys=4"),
    ("home-vacation", "homes=2 keys=4 delayed=false"),
];

fn run(workload: &str, given: &str, protocol: &str, seed: u64) -> Vec<String> {
    let seeded_run = SeededRun {
        protocol: protocol.to_owned(),
        parameters: given.split(' ').map(str::to_owned).collect(),
        faults: FaultKinds::all(),
        transactions_least: 150,
        ..SeededRun::of(available::find(workload).unwrap())
    };
    seeded_run.run(seed, false).unwrap().problems
}

/// What each did holds, and its history is judged as any other.
#[test]
fn parts_leave_what_their_transactions_promise_in_every_model() {
    let mut seed = 0;
    for (workload, given) in PARTED {
        for (model, protocol) in [("closed", "tfa"), ("checkpoints", "score"), ("auto", "tfa")] {
            seed += 1;
            let given = format!("{given} nesting={model}");
            let problems = run(workload, &given, protocol, seed);
            assert_eq!(problems, Vec::<String>::new(), "{protocol} {workload} {given} {seed}");
        }
    }
}

fn refusal(workload: &str, given: &str) -> String {
    let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
    match available::find(workload).unwrap().build(&given, 4) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{workload} takes {given:?}"),
    }
}

/// Who has no parts says so and what there is.
#[test]
fn what_a_workload_cannot_do_with_its_parts_is_refused() {
    for one_round in ["tpcc-procedures", "append-procedures", "counter-procedures"] {
        let text = refusal(one_round, "nesting=closed");
        assert!(text.contains("has no parameter `nesting`; it has:"), "{one_round}: {text}");
    }
    let text = refusal("ycsb", "workload=a nesting=closed");
    assert!(text.contains("needs workload=t or s"), "{text}");
    let text = refusal("ycsb", "workload=s keys=32 reads=16 ranges=3");
    assert!(text.contains("ranges=3 is more than there are: 2 of 16 keys"), "{text}");
    let text = refusal("bank", "nesting=open write-all=1");
    assert!(text.contains("write-all needs nesting=flat, closed or checkpoints"), "{text}");
    let text = refusal("bank", "objects=5000 calls=501 nesting=auto-open");
    assert!(text.contains("1002 parts") && text.contains("1000 at most"), "{text}");
    let text = refusal("loan", "lenders=9 calls=7 nesting=open");
    assert!(text.contains("1001 parts"), "{text}");
    let text = refusal("bank", "length=30 nesting=open patience=20");
    assert!(text.contains("give more patience"), "{text}");
}

/// Commits a second of a hash table on two nodes with four clients each, and what was chosen.
fn measured(nesting: &str) -> (f64, Vec<String>) {
    const CLIENTS: u32 = 8;
    let given = format!(
        "objects=1000 initial=500 buckets=64 calls=2 reads=20 walks=0 rule=random length=60 \
         patience=500 nesting={nesting}"
    );
    let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
    let workload = available::find("hashtable").unwrap().build(&given, CLIENTS).unwrap();
    let length = Length::Time(Duration::from_secs(10));
    let warm_up = Duration::from_secs(25);
    let plan = Simulated { warm_up, ..Simulated::calm("score", 2, 1, length) };
    let outcome = simulated::run(&workload, &plan, &Arc::new(Tallies::new(CLIENTS))).unwrap();
    assert_checks(&outcome.checks, nesting);
    let seconds = outcome.length.as_secs_f64();
    (outcome.tally.committed as f64 / seconds, workload.notes())
}

#[test]
fn nodes_choose_the_better_model_by_what_all_of_them_take() {
    let [flat, closed, open] = ["flat", "closed", "open"].map(|model| measured(model).0);
    let (auto, notes) = measured("auto");
    println!("flat {flat}, closed {closed}, open {open}, auto {auto}: {notes:#?}");
    let of_all = notes.iter().filter(|note| note.contains("by 2 nodes together"));
    assert_eq!(of_all.count(), 2, "{notes:?}");
    let best = flat.max(closed).max(open);
    assert!(auto >= 0.95 * best, "{auto} of {best}: {notes:?}");
}
