//! Rules of open nesting that are broken: checks of workloads notice, or the judge of what
//! transactions were answered.

use std::sync::Arc;
use std::time::Duration;

use muesli::open_nesting::NestingSwitch;
use muesli_check::{Anomaly, Finding, Verdict, check};
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_workloads::bank::{self, Bank};
use muesli_workloads::counters::{self, Counters};
use muesli_workloads::embedded::Length;
use muesli_workloads::parameters::Values;
use muesli_workloads::sets::{SKIP_LIST_PARAMETERS, Sets, StructureKind};
use muesli_workloads::simulated::{Simulated, guarantee_of, run};
use muesli_workloads::tally::{Tallies, Tally};
use muesli_workloads::workload::AnyWorkload;
use serde_json::Map;

use super::{BANK, BANK_UNDONE, COUNTERS, NESTED, SET, parameters};

const CLIENTS: u32 = 8;
/// Those whose layers are searched.
const PROTOCOLS: [&str; 2] = ["score", "tfa"];

/// Sets under a protocol with a rule broken, or none.
fn sets(given: &str, switch: Option<NestingSwitch>) -> Arc<dyn AnyWorkload> {
    let values = Values::read("skiplist", SKIP_LIST_PARAMETERS, &parameters(given)).unwrap();
    let sets = Sets::new(StructureKind::skip_list(&values), &values, CLIENTS).unwrap();
    Arc::new(switch.into_iter().fold(sets, Sets::without))
}

fn run_sets(protocol: &str, switch: Option<NestingSwitch>, seed: u64) -> JudgedRun {
    judged_run(&sets(SET, switch), protocol, seed)
}

fn counters(given: &str, clients: u32, switch: Option<NestingSwitch>) -> Counters {
    let values = Values::read("counters", counters::PARAMETERS, &parameters(given)).unwrap();
    let counters = Counters::new(&values, clients).unwrap();
    switch.into_iter().fold(counters, Counters::without)
}

/// Counters, the same, whose clients are often taken for dead.
fn run_counters(protocol: &str, switch: Option<NestingSwitch>, seed: u64) -> JudgedRun {
    let given = format!("{COUNTERS} hot-reads=50 length=4 patience=2");
    let counters = counters(&given, CLIENTS, switch);
    judged_run(&(Arc::new(counters) as Arc<dyn AnyWorkload>), protocol, seed)
}

fn run_bank(
    (protocol, given): (&str, &str),
    switch: Option<NestingSwitch>,
    seed: u64,
) -> JudgedRun {
    let values = Values::read("bank", bank::PARAMETERS, &parameters(given)).unwrap();
    let bank = Bank::new(&values, CLIENTS).unwrap();
    let bank = switch.into_iter().fold(bank, Bank::without);
    judged_run(&(Arc::new(bank) as Arc<dyn AnyWorkload>), protocol, seed)
}

/// What goes wrong with this seed.
fn faulty(protocol: &str, seed: u64) -> Simulated {
    let (kinds, length) = ("crash,client,partition,link,pause", 200);
    let horizon = VirtualTime::ZERO + Span::from_millis(length);
    let kinds: FaultKinds = kinds.parse().unwrap();
    let clients = CLIENTS + 1;
    let shape = PlanShape { nodes: 3, clients, horizon, kinds, trees: 0, faults_max: 12 };
    let plan: Plan = shape.draw(Seed::new(seed));
    Simulated { plan, pause_most: Span::from_micros(300), logging: true, ..calm(protocol, seed) }
}

/// The same without faults.
fn calm(protocol: &str, seed: u64) -> Simulated {
    let length = Length::Time(Duration::from_millis(200));
    Simulated { history: true, strict: true, ..Simulated::calm(protocol, 3, seed, length) }
}

fn judged_run(workload: &Arc<dyn AnyWorkload>, protocol: &str, seed: u64) -> JudgedRun {
    judge(workload, (protocol, CLIENTS), &faulty(protocol, seed))
}

fn judge(
    workload: &Arc<dyn AnyWorkload>,
    (protocol, clients): (&str, u32),
    plan: &Simulated,
) -> JudgedRun {
    let roots = workload.roots().expect("they record their roots");
    roots.recorder().switch_on();
    let outcome = run(workload, plan, &Arc::new(Tallies::new(clients))).unwrap();
    let mut history = outcome.run.history(Map::new()).unwrap();
    roots.add_roots(&mut history).unwrap();
    let (level, options) = guarantee_of(protocol, plan.strict).unwrap();
    let verdict = check(&history, level, &options);
    let wrong = outcome.checks.iter().filter(|check| !check.ok).map(|check| check.name);
    JudgedRun { wrong: wrong.collect(), verdict, tally: outcome.tally.clone() }
}

/// What was found of a run.
struct JudgedRun {
    /// The workload's checks that do not hold.
    wrong: Vec<&'static str>,
    verdict: Verdict,
    tally: Tally,
}

impl JudgedRun {
    /// Whether the operations of roots, and nothing else, are wrong: the rows of all transactions
    /// are in order.
    fn only_operations(&self) -> bool {
        let Verdict { findings, cycle, .. } = &self.verdict;
        let is_of_roots = |finding: &Finding| finding.anomaly == Anomaly::Operations;
        !findings.is_empty() && findings.iter().all(is_of_roots) && cycle.is_none()
    }

    fn is_wrong(&self) -> bool {
        !self.wrong.is_empty() || self.verdict.is_broken()
    }
}

/// The first of so many seeds with which a run without a rule is found to be wrong, and one with it
/// is not.
fn noticed(
    (switch, seeds): (NestingSwitch, u64),
    run: impl Fn(Option<NestingSwitch>, u64) -> JudgedRun,
) -> JudgedRun {
    let broken = (0..seeds).map(|seed| (seed, run(Some(switch), seed)));
    let found = broken.into_iter().find(|(_, run)| run.is_wrong());
    let (seed, found) = found.unwrap_or_else(|| panic!("{switch:?} is not noticed"));
    println!("{switch:?}: {seed}, {:?}", found.wrong);
    let sound = run(None, seed);
    assert!(!sound.is_wrong(), "{switch:?} {seed}: {:?} {}", sound.wrong, sound.verdict);
    found
}

#[test]
fn rules_that_are_broken_are_noticed() {
    for protocol in PROTOCOLS {
        for switch in
            [NestingSwitch::CheckLocks, NestingSwitch::ReleaseLast, NestingSwitch::CheckEnd]
        {
            let run = |seed: &u64| run_sets(protocol, Some(switch), *seed);
            // Seeds begin shortly before one that did, so that few are run.
            let first = match (protocol, switch) {
                ("score", NestingSwitch::CheckEnd) => 20,
                ("tfa", NestingSwitch::CheckEnd) => 305,
                _ => 0,
            };
            let seed = (first..first + 400).find(|seed| !run(seed).wrong.is_empty());
            println!("{protocol} {switch:?}: {seed:?}");
            assert!(seed.is_some(), "{protocol} {switch:?}");
        }
    }
}

/// What a withdrawal rests on is undone; a sum sees what is undone.
#[test]
fn a_bank_that_does_not_look_at_locks_is_noticed() {
    for protocol in PROTOCOLS {
        let run = |switch, seed| run_bank((protocol, BANK), switch, seed);
        noticed((NestingSwitch::CheckLocks, 200), run);
    }
}

/// What open children did in a closed child that is undone stays.
#[test]
fn parts_that_are_not_compensated_are_noticed() {
    for protocol in PROTOCOLS {
        let run = |switch, seed| run_bank((protocol, BANK_UNDONE), switch, seed);
        noticed((NestingSwitch::UndoParts, 10), run);
    }
}

/// A transaction has added a key and removed it again. Undone in the order in which that was done,
/// the key is there afterwards. (By then it holds all locks that it asks for, so that it is undone
/// where others take it for dead.)
#[test]
fn compensations_in_a_wrong_order_are_noticed() {
    for protocol in PROTOCOLS {
        let alone = format!("{SET} again=90 patience=2");
        let nested = format!("{} patience=2", NESTED.replace("again=30", "again=90"));
        for given in [alone, nested] {
            let run = |switch, seed| judged_run(&sets(&given, switch), protocol, seed);
            noticed((NestingSwitch::NewestFirst, 100), run);
        }
    }
}

/// Who commits although others have aborted it has no commit handlers any more.
#[test]
fn commit_handlers_that_do_not_run_are_noticed() {
    for protocol in PROTOCOLS {
        let is_noticed = |seed: &u64| {
            let wrong = run_counters(protocol, Some(NestingSwitch::CheckEnd), *seed).wrong;
            wrong.contains(&"commit handlers ran once for each commit")
        };
        let seed = (0..400).find(is_noticed).expect("a slow client, whose lock is wanted");
        println!("{protocol}: {seed}");
        assert_eq!(run_counters(protocol, None, seed).wrong, Vec::<&str>::new(), "{protocol}");
    }
}

/// Locks that are taken after the commit, or by nobody who only looks: answers tell.
#[test]
fn locks_that_children_take_late_or_not_at_all_are_noticed() {
    for protocol in PROTOCOLS {
        for switch in [NestingSwitch::LockInCommit, NestingSwitch::LockReads] {
            noticed((switch, 200), |switch, seed| run_sets(protocol, switch, seed));
        }
    }
}

/// What a failed commit did is undone twice, or its caller is not told.
#[test]
fn ends_as_they_are_printed_are_noticed() {
    for protocol in PROTOCOLS {
        for switch in [NestingSwitch::TellFailedCommit, NestingSwitch::CompensateOnce] {
            noticed((switch, 200), |switch, seed| run_counters(protocol, switch, seed));
        }
    }
}

/// A transaction that only reads beside its open child commits by what was overwritten: one that
/// has written that, and reads what the child has added to, is neither before it nor after it. (A
/// strict transaction is validated whatever it has written, and under TFA each one is.)
#[test]
fn a_root_that_is_not_validated_is_noticed() {
    let given = "objects=2 hot=2 calls=1 cold-reads=60 hot-reads=50 nesting=open";
    let run = |switch, seed| {
        let counters: Arc<dyn AnyWorkload> = Arc::new(counters(given, CLIENTS, switch));
        judge(&counters, ("score", CLIENTS), &Simulated { strict: false, ..faulty("score", seed) })
    };
    let found = noticed((NestingSwitch::ValidateRoot, 60), run);
    assert!(found.only_operations(), "{}", found.verdict);
}

/// A program that uses the same counters in a transaction and in its open child: that is an error,
/// each time. Where nobody watches it, the child does not see what its transaction has written, and
/// not even one client alone is answered what can be.
#[test]
fn levels_that_are_not_separate_are_noticed() {
    let given = "objects=2 hot=2 calls=1 cold-reads=0 hot-reads=50 nesting=open";
    for protocol in PROTOCOLS {
        let run = |switch: Option<NestingSwitch>, seed| {
            let counters = counters(given, 1, switch).sharing_levels();
            let workload: Arc<dyn AnyWorkload> = Arc::new(counters);
            judge(&workload, (protocol, 1), &calm(protocol, seed))
        };
        let broken = |seed| run(Some(NestingSwitch::SeparateLevels), seed);
        let found = (0..20).map(broken).find(|run| run.verdict.is_broken()).expect(protocol);
        assert!(found.only_operations(), "{protocol}: {}", found.verdict);
        let watched = run(None, 0);
        assert!(watched.verdict.holds(), "{protocol}: {}", watched.verdict);
        let noticed = watched.tally.unexpected.unwrap_or_default();
        assert!(noticed.contains("separate what the levels use"), "{protocol}: {noticed}");
    }
}

/// Two transactions that each hold what the other one asks for: where only the child that was
/// refused is run again, neither makes progress until it is taken for abandoned.
#[test]
fn locks_that_are_not_given_back_are_noticed() {
    let given = "objects=3 initial=1 calls=2 reads=0 walks=0 rule=random nesting=open";
    for protocol in PROTOCOLS {
        let taken_over = |switch| -> u64 {
            let sets = sets(given, switch);
            judge(&sets, (protocol, CLIENTS), &calm(protocol, 1));
            sets.open_children().expect("they are counted").taken_over
        };
        let (sound, broken) = (taken_over(None), taken_over(Some(NestingSwitch::GiveBackLocks)));
        println!("{protocol}: {sound}, {broken}");
        assert!(broken > 10 * sound, "{protocol}: {sound}, {broken}");
    }
}

/// Each child is in order by its rows, whatever its root and others do: only what the operations
/// answered tells that locks were not looked at, or went too early.
#[test]
fn answers_tell_of_broken_rules_where_rows_do_not() {
    for protocol in PROTOCOLS {
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
