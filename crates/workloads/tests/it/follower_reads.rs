//! Readers that take the nearest copy: of a repository's group, a member that follows, or the copy
//! that their own node keeps. Whatever goes wrong, histories are serializable in the order of each
//! session; without one of the rules they are not.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use muesli_check::check;
use muesli_group::{GroupSettings, Grouped};
use muesli_protocols::granola::{Granola, GranolaSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::history::by_lists;
use muesli_workloads::simulated::{Simulated, Upkeep, guarantee, run_protocol};
use muesli_workloads::tally::Tallies;
use serde_json::Map;

const CLIENTS: u32 = 8;
const NODES: u32 = 4;

type Groups = GroupSettings<Switches>;

fn plan(kinds: &str, seed: u64) -> Plan {
    let kinds: FaultKinds = kinds.parse().unwrap();
    let horizon = VirtualTime::ZERO + Span::from_millis(200);
    let faults_max = if kinds == FaultKinds::NONE { 0 } else { 8 };
    let shape =
        PlanShape { nodes: NODES, clients: CLIENTS + 1, horizon, kinds, trees: 0, faults_max };
    shape.draw(Seed::new(seed))
}

fn simulated(seed: u64, plan: Plan, caches: bool) -> Simulated {
    let length = Length::Time(Duration::from_millis(60));
    let checkpoint_every = Some(Span::from_millis(20));
    Simulated {
        plan,
        pause_most: Span::from_micros(300),
        logging: true,
        upkeep: Upkeep { group: 3, caches, checkpoint_every, ..Upkeep::default() },
        history: true,
        ..Simulated::calm("granola", NODES as usize, seed, length)
    }
}

/// What is wrong with a run of the list workload, if anything is.
fn problem(seed: u64, (kinds, caches): (&str, bool), switches: &Groups) -> Option<String> {
    let simulated = simulated(seed, plan(kinds, seed), caches);
    let context = simulated.plan.to_string();
    let parameters = ["keys=6", "operations=2", "appends=40", "nearby=80"].map(str::to_owned);
    let lists = available::find("append-procedures").unwrap();
    let (workload, tallies) =
        (lists.build(&parameters, CLIENTS).unwrap(), Arc::new(Tallies::new(CLIENTS)));
    let run = catch_unwind(AssertUnwindSafe(|| {
        run_protocol::<Grouped<Granola>>(&workload, &simulated, switches.clone(), &tallies).unwrap()
    }));
    let Ok(run) = run else { return Some(format!("seed {seed}, {context}: a panic")) };
    let (level, options) = guarantee("granola").unwrap();
    let mut problems: Vec<String> = Vec::new();
    problems.extend(run.checks.iter().filter(|it| !it.ok).map(|it| it.details.clone()));
    let lists = by_lists(&workload.history().unwrap(), Map::new());
    for history in [run.run.history(Map::new()), lists] {
        let verdict = check(&history.unwrap(), level, &options);
        problems.extend((!verdict.holds()).then(|| verdict.to_string()));
    }
    (!problems.is_empty()).then(|| format!("seed {seed}, {context}: {}", problems.join("\n")))
}

fn first_problem(
    world: (&str, bool),
    seeds: Range<u64>,
    change: impl Fn(&mut Groups),
) -> Option<String> {
    let mut switches = Groups { limits: muesli_group::Limits::tight(), ..Groups::default() };
    change(&mut switches);
    seeds.into_iter().find_map(|seed| problem(seed, world, &switches))
}

#[test]
fn members_that_follow_answer_readers_under_every_kind_of_fault() {
    assert_eq!(first_problem(("none", false), 0..3, |_| {}), None);
    assert_eq!(first_problem(("all", false), 0..8, |_| {}), None);
}

#[test]
fn caches_of_groups_answer_readers_under_every_kind_of_fault() {
    assert_eq!(first_problem(("all", true), 0..8, |_| {}), None);
}

#[test]
fn a_follower_that_does_not_look_at_what_the_session_has_seen_is_noticed() {
    let change = |switches: &mut Groups| switches.inner.set(GranolaSwitch::CopiesCheck, false);
    assert!(first_problem(("none", false), 0..20, change).is_some());
}

#[test]
fn a_follower_that_does_not_wait_for_what_may_lie_below_is_noticed() {
    let change = |switches: &mut Groups| switches.inner.set(GranolaSwitch::CopiesWait, false);
    assert!(first_problem(("none", false), 0..60, change).is_some());
}

#[test]
fn a_follower_that_answers_by_what_is_not_decided_is_noticed() {
    let change = |switches: &mut Groups| switches.answers_decided = false;
    assert!(first_problem(("partition,crash", false), 0..60, change).is_some());
}
