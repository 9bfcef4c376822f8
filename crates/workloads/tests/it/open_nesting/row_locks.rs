//! Workloads whose open children lock rows: among faults nothing stays of aborted transactions, and
//! all of them have a serial order; without a lock they have none.

use std::sync::Arc;
use std::time::Duration;

use muesli::open_nesting::NestingSwitch;
use muesli_check::{Level, check};
use muesli_sim::plan::fault::FaultKinds;
use muesli_workloads::append::{self, Append};
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::history::by_lists;
use muesli_workloads::parameters::Values;
use muesli_workloads::seeded_run::SeededRun;
use muesli_workloads::simulated::{Simulated, run};
use muesli_workloads::tally::Tallies;
use muesli_workloads::workload::{AnyWorkload, Workload};
use serde_json::Map;

use super::parameters;
use crate::nested::PARTED;

#[test]
fn open_children_that_lock_rows_leave_nothing_behind_under_all_faults() {
    let under = |protocol| PARTED.iter().map(move |parted| (protocol, parted));
    for (seed, (protocol, (workload, given))) in (1..).zip(under("score").chain(under("tfa"))) {
        let seeded_run = SeededRun {
            protocol: protocol.to_owned(),
            parameters: parameters(&format!("{given} nesting=open")),
            faults: FaultKinds::all(),
            transactions_least: 80,
            ..SeededRun::of(available::find(workload).unwrap())
        };
        let trialled = seeded_run.run(seed, false).unwrap();
        assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol} {workload} {seed}");
    }
}

/// Whether the lists that clients have seen have a serial order, with a rule broken or none; how
/// many open children were undone.
fn ordered(protocol: &str, switch: Option<NestingSwitch>, seed: u64) -> (bool, u64) {
    const CLIENTS: u32 = 8;
    let given = parameters("keys=4 operations=4 appends=50 distribution=uniform nesting=open");
    let values = Values::read("append", append::PARAMETERS, &given).unwrap();
    let append = switch.into_iter().fold(Append::new(&values, CLIENTS), Append::without);
    let workload = Arc::new(append);
    let any: Arc<dyn AnyWorkload> = workload.clone();
    let length = Length::Time(Duration::from_millis(100));
    let plan = Simulated::calm(protocol, 3, seed, length);
    run(&any, &plan, &Arc::new(Tallies::new(CLIENTS))).unwrap();
    let lists = by_lists(&Workload::history(&*workload).unwrap(), Map::new()).unwrap();
    let holds = check(&lists, Level::Serializable, &muesli_check::Options::default()).holds();
    (holds, any.open_children().expect("its children are open").compensations)
}

#[test]
fn rows_that_are_not_locked_are_noticed() {
    for protocol in ["score", "tfa"] {
        for switch in [NestingSwitch::CheckLocks, NestingSwitch::LockReads] {
            let seed = (0..20).find(|seed| !ordered(protocol, Some(switch), *seed).0);
            println!("{protocol} {switch:?}: {seed:?}");
            let seed = seed.unwrap_or_else(|| panic!("{protocol}: {switch:?} is not noticed"));
            let (holds, undone) = ordered(protocol, None, seed);
            assert!(holds && undone > 0, "{protocol} {seed}: {undone} undone");
        }
    }
}
