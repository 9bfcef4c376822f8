//! Partitions that follow what clients do, in the simulator: a drifting workload is followed, every
//! history is judged, and samples that are wrong make placements slow and never wrong.

use std::sync::Arc;
use std::time::Duration;

use muesli_core::recorder::accesses::AccessSample;
use muesli_placement::online::{FollowDecision, MoveTerms};
use muesli_sim::time::Span;
use muesli_workloads::embedded::Length;
use muesli_workloads::simulated::{
    BendsSamples, FollowedPeriod, Following, Simulated, SimulatedOutcome, run,
};
use muesli_workloads::tally::Tallies;
use serde_json::Map;

use super::workloads::{CLIENTS, assert_checks, assert_serializable, drawn, workload};

/// Groups of which each client pairs other ones after so many transactions.
const DRIFTING: &str = "groups=48 keys=20 partitions=8 apart=100 drift=400";
/// The same groups, always paired alike.
const STEADY: &str = "groups=48 keys=20 partitions=8 apart=100";

fn following(bends: Option<BendsSamples>) -> Following {
    let terms = MoveTerms { samples_least: 100, ..MoveTerms::default() };
    Following { every: Span::from_millis(40), one_in: 1, kept: 400, terms, bends }
}

/// A run of at least so many milliseconds on three nodes, each with eight partitions.
fn plan(seed: u64, kinds: &str, millis: u64, following: Option<Following>) -> Simulated {
    Simulated {
        protocol: "granola".to_owned(),
        repositories: 3,
        replicas: 1,
        partitions_per_repository: 8,
        length: Length::Time(Duration::from_millis(millis)),
        pause_most: Span::from_micros(600),
        following,
        ..drawn(seed, kinds)
    }
}

fn judged(case: (&str, &str), plan: &Simulated) -> SimulatedOutcome {
    let context = format!("{case:?}, seed {}, {}", plan.seed, plan.plan);
    let workload = workload(&case);
    let outcome = run(&workload, plan, &Arc::new(Tallies::new(CLIENTS))).unwrap();
    assert_checks(&outcome.checks, &context);
    assert_serializable(&outcome.run.history(Map::new()).unwrap(), &context);
    outcome
}

fn moved(periods: &[FollowedPeriod]) -> usize {
    periods.iter().map(|period| period.moved).sum()
}

/// The share of distributed transactions of all periods together.
fn distributed(periods: &[FollowedPeriod]) -> f64 {
    let all: u64 = periods.iter().map(|it| it.measured.transactions).sum();
    let one = |it: &FollowedPeriod| it.measured.distributed * it.measured.transactions as f64;
    periods.iter().map(one).sum::<f64>() / all.max(1) as f64
}

/// Never planned: samples are measured, and nothing moves.
fn none(samples: &mut Vec<AccessSample>, _: u64, _: u16) {
    samples.clear();
}

#[test]
fn a_drifting_workload_is_followed() {
    let of = |bends| judged(("pairs", DRIFTING), &plan(1, "none", 900, Some(following(bends))));
    let (followed, left) = (of(None), of(Some(none)));
    let (now, before) = (distributed(&followed.followed), distributed(&left.followed));
    println!("distributed: {before:.1} % where nothing moves, {now:.1} % where partitions follow");
    assert_eq!(moved(&left.followed), 0);
    assert!(moved(&followed.followed) > 10, "{:?}", followed.followed);
    assert!(before > 50.0 && now < 0.75 * before, "{now} and {before}");
    // What was right once is moved again as groups are paired otherwise.
    let moves = followed.followed.iter().filter(|it| it.moved > 0).count();
    assert!(moves > 1, "{:?}", followed.followed);
}

#[test]
fn moves_under_faults_lose_nothing() {
    let mut all = 0;
    for seed in 0..6 {
        let plan = plan(seed, "all", 300, Some(following(None)));
        all += moved(&judged(("pairs", DRIFTING), &plan).followed);
        let retwis = "users=60 follows=3 community=10 ties=30";
        judged(("retwis", retwis), &plan);
    }
    assert!(all > 20, "{all} moves");
}

/// Names partitions that are used with none of these.
fn shifted(samples: &mut Vec<AccessSample>, _: u64, partitions: u16) {
    for sample in samples {
        if let [one, other] = sample.partitions[..] {
            let wrong = (other + 5) % partitions;
            sample.partitions = vec![one.min(wrong), one.max(wrong)];
            sample.partitions.dedup();
        }
    }
}

/// Says of all transactions that they are of one partition, another one in each period.
fn one_partition(samples: &mut Vec<AccessSample>, period: u64, partitions: u16) {
    for sample in samples {
        sample.partitions = vec![(period % u64::from(partitions)) as u16];
    }
}

#[test]
fn wrong_samples_make_a_placement_slow_and_never_wrong() {
    let mut undone = 0;
    for (seed, bends) in [(3, shifted as BendsSamples), (4, one_partition), (5, shifted)] {
        let plan = plan(seed, "none", 500, Some(following(Some(bends))));
        let outcome = judged(("pairs", STEADY), &plan);
        let is_undo = |it: &&FollowedPeriod| matches!(it.decision, FollowDecision::Undo { .. });
        undone += outcome.followed.iter().filter(is_undo).count();
        let faulty = Simulated { following: plan.following, ..drawn(seed, "all") };
        let faulty = Simulated { protocol: "granola".to_owned(), replicas: 1, ..faulty };
        judged(("append-procedures", "keys=12 length=20 moving=5"), &faulty);
    }
    assert!(undone > 0, "plans that did not help were taken back");
}
