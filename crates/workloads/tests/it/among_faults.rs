//! Mistakes that only show where things go wrong, and under the settings of production scaled to
//! short runs: garbage is collected at once, leases are short and logs are cut often. Each is
//! noticed by the judge of the history, by a check of the workload or by an assertion.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use muesli_check::check;
use muesli_core::{Pace, Protocol};
use muesli_protocols::bumper::{self, Bumper};
use muesli_protocols::gmu::{self, Gmu};
use muesli_protocols::granola::Granola;
use muesli_protocols::non_genuine_multiversioning::NonGenuineMultiversioning;
use muesli_protocols::repeatable_read::{self, RepeatableRead};
use muesli_protocols::score::{FamilySwitch, Score, Switches};
use muesli_protocols::tfa::{self, Tfa};
use muesli_protocols::two_phase::Sabotage;
use muesli_protocols::two_phase_commit::{self, TwoPhaseCommit};
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::Mistake;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::seeded_run::MOST_BYTES;
use muesli_workloads::simulated::{Simulated, Upkeep, guarantee_of, run_protocol};
use muesli_workloads::tally::Tallies;
use muesli_workloads::tempo::Tempo;
use serde_json::Map;

const CLIENTS: u32 = 8;

/// Where a mistake is looked for.
#[derive(Clone, Copy)]
struct Search {
    workload: &'static str,
    /// What goes wrong, by the seed and the length of the run in milliseconds.
    plan: fn(u64, u64) -> Plan,
    /// How long the clients run.
    millis: u64,
    upkeep: Upkeep,
    tempo: Tempo,
    /// Nodes on which clients run as applications do on theirs; without these they run beside the
    /// three repositories.
    client_nodes: usize,
    /// How many copies of a key there are.
    replicas: usize,
    /// All transactions are strict, and judged so.
    strict: bool,
}

impl Search {
    /// The first seed with which a mistake is noticed.
    fn first<P: Protocol>(&self, switches: &P::Switches, seeds: Range<u64>) -> Option<u64> {
        let found = seeds.clone().find(|&seed| self.is_noticed::<P>(switches, seed));
        println!("{} by faults of {} ms: {found:?} of {seeds:?}", P::NAME, self.millis);
        found
    }

    fn is_noticed<P: Protocol>(&self, switches: &P::Switches, seed: u64) -> bool {
        let given: Vec<String> = self.workload.split(' ').map(str::to_owned).collect();
        let workload = available::find("append").unwrap().build(&given, CLIENTS).unwrap();
        let length = Length::Time(Duration::from_millis(self.millis));
        let plan = Simulated {
            plan: (self.plan)(seed, self.millis),
            replicas: self.replicas,
            pause_most: Span::from_micros(300),
            logging: true,
            history: true,
            upkeep: self.upkeep,
            client_nodes: self.client_nodes,
            visiting: self.client_nodes > 0,
            tempo: Some(self.tempo),
            strict: self.strict,
            ..Simulated::calm(P::NAME, 3, seed, length)
        };
        let tallies = Arc::new(Tallies::new(CLIENTS));
        // An assertion of the protocol may notice before the judge does.
        let run = catch_unwind(AssertUnwindSafe(|| {
            run_protocol::<P>(&workload, &plan, switches.clone(), &tallies)
        }));
        let Ok(run) = run else { return true };
        let run = run.unwrap();
        let (level, options) = guarantee_of(P::NAME, self.strict).unwrap();
        let holds = |history| check(&history, level, &options).holds();
        let is_long = run.run.longest.over(MOST_BYTES).is_some();
        is_long
            || run.checks.iter().any(|check| !check.ok)
            || !run.run.history(Map::new()).is_ok_and(holds)
    }
}

/// Garbage is collected at once, and leases are over in a run. That of clients is longer than they
/// try: who forgets one that still speaks may take up what it refused.
fn short() -> Tempo {
    let millis = Span::from_millis;
    Tempo {
        gossip_every: Span::from_micros(500),
        snapshot_lease: millis(10),
        snapshot_age_max: millis(100),
        client_lease: millis(70),
        give_up_after: millis(60),
        in_doubt_after: millis(10),
        pace: Pace { collect_after: 1, log_low_after: 4, tell_bound_after: 4, ..Pace::default() },
    }
}

/// Snapshots of silent nodes do not count for long.
fn impatient() -> Tempo {
    let micros = Span::from_micros;
    Tempo { gossip_every: micros(200), snapshot_lease: micros(2_000), ..short() }
}

fn crashes(seed: u64, millis: u64) -> Plan {
    let kinds: FaultKinds = "crash,client,partition,link,pause".parse().unwrap();
    let horizon = VirtualTime::ZERO + Span::from_millis(millis);
    let shape =
        PlanShape { nodes: 3, clients: CLIENTS + 1, horizon, kinds, trees: 0, faults_max: 8 };
    shape.draw(Seed::new(seed))
}

/// A fault of one of three nodes after the other, every so many milliseconds.
fn one_by_one(millis: u64, every: u64, fault: impl Fn(u64) -> String) -> Plan {
    let faults: Vec<_> =
        (1..(millis - 20) / every).map(|at| format!("{}ms+{}", every * at, fault(at))).collect();
    format!("horizon {millis}ms; {}", faults.join("; ")).parse().unwrap()
}

/// The nodes of clients, behind those of the repositories, are cut off for longer than the lease of
/// their snapshots.
fn clients_cut_off(seed: u64, millis: u64) -> Plan {
    one_by_one(millis, 16, |at| format!("14ms partition n{}", 3 + (at + seed) % 3))
}

/// Lists and marks, read one after the other for long enough that the watermark moves meanwhile.
const LONG: &str = "keys=5 operations=12 appends=30 marks=60";
const SHORT: &str = "keys=5 marks=60";

/// Clients beside the repositories, crashes, and logs that are cut often.
fn cutting() -> Search {
    let checkpoint_every = Some(Span::from_millis(3));
    let upkeep = Upkeep { checkpoint_every, ..Upkeep::default() };
    let (workload, plan, tempo) = (SHORT, crashes as fn(u64, u64) -> Plan, short());
    let (millis, client_nodes, replicas) = (200, 0, 2);
    Search { workload, plan, millis, upkeep, tempo, client_nodes, replicas, strict: false }
}

/// Keys that have one copy, which moves to whoever commits.
fn moving() -> Search {
    Search { replicas: 1, ..cutting() }
}

/// Clients on nodes of their own, as applications are.
fn applications(workload: &'static str, plan: fn(u64, u64) -> Plan, tempo: Tempo) -> Search {
    Search { workload, plan, upkeep: Upkeep::default(), tempo, client_nodes: 3, ..cutting() }
}

/// Leases of open snapshots run out.
fn leases() -> Search {
    applications(LONG, clients_cut_off, impatient())
}

/// Leases of clients run out.
fn silence() -> Search {
    Search { millis: 400, ..applications(SHORT, crashes, short()) }
}

/// The processes of clients are killed one after the other, among other faults, and are not waited
/// for: what they leave is forgotten while requests of them are still under way.
fn killed(seed: u64, millis: u64) -> Plan {
    let kills = one_by_one(millis, 9, |at| format!("3ms crash n{}", 3 + (at + seed) % 3));
    let faults = crashes(seed, millis);
    let all = kills.faults().iter().chain(faults.faults()).cloned().collect();
    Plan::new(kills.horizon(), all).expect("they end in time")
}

/// Clients are forgotten soon after they have given up.
fn gone() -> Search {
    let (give_up_after, client_lease) = (Span::from_millis(15), Span::from_millis(20));
    let tempo = Tempo { give_up_after, client_lease, ..short() };
    Search { millis: 400, ..applications(SHORT, killed, tempo) }
}

/// Marks that are deleted and put without being read, by clients that also read some: who judges a
/// read by what was found where a deletion is collected puts an update before what it has seen.
fn blind() -> Search {
    let workload = "keys=1 operations=1 appends=0 marks=100 blind-marks=80";
    let tempo = Tempo { gossip_every: Span::from_micros(2_000), ..short() };
    Search { workload, tempo, ..cutting() }
}

#[test]
fn nothing_is_noticed_among_faults_where_nothing_is_wrong() {
    for search in [cutting(), leases(), silence(), gone()] {
        assert_eq!(search.first::<Score>(&Switches::default(), 0..5), None);
    }
    let switches = bumper::Switches::time_warping();
    assert_eq!(leases().first::<Bumper>(&switches, 0..5), None);
    // With seed 41 a client becomes silent while the others are asked about another one.
    assert_eq!(gone().first::<Bumper>(&switches, 35..40), None);
    assert_eq!(gone().first::<Gmu>(&gmu::Switches::default(), 0..5), None);
    for search in [cutting(), silence()] {
        assert_eq!(search.first::<Gmu>(&gmu::Switches::default(), 0..5), None);
        assert_eq!(search.first::<Granola>(&Default::default(), 0..5), None);
    }
    assert_eq!(moving().first::<Tfa>(&Default::default(), 57..62), None);
}

/// One long list, of which readers hold many versions, and logs that are cut often.
fn many_versions() -> Search {
    let workload = "keys=1 operations=1 appends=95 length=500";
    let tempo = Tempo { gossip_every: Span::from_millis(50), ..short() };
    Search { workload, tempo, ..cutting() }
}

#[test]
fn a_long_chain_in_one_piece_of_a_checkpoint_is_noticed() {
    assert_eq!(many_versions().first::<Score>(&Switches::default(), 0..5), None);
    let switches = Switches::broken(FamilySwitch::CutsChains);
    assert!(many_versions().first::<Score>(&switches, 0..10).is_some());
}

/// Whether a mistake in keeping the log is noticed under a protocol. (Seeds begin where one did, so
/// that few are run: who changes a protocol may find that others do.)
fn is_caught<P: Protocol>(mistake: Mistake, switches: &P::Switches, seeds: Range<u64>) {
    is_caught_where::<P>(cutting(), mistake, switches, seeds);
}

fn is_caught_where<P: Protocol>(
    search: Search,
    mistake: Mistake,
    switches: &P::Switches,
    seeds: Range<u64>,
) {
    let upkeep = Upkeep { mistake: Some(mistake), ..search.upkeep };
    let search = Search { upkeep, ..search };
    assert!(search.first::<P>(switches, seeds).is_some(), "{mistake:?}, {}", P::NAME);
}

#[test]
fn a_log_that_lacks_what_was_stable_is_noticed() {
    let lost = Mistake::LosesTheNewest;
    is_caught::<Score>(lost, &Switches::default(), 0..30);
    is_caught::<Gmu>(lost, &gmu::Switches::default(), 67..187);
    is_caught::<Bumper>(lost, &bumper::Switches::time_warping(), 79..199);
    is_caught::<TwoPhaseCommit>(lost, &two_phase_commit::Switches::default(), 11..51);
    is_caught::<RepeatableRead>(lost, &repeatable_read::Switches::default(), 0..20);
    is_caught::<NonGenuineMultiversioning>(lost, &Switches::default(), 59..179);
    is_caught::<Granola>(lost, &Default::default(), 78..378);
    is_caught_where::<Tfa>(moving(), lost, &Default::default(), 60..260);
}

#[test]
fn a_log_that_is_cut_too_far_is_noticed() {
    let cuts = Mistake::CutsTooMuch;
    is_caught::<Score>(cuts, &Switches::default(), 0..30);
    is_caught::<Gmu>(cuts, &gmu::Switches::default(), 8..68);
    is_caught::<Bumper>(cuts, &bumper::Switches::time_warping(), 30..90);
    is_caught::<TwoPhaseCommit>(cuts, &two_phase_commit::Switches::default(), 122..322);
    is_caught::<RepeatableRead>(cuts, &repeatable_read::Switches::default(), 0..20);
    is_caught::<NonGenuineMultiversioning>(cuts, &Switches::default(), 12..72);
    is_caught::<Granola>(cuts, &Default::default(), 173..473);
    is_caught_where::<Tfa>(moving(), cuts, &Default::default(), 60..260);
}

#[test]
fn a_decision_without_a_record_is_noticed() {
    let family = Switches::broken(FamilySwitch::LogsDecisions);
    assert!(cutting().first::<Score>(&family, 0..20).is_some());
    let gmu = gmu::Switches::default().with_family(family);
    assert!(cutting().first::<Gmu>(&gmu, 0..20).is_some());
    let bumper = bumper::Switches::time_warping().with_family(family);
    assert!(cutting().first::<Bumper>(&bumper, 0..20).is_some());
    let locking = two_phase_commit::Switches { family, ..two_phase_commit::Switches::default() };
    assert!(cutting().first::<TwoPhaseCommit>(&locking, 0..20).is_some());
    let repeatable = repeatable_read::Switches { family, ..repeatable_read::Switches::default() };
    assert!(cutting().first::<RepeatableRead>(&repeatable, 0..20).is_some());
    assert!(cutting().first::<NonGenuineMultiversioning>(&family, 0..20).is_some());
    let tfa = tfa::Switches { family, ..tfa::Switches::default() };
    assert!(moving().first::<Tfa>(&tfa, 0..20).is_some());
}

/// All transactions are strict, among crashes.
fn strict() -> Search {
    Search { strict: true, ..cutting() }
}

#[test]
fn strict_readers_that_are_not_validated_are_noticed() {
    let sound = 0..5;
    assert_eq!(strict().first::<Score>(&Switches::default(), sound.clone()), None);
    assert_eq!(strict().first::<Gmu>(&gmu::Switches::default(), sound.clone()), None);
    assert_eq!(strict().first::<Bumper>(&bumper::Switches::time_warping(), sound), None);
    let family = Switches::broken(FamilySwitch::ValidatesStrict);
    assert!(strict().first::<Score>(&family, 0..30).is_some(), "SCORe");
    let gmu = gmu::Switches::default().with_family(family);
    assert!(strict().first::<Gmu>(&gmu, 0..30).is_some(), "GMU");
    let bumper = bumper::Switches::time_warping().with_family(family);
    assert!(strict().first::<Bumper>(&bumper, 0..30).is_some(), "Bumper");
}

/// Without faults `sabotage` has it noticed; with them under each protocol that has a watermark.
#[test]
fn a_watermark_raised_early_is_noticed_among_faults() {
    let search = Search { workload: LONG, ..cutting() };
    let family =
        Switches::broken(FamilySwitch::ReadersHoldLow).without(FamilySwitch::RefusesOldReads);
    assert!(search.first::<Score>(&family, 0..20).is_some(), "SCORe");
    let gmu = gmu::Switches::default().with_family(family);
    assert!(search.first::<Gmu>(&gmu, 0..20).is_some(), "GMU");
    let bumper = bumper::Switches::time_warping().with_family(family);
    assert!(search.first::<Bumper>(&bumper, 0..20).is_some(), "Bumper");
}

#[test]
fn reads_below_the_watermark_after_a_lease_are_noticed() {
    let family = Switches::broken(FamilySwitch::RefusesOldReads);
    assert!(leases().first::<Score>(&family, 0..60).is_some(), "SCORe");
    let gmu = gmu::Switches::default().with_family(family);
    assert!(leases().first::<Gmu>(&gmu, 0..60).is_some(), "GMU");
    let bumper = bumper::Switches::time_warping().with_family(family);
    assert!(leases().first::<Bumper>(&bumper, 0..60).is_some(), "Bumper");
}

#[test]
fn commits_that_are_forgotten_with_a_silent_client_are_noticed() {
    let switches = Switches::broken(FamilySwitch::KeepsCommitsOfSilent);
    assert!(silence().first::<Score>(&switches, 47..167).is_some());
    assert!(gone().first::<Score>(&switches, 78..198).is_some());
    let gmu = gmu::Switches::default().with_family(switches);
    assert!(gone().first::<Gmu>(&gmu, 7..67).is_some());
    let bumper = bumper::Switches::time_warping().with_family(switches);
    assert!(gone().first::<Bumper>(&bumper, 88..248).is_some());
}

/// The fault that Bumper had with collected deletions. Either of the two rules is enough to hide
/// it from this search; transcripts have each alone.
#[test]
fn reads_judged_by_what_was_found_are_noticed() {
    let switches = bumper::Switches::time_warping();
    let printed = switches
        .without(FamilySwitch::JudgedBySnapshot)
        .without(bumper::BumperSwitch::LowerBoundsAtWatermark);
    assert!(blind().first::<Bumper>(&printed, 235..635).is_some());
    assert_eq!(blind().first::<Bumper>(&switches, 0..20), None);
}
