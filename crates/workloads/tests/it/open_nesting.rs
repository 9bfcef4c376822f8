//! Open children among faults: nothing of aborted transactions stays, whoever was killed; and rules
//! of theirs that are broken are noticed.

use std::sync::Arc;
use std::time::Duration;

use muesli::open_nesting::NestingSwitch;
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::parameters::Values;
use muesli_workloads::seeded_run::SeededRun;
use muesli_workloads::sets::{SKIP_LIST_PARAMETERS, Sets, StructureKind};
use muesli_workloads::simulated::{Simulated, run};
use muesli_workloads::tally::Tallies;
use muesli_workloads::workload::AnyWorkload;

const CLIENTS: u32 = 8;
/// Few keys, so that locks are refused often.
const SET: &str = "objects=24 initial=8 calls=3 reads=20 walks=5 levels=3 rule=random nesting=open";

const TABLE: &str =
    "objects=24 initial=8 calls=3 reads=20 walks=5 buckets=7 rule=random nesting=open";

fn parameters(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn open_children_leave_nothing_behind_under_all_faults() {
    for (protocol, workload, given) in [
        ("score", "skiplist", SET),
        ("two-phase-commit", "skiplist", SET),
        // Its running transactions may see torn snapshots, in which a list is no list.
        ("granola-locking", "hashtable", TABLE),
        ("score", "counters", "objects=20 hot=2 calls=2 nesting=open"),
        // Some transactions have open children, and others none beside them.
        ("score", "skiplist", &SET.replace("=open", "=auto")),
        ("tfa", "counters", "objects=20 hot=2 calls=2 nesting=auto"),
    ] {
        let seeded_run = SeededRun {
            protocol: protocol.to_owned(),
            parameters: parameters(given),
            faults: FaultKinds::all(),
            ..SeededRun::of(available::find(workload).unwrap())
        };
        for seed in 1..5 {
            let trialled = seeded_run.run(seed, false).unwrap();
            assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol} {workload} {seed}");
        }
    }
}

/// The first seed with which a check notices that a rule is broken, of so many.
fn noticed(switch: NestingSwitch, seeds: u64) -> Option<u64> {
    (0..seeds).find(|&seed| {
        let values = Values::read("skiplist", SKIP_LIST_PARAMETERS, &parameters(SET)).unwrap();
        let sets = Sets::new(StructureKind::skip_list(&values), &values, CLIENTS).unwrap();
        let sets = sets.without(switch);
        let workload: Arc<dyn AnyWorkload> = Arc::new(sets);
        let (kinds, length) = ("crash,client,partition,link,pause", 200);
        let horizon = VirtualTime::ZERO + Span::from_millis(length);
        let kinds: FaultKinds = kinds.parse().unwrap();
        let clients = CLIENTS + 1;
        let shape = PlanShape { nodes: 3, clients, horizon, kinds, trees: 0, faults_max: 12 };
        let plan: Plan = shape.draw(Seed::new(seed));
        let plan = Simulated {
            plan,
            pause_most: Span::from_micros(300),
            logging: true,
            ..Simulated::calm("score", 3, seed, Length::Time(Duration::from_millis(length)))
        };
        let run = run(&workload, &plan, &Arc::new(Tallies::new(CLIENTS))).unwrap();
        run.checks.iter().any(|check| !check.ok)
    })
}

#[test]
fn rules_that_are_broken_are_noticed() {
    for switch in [NestingSwitch::CheckLocks, NestingSwitch::ReleaseLast, NestingSwitch::CheckEnd] {
        let seed = noticed(switch, 400);
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}
