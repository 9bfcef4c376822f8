//! The tests of the tests: with a rule of the protocol switched off, the workloads' own checks and
//! the judges of the histories notice.
//!
//! Nothing is kept for the histories' sake. Every second seed has faults; mistakes that only show
//! where things go wrong have worlds of their own, with short leases.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use muesli_check::{Level, check};
use muesli_core::{Pace, Protocol};
use muesli_protocols::bumper::{self, Bumper};
use muesli_protocols::gmu::{self, Gmu};
use muesli_protocols::hierarchy::{self, HierarchicalValidation};
use muesli_protocols::repeatable_read::RepeatableRead;
use muesli_protocols::score::{FamilySwitch, Score, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::history::by_lists;
use muesli_workloads::simulated::{Simulated, Upkeep, run_protocol};
use muesli_workloads::tally::Tallies;
use muesli_workloads::tempo::Tempo;
use serde_json::Map;

const CLIENTS: u32 = 8;

/// What noticed: the workload's checks, the version order, the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Noticed {
    checks: bool,
    versions: bool,
    lists: bool,
}

fn noticed(workload: &str, parameters: &str, switches: &Switches) -> Noticed {
    let level = Level::Serializable;
    noticed_under::<Score>(workload, parameters, switches, level, 0..6)
}

fn noticed_under<P: Protocol>(
    workload: &str,
    parameters: &str,
    switches: &P::Switches,
    level: Level,
    seeds: Range<u64>,
) -> Noticed {
    let mut noticed = Noticed::default();
    for seed in seeds {
        let given: Vec<String> = parameters.split(' ').map(str::to_owned).collect();
        let workload = available::find(workload).unwrap().build(&given, CLIENTS).unwrap();
        let length = Length::Time(Duration::from_millis(60));
        let kinds = if seed % 4 < 2 { "none" } else { "crash,client,partition,link,pause" };
        let plan = Simulated {
            plan: faults(kinds, seed, Span::from_millis(60)),
            replicas: 2 - (seed % 2) as usize,
            pause_most: Span::from_micros(300),
            logging: true,
            history: true,
            ..Simulated::calm(P::NAME, 3, seed, length)
        };
        let tallies = Arc::new(Tallies::new(CLIENTS));
        let run = run_protocol::<P>(&workload, &plan, switches.clone(), &tallies).unwrap();
        let session_order = level != Level::Rr;
        let options = muesli_check::Options { session_order, ..Default::default() };
        let holds = |history| check(&history, level, &options).holds();
        noticed.checks |= run.checks.iter().any(|check| !check.ok);
        let versions = run.run.history(Map::new()).unwrap();
        noticed.versions |= !holds(versions);
        if let Some(lists) = workload.history() {
            noticed.lists |= !holds(by_lists(&lists, Map::new()).unwrap());
        }
    }
    noticed
}

/// Faults of these kinds, as a seed draws them.
fn faults(kinds: &str, seed: u64, length: Span) -> Plan {
    let kinds: FaultKinds = kinds.parse().unwrap();
    let faults_max = if kinds == FaultKinds::NONE { 0 } else { 8 };
    let horizon = VirtualTime::ZERO + length;
    let shape = PlanShape { nodes: 3, clients: CLIENTS + 1, horizon, kinds, trees: 0, faults_max };
    shape.draw(Seed::new(seed))
}

/// The first seed with which a mistake is noticed in a world of faults, where garbage is collected
/// at once, leases are short and logs are cut often.
fn noticed_among_faults(
    (workload, parameters): (&str, &str),
    kinds: &str,
    upkeep: Upkeep,
    switches: &Switches,
    seeds: Range<u64>,
) -> Option<u64> {
    let (millis, mut seeds) = (Span::from_millis, seeds);
    seeds.find(|&seed| {
        let given: Vec<String> = parameters.split(' ').map(str::to_owned).collect();
        let workload = available::find(workload).unwrap().build(&given, CLIENTS).unwrap();
        let length = Length::Time(Duration::from_millis(200));
        let pace =
            Pace { collect_after: 1, log_low_after: 4, tell_bound_after: 4, ..Pace::default() };
        let plan = Simulated {
            plan: faults(kinds, seed, millis(200)),
            replicas: 2,
            pause_most: Span::from_micros(300),
            logging: true,
            history: true,
            upkeep,
            tempo: Some(Tempo {
                gossip_every: Span::from_micros(500),
                snapshot_lease: millis(10),
                snapshot_age_max: millis(100),
                client_lease: millis(10),
                give_up_after: millis(60),
                in_doubt_after: millis(10),
                pace,
            }),
            ..Simulated::calm("score", 3, seed, length)
        };
        let tallies = Arc::new(Tallies::new(CLIENTS));
        // An assertion of the protocol may notice before the judge does.
        let run = catch_unwind(AssertUnwindSafe(|| {
            run_protocol::<Score>(&workload, &plan, *switches, &tallies).unwrap()
        }));
        let Ok(run) = run else { return true };
        let options = muesli_check::Options { session_order: true, ..Default::default() };
        let holds = |history| check(&history, Level::Serializable, &options).holds();
        run.checks.iter().any(|check| !check.ok) || !run.run.history(Map::new()).is_ok_and(holds)
    })
}

/// Lists and marks, read one after the other for long enough that the watermark moves meanwhile.
const LONG: (&str, &str) = ("append", "keys=5 operations=12 appends=30 marks=60");
const SHORT: (&str, &str) = ("append", "keys=5 marks=60");

const CRASHES: &str = "crash,client,partition,link,pause";

/// Logs are cut often.
fn cutting() -> Upkeep {
    Upkeep { checkpoint_every: Some(Span::from_millis(3)), ..Upkeep::default() }
}

#[test]
fn nothing_is_noticed_among_faults_where_nothing_is_wrong() {
    for case in [LONG, SHORT] {
        assert_eq!(
            noticed_among_faults(case, CRASHES, cutting(), &Switches::default(), 0..25),
            None
        );
    }
}

#[test]
fn a_watermark_raised_early_is_noticed() {
    let switches =
        Switches::broken(FamilySwitch::ReadersHoldLow).without(FamilySwitch::RefusesOldReads);
    assert!(noticed_among_faults(LONG, "none", Upkeep::default(), &switches, 0..60).is_some());
}

#[test]
fn lost_updates_are_noticed_by_every_route() {
    let switches = Switches::broken(FamilySwitch::Validate);
    let (checks, versions, lists) = (true, true, true);
    assert_eq!(
        noticed("bank", "objects=10", &switches),
        Noticed { checks, versions, lists: false }
    );
    assert_eq!(noticed("append", "keys=5", &switches), Noticed { checks, versions, lists });
    let ycsb = "workload=t keys=32 fields=1 reads=8";
    assert_eq!(noticed("ycsb", ycsb, &switches), Noticed { checks, versions, lists: false });
}

#[test]
fn phantoms_are_noticed() {
    let switches = Switches::broken(FamilySwitch::ValidateScans);
    let found = noticed("ycsb", "workload=s keys=16 fields=1 reads=8", &switches);
    assert!(found.versions, "{found:?}");
}

#[test]
fn nothing_is_noticed_where_nothing_is_wrong() {
    for (workload, parameters) in
        [("bank", "objects=10"), ("append", "keys=5"), ("ycsb", "workload=s keys=16 reads=8")]
    {
        assert_eq!(noticed(workload, parameters, &Switches::default()), Noticed::default());
    }
}

/// Whether one of the seeds shows that Bumper with such rules is not serializable.
fn bumper_is_caught(
    parameters: &str,
    seeds: Range<u64>,
    change: impl Fn(&mut bumper::Switches),
) -> bool {
    bumper_caught_by(parameters, seeds, change).is_some()
}

/// The first of the seeds that shows it.
fn bumper_caught_by(
    parameters: &str,
    seeds: Range<u64>,
    change: impl Fn(&mut bumper::Switches),
) -> Option<u64> {
    let mut switches = bumper::Switches::time_warping();
    change(&mut switches);
    seeds.into_iter().find(|&seed| {
        let level = Level::Serializable;
        let seeds = seed..seed + 1;
        noticed_under::<Bumper>("append", parameters, &switches, level, seeds).versions
    })
}

#[test]
fn bumper_without_a_rule_is_caught() {
    let keys = "keys=5";
    assert!(!bumper_is_caught(keys, 0..40, |_| {}), "nothing is wrong");
    assert!(
        bumper_is_caught(keys, 0..40, |switches| switches.set(bumper::BumperSwitch::Triads, false)),
        "triads"
    );
    assert!(
        bumper_is_caught(keys, 0..40, |switches| switches
            .set(bumper::BumperSwitch::ReadTimestampsKept, false)),
        "read_timestamps_kept"
    );
    assert!(
        bumper_is_caught(keys, 0..40, |switches| switches
            .set(bumper::BumperSwitch::UpdatesSetReadTimestamps, false)),
        "updates_set_read_timestamps"
    );
    assert!(
        bumper_is_caught(keys, 0..40, |switches| switches
            .set(bumper::BumperSwitch::BeforeTheEarliest, false)),
        "earliest"
    );
    assert!(
        bumper_is_caught(keys, 0..40, |switches| switches
            .set(bumper::BumperSwitch::ReadsWaitForTimeWarped, false)),
        "waits"
    );
}

/// The paper's algorithm, and with each two of the three corrections; with all three the same seeds
/// hold.
#[test]
fn each_correction_of_bumper_is_needed() {
    let caught = |seeds, [distinct, snapshots, updates]: [bool; 3]| {
        bumper_caught_by("keys=6 appends=40", seeds, |switches| {
            *switches = bumper::Switches::printed();
            switches.set(bumper::BumperSwitch::DistinctReaders, distinct);
            switches.set(bumper::BumperSwitch::ReadTimestampsReachSnapshot, snapshots);
            switches.set(bumper::BumperSwitch::UpdatesSetReadTimestamps, updates);
        })
    };
    // From where a mistake is known to be caught soon.
    for (corrections, from, what) in [
        ([false, false, false], 0, "as printed"),
        ([false, true, true], 390, "without distinct readers"),
        ([true, false, true], 15, "without read timestamps that reach the snapshot"),
        ([true, true, false], 0, "without read timestamps of updates"),
    ] {
        let seed = caught(from..from + 1_600, corrections);
        println!("{what}: {seed:?}");
        let seed = seed.unwrap_or_else(|| panic!("{what} it is not caught"));
        assert_eq!(caught(seed..seed + 1, [true; 3]), None, "{seed}");
    }
    assert_eq!(caught(0..40, [true; 3]), None, "with all corrections");
}

/// Turns a rule off.
type Change<R> = fn(&mut R);

/// The first seed that shows that GMU with such rules is not update serializable.
fn gmu_is_caught(seeds: Range<u64>, change: impl Fn(&mut gmu::Switches)) -> Option<u64> {
    let mut switches = gmu::Switches::default();
    change(&mut switches);
    let keys = "keys=6 appends=40";
    let mut seeds = seeds;
    seeds.find(|&seed| {
        noticed_under::<Gmu>("append", keys, &switches, Level::Eus, seed..seed + 1).versions
    })
}

#[test]
fn gmu_without_a_rule_is_caught() {
    let all: [(&str, Change<gmu::Switches>); 8] = [
        ("reads_wait", |switches| switches.set(gmu::GmuSwitch::ReadsWait, false)),
        ("local_reads_wait", |switches| switches.set(gmu::GmuSwitch::LocalReadsWait, false)),
        ("merge_votes", |switches| switches.set(gmu::GmuSwitch::MergeVotes, false)),
        ("ordered_queue", |switches| switches.set(FamilySwitch::OrderedQueue, false)),
        ("filter_by_vectors", |switches| switches.set(gmu::GmuSwitch::FilterByVectors, false)),
        ("pointwise", |switches| switches.set(gmu::GmuSwitch::Pointwise, false)),
        ("exact_validation", |switches| switches.set(gmu::GmuSwitch::ExactValidation, false)),
        ("unique_numbers", |switches| switches.set(gmu::GmuSwitch::UniqueNumbers, false)),
    ];
    for (name, change) in all {
        assert!(gmu_is_caught(0..150, change).is_some(), "{name}");
    }
    assert_eq!(gmu_is_caught(0..100, |_| {}), None, "nothing is wrong");
}

#[test]
fn hierarchical_validation_as_printed_or_without_validation_is_caught() {
    type Switches = hierarchy::Switches;
    fn is_caught(switches: &Switches) -> bool {
        let keys = "keys=6 appends=40";
        noticed_under::<HierarchicalValidation>(
            "append",
            keys,
            switches,
            Level::Serializable,
            0..12,
        )
        .versions
    }
    assert!(is_caught(&Switches::unchecked()), "without validation");
    assert!(is_caught(&Switches::printed_for_timestamps()), "with timestamps, as printed");
    assert!(is_caught(&Switches::printed_for_locks()), "with locks, as printed");
    assert!(!is_caught(&Switches::default()), "nothing is wrong with intervals");
    assert!(!is_caught(&Switches::locking()), "nothing is wrong with locks");
}

/// Two clients on two nodes take turns in one session.
#[test]
fn sessions_that_leave_their_past_behind_are_caught() {
    let roaming = |switches: &gmu::Switches| {
        let counters = "objects=20 hot=2 roam=true";
        noticed_under::<Gmu>("counters", counters, switches, Level::Eus, 0..10)
    };
    let mut switches = gmu::Switches::default();
    assert_eq!(roaming(&switches), Noticed::default(), "nothing is wrong");
    switches.set(FamilySwitch::SessionsBringTokens, false);
    assert!(roaming(&switches).versions);
}

#[test]
fn a_delayed_lock_taken_for_a_shared_one_is_caught() {
    let delayed = |switches: &bumper::Switches| {
        let bank = "objects=6 delayed=true totals=10";
        noticed_under::<Bumper>("bank", bank, switches, Level::Serializable, 0..10)
    };
    let mut switches = bumper::Switches::default();
    assert_eq!(delayed(&switches), Noticed::default(), "nothing is wrong");
    switches.set(FamilySwitch::DelayedExcludes, false);
    let found = delayed(&switches);
    assert!(found.checks && found.versions, "{found:?}");
}

#[test]
fn repeatable_read_is_no_more_than_that() {
    let switches = muesli_protocols::repeatable_read::Switches::default();
    let at = |level| {
        noticed_under::<RepeatableRead>("append", "keys=5", &switches, level, 0..6).versions
    };
    assert!(!at(Level::Rr));
    assert!(at(Level::Us) && at(Level::Serializable));
}
