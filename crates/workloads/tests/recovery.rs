//! Tests of the tests of recovery: with a mistake in checkpoints, replay or groups, the workloads'
//! own checks, the judges of the histories or an assertion notice.

use std::sync::Arc;
use std::time::Duration;

use muesli_check::{Level, check};
use muesli_protocols::score::{Rules, Score};
use muesli_sim::time::Span;
use muesli_workloads::embedded::Length;
use muesli_workloads::registry;
use muesli_workloads::simulated::{Simulated, Upkeep, run_protocol};
use muesli_workloads::tally::Tallies;
use serde_json::Map;

const CLIENTS: u32 = 8;

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
