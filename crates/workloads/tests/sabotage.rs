//! The tests of the tests: with a rule of the protocol switched off, the workloads' own checks and
//! the judges of the histories notice.

use std::sync::Arc;
use std::time::Duration;

use muesli_check::{Level, check};
use muesli_protocols::score::{Rules, Score};
use muesli_sim::plan::Plan;
use muesli_sim::time::{Span, VirtualTime};
use muesli_workloads::embedded::Length;
use muesli_workloads::history::by_lists;
use muesli_workloads::registry;
use muesli_workloads::simulated::{Simulated, Upkeep, run_protocol};
use muesli_workloads::tally::Tallies;
use serde_json::Map;

const CLIENTS: u32 = 8;

/// What noticed: the workload's checks, the version order, the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Noticed {
    checks: bool,
    versions: bool,
    lists: bool,
}

fn noticed(workload: &str, parameters: &str, rules: &Rules) -> Noticed {
    let mut noticed = Noticed::default();
    for seed in 0..6 {
        let given: Vec<String> = parameters.split(' ').map(str::to_owned).collect();
        let workload = registry::find(workload).unwrap().build(&given, CLIENTS).unwrap();
        let plan = Simulated {
            protocol: "score".to_owned(),
            nodes: 3,
            repositories: 3,
            replicas: 2,
            seed,
            plan: Plan::calm(VirtualTime::ZERO),
            length: Length::Time(Duration::from_millis(60)),
            transactions_least: 0,
            pause_most: Span::from_micros(300),
            logging: true,
            upkeep: Upkeep::default(),
            history: true,
            trace: false,
        };
        let tallies = Arc::new(Tallies::new(CLIENTS));
        let run = run_protocol::<Score>(&workload, &plan, *rules, &tallies).unwrap();
        let holds = |history| {
            check(&history, Level::Serializable, &muesli_check::Options::default()).holds()
        };
        noticed.checks |= run.checks.iter().any(|check| !check.ok);
        let versions = run.run.history(Map::new()).unwrap();
        noticed.versions |= !holds(versions);
        if let Some(lists) = workload.history() {
            noticed.lists |= !holds(by_lists(&lists, Map::new()).unwrap());
        }
    }
    noticed
}

#[test]
fn lost_updates_are_noticed_by_every_route() {
    let rules = Rules { validate: false, ..Rules::default() };
    let (checks, versions, lists) = (true, true, true);
    assert_eq!(noticed("bank", "keys=10", &rules), Noticed { checks, versions, lists: false });
    assert_eq!(noticed("append", "keys=5", &rules), Noticed { checks, versions, lists });
    let ycsb = "workload=t keys=32 fields=1 reads=8";
    assert_eq!(noticed("ycsb", ycsb, &rules), Noticed { checks, versions, lists: false });
}

#[test]
fn phantoms_are_noticed() {
    let rules = Rules { validate_scans: false, ..Rules::default() };
    let found = noticed("ycsb", "workload=s keys=16 fields=1 reads=8", &rules);
    assert!(found.versions, "{found:?}");
}

#[test]
fn nothing_is_noticed_where_nothing_is_wrong() {
    for (workload, parameters) in
        [("bank", "keys=10"), ("append", "keys=5"), ("ycsb", "workload=s keys=16 reads=8")]
    {
        assert_eq!(noticed(workload, parameters, &Rules::default()), Noticed::default());
    }
}

/// Runs with crashes and checkpoints, until a mistake is noticed or none was.
fn crashes_noticed(rules: &Rules, upkeep: Upkeep) -> bool {
    (0..40).any(|seed| {
        let workload = registry::find("bank").unwrap().build(&["keys=10".to_owned()], CLIENTS);
        let workload = workload.unwrap();
        let crash = |at, node| format!("{at}ms+5ms crash n{node}");
        let crashes: Vec<_> = (0..6).map(|at| crash(10 + 10 * at, (at + seed) % 3)).collect();
        let plan = format!("horizon 100ms; {}", crashes.join("; ")).parse().unwrap();
        let simulated = Simulated {
            protocol: "score".to_owned(),
            nodes: 3,
            repositories: 3,
            replicas: 1,
            seed,
            plan,
            length: Length::Time(Duration::from_millis(60)),
            transactions_least: 0,
            pause_most: Span::from_micros(300),
            logging: true,
            upkeep,
            history: true,
            trace: false,
        };
        let tallies = Arc::new(Tallies::new(CLIENTS));
        // An assertion of the protocol may notice before the judge does.
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run_protocol::<Score>(&workload, &simulated, *rules, &tallies).unwrap()
        }));
        let Ok(run) = run else { return true };
        let checks = run.checks.iter().any(|check| !check.ok);
        let options = muesli_check::Options::default();
        let history = run.run.history(Map::new());
        checks
            || history.is_err()
            || !check(&history.unwrap(), Level::Serializable, &options).holds()
    })
}

#[test]
fn mistakes_of_checkpoints_and_replays_are_noticed() {
    let often = Upkeep { checkpoint_every: Some(Span::from_millis(2)), ..Upkeep::default() };
    let sound = Rules::default();
    assert!(!crashes_noticed(&sound, often));
    assert!(crashes_noticed(&Rules { checkpoint_prepared: false, ..sound }, often));
    assert!(crashes_noticed(&sound, Upkeep { skips_a_record_at_replay: true, ..often }));
}
