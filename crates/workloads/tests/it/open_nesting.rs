//! Open children among faults: nothing of aborted transactions stays, whoever was killed; and rules
//! of theirs that are broken are noticed.

use std::sync::Arc;
use std::time::Duration;

use muesli::open_nesting::NestingSwitch;
use muesli_check::{Anomaly, Finding, HandlerStats, RootStats, Verdict, check};
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_workloads::available;
use muesli_workloads::bank::{self, Bank};
use muesli_workloads::counters::{self, Counters};
use muesli_workloads::embedded::Length;
use muesli_workloads::parameters::Values;
use muesli_workloads::seeded_run::SeededRun;
use muesli_workloads::sets::{SKIP_LIST_PARAMETERS, Sets, StructureKind};
use muesli_workloads::simulated::{Simulated, guarantee_of, run};
use muesli_workloads::tally::Tallies;
use muesli_workloads::workload::AnyWorkload;
use serde_json::Map;

const CLIENTS: u32 = 8;
/// Few keys, so that locks are refused often.
const SET: &str = "objects=24 initial=8 calls=3 reads=20 walks=5 levels=3 rule=random nesting=open";

const TABLE: &str =
    "objects=24 initial=8 calls=3 reads=20 walks=5 buckets=7 rule=random nesting=open";

/// Their children have commit handlers, too.
const COUNTERS: &str = "objects=20 hot=2 calls=2 nesting=open handlers=true";

/// Few accounts with little money, so that withdrawals are refused, and all of them read often.
const BANK: &str = "objects=6 initial=60 calls=2 reads=20 totals=20 nesting=open";
/// Half of the transfers are undone once, in closed children around their open ones.
const BANK_UNDONE: &str = "objects=6 initial=60 calls=2 reads=20 totals=20 nesting=open undone=50";
const LOANS: &str = "objects=20 lenders=3 reads=20 totals=20 nesting=open";

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
        ("score", "counters", COUNTERS),
        ("tfa", "counters", COUNTERS),
        ("score", "bank", BANK),
        ("tfa", "bank", BANK),
        ("score", "bank", BANK_UNDONE),
        ("tfa", "bank", BANK_UNDONE),
        ("two-phase-commit", "bank", &format!("{BANK} overdraft=true delayed=true")),
        ("score", "bank", &format!("{BANK} interface=objects")),
        ("score", "loan", LOANS),
        ("tfa", "loan", LOANS),
        // Some transactions have open children, and others none beside them.
        ("tfa", "bank", &BANK.replace("=open", "=auto-open")),
        ("score", "loan", &LOANS.replace("=open", "=auto-open")),
        ("score", "skiplist", &SET.replace("=open", "=auto")),
        ("tfa", "counters", &COUNTERS.replace("=open", "=auto")),
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

/// All structures and counters, in each model, have their roots judged, and decided.
#[test]
fn roots_are_judged_in_every_model() {
    const SMALL: &str = "objects=24 initial=8 calls=3 reads=30 rule=random";
    let sets = ["skiplist", "list", "hashtable", "tree"].map(|name| (name, SMALL));
    for (workload, given) in sets.into_iter().chain([("counters", "objects=20 hot=2 calls=2")]) {
        for (seed, model) in (1..).zip(["flat", "closed", "open", "auto"]) {
            let seeded_run = SeededRun {
                protocol: "score".to_owned(),
                parameters: parameters(&format!("{given} nesting={model}")),
                faults: FaultKinds::all(),
                transactions_least: 150,
                ..SeededRun::of(available::find(workload).unwrap())
            };
            let trialled = seeded_run.run(seed, false).unwrap();
            assert_eq!(trialled.problems, Vec::<String>::new(), "{workload} {model}");
            let RootStats { judged, undecided } = trialled.roots;
            assert!(judged >= 100 && undecided == 0, "{workload} {model}: {:?}", trialled.roots);
        }
    }
}

/// What clients that are killed leave is done by others, who ask for their locks or come after the
/// run.
#[test]
fn others_finish_what_clients_leave_that_are_killed() {
    let mut handled_by_others = 0;
    for (protocol, replicas, seeds) in [("score", None, 1..13), ("tfa", Some(1), 1..13)] {
        let seeded_run = SeededRun {
            protocol: protocol.to_owned(),
            parameters: parameters(COUNTERS),
            faults: "crash,client".parse().unwrap(),
            replicas,
            ..SeededRun::of(available::find("counters").unwrap())
        };
        let mut all = HandlerStats::default();
        for seed in seeds {
            let trialled = seeded_run.run(seed, false).unwrap();
            assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol} {seed}");
            all.add(&trialled.handlers);
        }
        println!("{protocol}: {all:?}");
        assert!(all.compensations > all.compensations_by_others, "{protocol}: {all:?}");
        assert!(all.commit_handlers > 10 * all.commit_handlers_by_others, "{protocol}: {all:?}");
        assert!(all.compensations_by_others > 0, "{protocol}: {all:?}");
        // Locks go soon after a commit, so that few clients are killed between.
        handled_by_others += all.commit_handlers_by_others;
    }
    assert!(handled_by_others > 0, "commit handlers");
}

/// A run of sets under a protocol with a rule broken, or none.
fn run_sets(protocol: &str, switch: Option<NestingSwitch>, seed: u64) -> JudgedRun {
    let values = Values::read("skiplist", SKIP_LIST_PARAMETERS, &parameters(SET)).unwrap();
    let sets = Sets::new(StructureKind::skip_list(&values), &values, CLIENTS).unwrap();
    let sets = switch.into_iter().fold(sets, Sets::without);
    judged_run(&(Arc::new(sets) as Arc<dyn AnyWorkload>), protocol, seed)
}

/// A run of counters, the same, in which clients are often taken for dead.
fn run_counters(switch: Option<NestingSwitch>, seed: u64) -> JudgedRun {
    let given = format!("{COUNTERS} hot-reads=50 length=4 patience=2");
    let values = Values::read("counters", counters::PARAMETERS, &parameters(&given)).unwrap();
    let counters = Counters::new(&values, CLIENTS).unwrap();
    let counters = switch.into_iter().fold(counters, Counters::without);
    judged_run(&(Arc::new(counters) as Arc<dyn AnyWorkload>), "score", seed)
}

/// A run of the bank; its checks that do not hold.
fn run_bank(protocol: &str, switch: Option<NestingSwitch>, seed: u64) -> Vec<&'static str> {
    run_bank_of((protocol, BANK), switch, seed)
}

fn run_bank_of(
    (protocol, given): (&str, &str),
    switch: Option<NestingSwitch>,
    seed: u64,
) -> Vec<&'static str> {
    let values = Values::read("bank", bank::PARAMETERS, &parameters(given)).unwrap();
    let bank = Bank::new(&values, CLIENTS).unwrap();
    let bank = switch.into_iter().fold(bank, Bank::without);
    let workload = Arc::new(bank) as Arc<dyn AnyWorkload>;
    let plan = faulty(protocol, seed);
    let outcome = run(&workload, &plan, &Arc::new(Tallies::new(CLIENTS))).unwrap();
    outcome.checks.iter().filter(|check| !check.ok).map(|check| check.name).collect()
}

/// What goes wrong with this seed.
fn faulty(protocol: &str, seed: u64) -> Simulated {
    let (kinds, length) = ("crash,client,partition,link,pause", 200);
    let horizon = VirtualTime::ZERO + Span::from_millis(length);
    let kinds: FaultKinds = kinds.parse().unwrap();
    let clients = CLIENTS + 1;
    let shape = PlanShape { nodes: 3, clients, horizon, kinds, trees: 0, faults_max: 12 };
    let plan: Plan = shape.draw(Seed::new(seed));
    Simulated {
        plan,
        pause_most: Span::from_micros(300),
        logging: true,
        history: true,
        strict: true,
        ..Simulated::calm(protocol, 3, seed, Length::Time(Duration::from_millis(length)))
    }
}

fn judged_run(workload: &Arc<dyn AnyWorkload>, protocol: &str, seed: u64) -> JudgedRun {
    let plan = faulty(protocol, seed);
    let roots = workload.roots().expect("they record their roots");
    roots.recorder().switch_on();
    let outcome = run(workload, &plan, &Arc::new(Tallies::new(CLIENTS))).unwrap();
    let mut history = outcome.run.history(Map::new()).unwrap();
    roots.add_roots(&mut history).unwrap();
    let (level, options) = guarantee_of(protocol, true).unwrap();
    let verdict = check(&history, level, &options);
    let wrong = outcome.checks.iter().filter(|check| !check.ok).map(|check| check.name);
    JudgedRun { wrong: wrong.collect(), verdict }
}

/// What was found of a run.
struct JudgedRun {
    /// The workload's checks that do not hold.
    wrong: Vec<&'static str>,
    verdict: Verdict,
}

impl JudgedRun {
    /// Whether the operations of roots, and nothing else, are wrong: the rows of all transactions
    /// are in order.
    fn only_operations(&self) -> bool {
        let Verdict { findings, cycle, .. } = &self.verdict;
        let is_of_roots = |finding: &Finding| finding.anomaly == Anomaly::Operations;
        !findings.is_empty() && findings.iter().all(is_of_roots) && cycle.is_none()
    }
}

#[test]
fn rules_that_are_broken_are_noticed() {
    for switch in [NestingSwitch::CheckLocks, NestingSwitch::ReleaseLast, NestingSwitch::CheckEnd] {
        let seed = (0..400).find(|&seed| !run_sets("score", Some(switch), seed).wrong.is_empty());
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}

/// What a withdrawal rests on is undone; a sum sees what is undone.
#[test]
fn a_bank_that_does_not_look_at_locks_is_noticed() {
    for protocol in ["score", "tfa"] {
        let broken = |seed| run_bank(protocol, Some(NestingSwitch::CheckLocks), seed);
        let seed = (0..200).find(|&seed| !broken(seed).is_empty()).expect(protocol);
        println!("{protocol}: {seed}");
        assert_eq!(run_bank(protocol, None, seed), Vec::<&str>::new(), "{protocol} {seed}");
    }
}

/// What open children did in a closed child that is undone stays.
#[test]
fn parts_that_are_not_compensated_are_noticed() {
    for protocol in ["score", "tfa"] {
        let run = |switch, seed| run_bank_of((protocol, BANK_UNDONE), switch, seed);
        let broken = |seed: &u64| !run(Some(NestingSwitch::UndoParts), *seed).is_empty();
        let seed = (0..10).find(broken).expect(protocol);
        println!("{protocol}: {seed}");
        assert_eq!(run(None, seed), Vec::<&str>::new(), "{protocol} {seed}");
    }
}

/// Who commits although others have aborted it has no commit handlers any more.
#[test]
fn commit_handlers_that_do_not_run_are_noticed() {
    let is_noticed = |seed: &u64| {
        let wrong = run_counters(Some(NestingSwitch::CheckEnd), *seed).wrong;
        wrong.contains(&"commit handlers ran once for each commit")
    };
    let seed = (0..400).find(is_noticed).expect("a client that is slow, and whose lock is wanted");
    println!("{seed}");
    assert_eq!(run_counters(None, seed).wrong, Vec::<&str>::new());
}

/// The first seed with which a run without a rule is found to be wrong, and one with it is not.
fn noticed(
    switch: NestingSwitch,
    run: impl Fn(Option<NestingSwitch>, u64) -> JudgedRun,
) -> Option<u64> {
    let is_wrong = |run: &JudgedRun| !run.wrong.is_empty() || run.verdict.is_broken();
    let seed = (0..200).find(|seed| is_wrong(&run(Some(switch), *seed)))?;
    println!("{switch:?}: {seed}");
    assert!(!is_wrong(&run(None, seed)), "{switch:?} {seed}");
    Some(seed)
}

/// Locks that are taken after the commit, or by nobody who only looks: answers tell.
#[test]
fn locks_that_children_take_late_or_not_at_all_are_noticed() {
    for switch in [NestingSwitch::LockInCommit, NestingSwitch::LockReads] {
        let run = |switch, seed| run_sets("score", switch, seed);
        assert!(noticed(switch, run).is_some(), "{switch:?}");
    }
}

/// What a failed commit did is undone twice, or its caller is not told.
#[test]
fn ends_as_they_are_printed_are_noticed() {
    for switch in [NestingSwitch::TellFailedCommit, NestingSwitch::CompensateOnce] {
        assert!(noticed(switch, run_counters).is_some(), "{switch:?}");
    }
}

/// Each child is in order by its rows, whatever its root and others do: only what the operations
/// answered tells that locks were not looked at, or went too early.
#[test]
fn answers_tell_of_broken_rules_where_rows_do_not() {
    for protocol in ["score", "tfa"] {
        for switch in [NestingSwitch::CheckLocks, NestingSwitch::ReleaseLast] {
            let broken = (0..60).find(|&seed| {
                let judged = run_sets(protocol, Some(switch), seed);
                let verdict = &judged.verdict;
                assert!(judged.only_operations() || !verdict.is_broken(), "{seed}: {verdict}");
                verdict.is_broken()
            });
            println!("{protocol} {switch:?}: {broken:?}");
            let seed = broken.unwrap_or_else(|| panic!("{protocol} {switch:?}"));
            let sound = run_sets(protocol, None, seed);
            assert!(
                sound.wrong.is_empty() && sound.verdict.holds(),
                "{protocol} {seed}: {}",
                sound.verdict
            );
            assert!(sound.verdict.stats.roots.judged > 0, "{}", sound.verdict);
        }
    }
}
