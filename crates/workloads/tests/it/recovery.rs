//! Tests of the tests of recovery: with a mistake in checkpoints, replay or groups, the workload's
//! own checks, the judge of the history or an assertion notice; without, nobody does.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use muesli_check::{Level, check};
use muesli_core::Protocol;
use muesli_group::{GroupSettings, Grouped};
use muesli_protocols::score::{FamilySwitch, Score, Switches};
use muesli_protocols::tfa::{self as owners, Tfa};
use muesli_protocols::two_phase::Sabotage;
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::Mistake;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::simulated::{Simulated, Upkeep, run_protocol};
use muesli_workloads::tally::Tallies;
use serde_json::Map;

const CLIENTS: u32 = 8;

/// Four nodes with a repository each, and what goes wrong there.
fn simulated(seed: u64, plan: Plan, upkeep: Upkeep) -> Simulated {
    of_protocol("score", seed, plan, upkeep)
}

fn of_protocol(protocol: &str, seed: u64, plan: Plan, upkeep: Upkeep) -> Simulated {
    let length = Length::Time(Duration::from_millis(60));
    Simulated {
        plan,
        pause_most: Span::from_micros(300),
        logging: true,
        upkeep,
        history: true,
        ..Simulated::calm(protocol, 4, seed, length)
    }
}

/// Whether anybody notices that something is wrong with a run.
fn is_noticed<P: Protocol>(workload: &str, simulated: &Simulated, switches: &P::Switches) -> bool {
    let few = if workload == "bank" { "objects=10" } else { "keys=10" };
    let workload = available::find(workload).unwrap().build(&[few.to_owned()], CLIENTS);
    let (workload, tallies) = (workload.unwrap(), Arc::new(Tallies::new(CLIENTS)));
    // An assertion of the protocol may notice before the judge does.
    let run = catch_unwind(AssertUnwindSafe(|| {
        run_protocol::<P>(&workload, simulated, switches.clone(), &tallies).unwrap()
    }));
    let Ok(run) = run else { return true };
    let options = muesli_check::Options::default();
    let holds = |history| check(&history, Level::Serializable, &options).holds();
    run.run.records_left_out() > 0
        || run.checks.iter().any(|check| !check.ok)
        || !run.run.history(Map::new()).is_ok_and(holds)
}

/// Each node crashes, some twice.
fn crashes(seed: u64) -> Plan {
    let crash = |at, node| format!("{at}ms+5ms crash n{node}");
    let crashes: Vec<_> = (0..6).map(|at| crash(10 + 10 * at, (at + seed) % 4)).collect();
    format!("horizon 100ms; {}", crashes.join("; ")).parse().unwrap()
}

/// Runs with crashes and checkpoints, until a mistake is noticed or none was.
fn crashes_notice(switches: &Switches, upkeep: Upkeep) -> bool {
    let is_noticed =
        |seed| is_noticed::<Score>("bank", &simulated(seed, crashes(seed), upkeep), switches);
    (0..40).any(is_noticed)
}

#[test]
fn mistakes_of_checkpoints_and_replays_are_noticed() {
    let often = Upkeep { checkpoint_every: Some(Span::from_millis(2)), ..Upkeep::default() };
    let sound = Switches::default();
    assert!(!crashes_notice(&sound, often));
    assert!(crashes_notice(&sound.without(FamilySwitch::CheckpointPrepared), often));
    assert!(crashes_notice(&sound, Upkeep { mistake: Some(Mistake::SkipsARecord), ..often }));
}

/// Old owners forget where a key went once its directory says that it knows.
#[test]
fn pointers_that_a_directory_does_not_log_are_noticed() {
    let notices = |switches: owners::Switches| {
        let run = |seed| of_protocol("tfa", seed, crashes(seed), Upkeep::default());
        (0..20).any(|seed| is_noticed::<Tfa>("bank", &run(seed), &switches))
    };
    assert!(!notices(owners::Switches::default()));
    assert!(notices(owners::Switches::default().without(FamilySwitch::LogsPointers)));
}

type Groups = GroupSettings<Switches>;

/// The first seed with which groups of three that make a mistake are found out, if one does.
fn groups_notice(
    workload: &str,
    plan: impl Fn(u64) -> Plan,
    seeds: Range<u64>,
    change: impl Fn(&mut Groups),
) -> Option<u64> {
    let mut switches = Groups { limits: muesli_group::Limits::tight(), ..Groups::default() };
    change(&mut switches);
    seeds.into_iter().find(|&seed| {
        let checkpoint_every = Some(Span::from_millis(20));
        let upkeep = Upkeep { group: 3, checkpoint_every, ..Upkeep::default() };
        is_noticed::<Grouped<Score>>(workload, &simulated(seed, plan(seed), upkeep), &switches)
    })
}

/// Plans of faults of these kinds.
fn drawn(kinds: &str) -> impl Fn(u64) -> Plan {
    let kinds: FaultKinds = kinds.parse().unwrap();
    let horizon = VirtualTime::ZERO + Span::from_millis(300);
    let shape =
        PlanShape { nodes: 4, clients: CLIENTS + 1, horizon, kinds, trees: 0, faults_max: 8 };
    move |seed| shape.draw(Seed::new(seed))
}

/// The power fails, for everyone at once, while disks are slow.
fn power_failures(seed: u64) -> Plan {
    power_failures_lasting(seed, |_| 2)
}

/// The same, and one node comes back later than the others: they have to go on without it.
fn power_failures_with_one_late(seed: u64) -> Plan {
    power_failures_lasting(seed, |node| if node == seed % 4 { 25 } else { 2 })
}

/// The power fails for so many milliseconds at each node.
fn power_failures_lasting(seed: u64, lasts: impl Fn(u64) -> u64) -> Plan {
    let slow = (0..4).map(|node| format!("1ms+140ms disk n{node} x{}", 2 + 3 * (node + seed) % 11));
    let lasts = &lasts;
    let at =
        |time: u64| (0..4).map(move |node| format!("{time}ms+{}ms crash n{node}", lasts(node)));
    let crashes = (1..4).flat_map(|time| at(35 * time + seed % 17));
    let faults: Vec<_> = slow.chain(crashes).collect();
    format!("horizon 200ms; {}", faults.join("; ")).parse().unwrap()
}

/// Two nodes and two others do not hear of each other for a while, time and again: each side goes
/// on with half of the groups, and on each there may be leaders of the others.
fn halves(seed: u64) -> Plan {
    let cut = |time: u64| format!("{}ms+60ms partition n0,n{}", 80 * time, 1 + (time + seed) % 3);
    let cuts: Vec<_> = (0..6).map(cut).collect();
    format!("horizon 500ms; {}", cuts.join("; ")).parse().unwrap()
}

#[test]
fn nobody_notices_anything_of_groups_without_a_mistake() {
    assert_eq!(groups_notice("bank", drawn("all"), 0..10, |_| {}), None);
    assert_eq!(groups_notice("bank", power_failures, 0..5, |_| {}), None);
    assert_eq!(groups_notice("bank", power_failures_with_one_late, 0..10, |_| {}), None);
    assert_eq!(groups_notice("append", halves, 0..5, |_| {}), None);
}

#[test]
fn speaking_before_what_was_written_is_stable_is_noticed() {
    // A leader that counts itself when it has its entries still makes up for it.
    let change = |switches: &mut Groups| {
        (switches.syncs_first, switches.counts_itself_when_stable) = (false, false);
    };
    assert!(groups_notice("bank", power_failures, 0..40, change).is_some());
}

#[test]
fn a_leader_that_counts_itself_before_it_has_its_entries_is_noticed() {
    let change = |switches: &mut Groups| switches.counts_itself_when_stable = false;
    assert!(groups_notice("bank", power_failures_with_one_late, 0..400, change).is_some());
}

#[test]
fn votes_lost_at_a_failover_are_noticed() {
    let change = |switches: &mut Groups| switches.decides_first = false;
    assert!(groups_notice("bank", drawn("crash,partition"), 0..60, change).is_some());
}

#[test]
fn entries_left_out_by_followers_are_noticed() {
    let change = |switches: &mut Groups| switches.replays_all = false;
    assert!(groups_notice("bank", drawn("crash"), 0..60, change).is_some());
}

#[test]
fn members_that_forgot_their_votes_and_vote_are_noticed() {
    let change = |switches: &mut Groups| switches.asks_before_voting = false;
    assert!(groups_notice("bank", drawn("loss"), 0..200, change).is_some());
}

/// Two nodes lose their disks while a third, which is in groups with both, is cut off.
fn two_lost(seed: u64) -> Plan {
    let third = 2 + seed % 2;
    let plan = format!(
        "horizon 200ms; 30ms+70ms partition n{third}; 100ms+5ms lose n0; 100ms+5ms lose n1"
    );
    plan.parse().unwrap()
}

#[test]
fn a_majority_that_forgot_and_goes_on_is_noticed() {
    let change = |switches: &mut Groups| switches.accepts_loss = true;
    assert!(groups_notice("bank", two_lost, 0..40, change).is_some());
}

/// Every node stands still in turn, so that each leader is deposed, and one loses its disk.
fn pauses_and_a_loss(seed: u64) -> Plan {
    let pause = |round: u64| format!("{}ms+45ms pause n{}", 20 + 60 * round, (round + seed) % 4);
    let pauses: Vec<_> = (0..6).map(pause).collect();
    let loss = format!("{}ms+5ms lose n{}", 90 + seed % 130, (seed + 2) % 4);
    format!("horizon 400ms; {}; {loss}", pauses.join("; ")).parse().unwrap()
}

#[test]
fn deposed_leaders_keep_their_state_lost_disks_fetch_it_and_nobody_notices() {
    assert_eq!(groups_notice("bank", pauses_and_a_loss, 0..10, |_| {}), None);
    assert_eq!(groups_notice("append", pauses_and_a_loss, 0..5, |_| {}), None);
}

#[test]
fn a_state_that_counts_before_all_of_it_is_there_is_noticed() {
    let change = |switches: &mut Groups| switches.installs_whole = false;
    assert!(groups_notice("bank", pauses_and_a_loss, 0..40, change).is_some());
}

#[test]
fn a_deposed_leader_that_keeps_what_nobody_decided_is_noticed() {
    let change = |switches: &mut Groups| switches.returns_to_decided = false;
    assert!(groups_notice("bank", halves, 0..60, change).is_some());
}

#[test]
fn a_checkpoint_of_what_nobody_decided_is_noticed() {
    let change = |switches: &mut Groups| switches.publishes_decided = false;
    assert!(groups_notice("bank", drawn("crash,partition,disk"), 0..200, change).is_some());
}

/// In turn, a node loses its disk and another one is cut off while the first fetches its state.
fn losses_and_cuts(seed: u64) -> Plan {
    let round = |round: u64| {
        let (lost, cut) = ((round + seed) % 4, (round + seed + 1 + (round + seed / 4) % 3) % 4);
        let at = 20 + 90 * round;
        let (lose, part) = (at, at + 5 + (7 * round + seed) % 11);
        format!("{lose}ms+5ms lose n{lost}; {part}ms+40ms partition n{cut}")
    };
    let rounds: Vec<_> = (0..5).map(round).collect();
    format!("horizon 500ms; {}", rounds.join("; ")).parse().unwrap()
}

#[test]
fn states_of_leaders_that_are_deposed_meanwhile_are_whole() {
    assert_eq!(groups_notice("bank", losses_and_cuts, 0..10, |_| {}), None);
    assert_eq!(groups_notice("append", losses_and_cuts, 0..10, |_| {}), None);
}
