//! Open children among faults: nothing of aborted transactions stays, whoever was killed; and rules
//! of theirs that are broken are noticed.

mod broken;
mod row_locks;

use muesli_check::{HandlerStats, RootStats};
use muesli_sim::plan::fault::FaultKinds;
use muesli_workloads::available;
use muesli_workloads::seeded_run::SeededRun;

/// Few keys, so that locks are refused often.
const SET: &str = "objects=24 initial=8 calls=3 reads=20 walks=5 levels=3 rule=random nesting=open";

/// Two changes are open children of one, and a third of the changes are looked at and changed back.
const NESTED: &str = "objects=24 initial=8 calls=4 reads=20 walks=5 rule=random again=30 \
                      nesting=open open=nested";

const TABLE: &str =
    "objects=24 initial=8 calls=3 reads=20 walks=5 buckets=7 rule=random nesting=open";

/// Their children have commit handlers, too.
const COUNTERS: &str = "objects=20 hot=2 calls=2 totals=10 nesting=open handlers=true";

/// Few accounts with little money, so that withdrawals are refused, and all of them read often.
const BANK: &str = "objects=6 initial=60 calls=2 reads=20 totals=20 nesting=open";
/// Half of the transfers are undone once, in closed children around their open ones.
const BANK_UNDONE: &str = "objects=6 initial=60 calls=2 reads=20 totals=20 nesting=open undone=50";
/// Two accounts each trade with each other alone, and the sum of both is known at any time.
const BANK_PAIRS: &str = "objects=6 initial=60 calls=2 reads=40 totals=5 nesting=open pairs=true";
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
        ("score", "bank", BANK_PAIRS),
        ("tfa", "bank", BANK_PAIRS),
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
            transactions_least: 150,
            ..SeededRun::of(available::find(workload).unwrap())
        };
        let trialled = seeded_run.run(1, false).unwrap();
        assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol} {workload}");
    }
}

/// What open children within open children did is undone by their own inverses until the one around
/// them commits, and then by its.
#[test]
fn open_children_of_open_children_leave_nothing_behind_under_all_faults() {
    let (auto, objects) =
        (NESTED.replace("=open ", "=auto "), format!("{NESTED} interface=objects"));
    for (protocol, workload, given) in [
        ("score", "skiplist", NESTED),
        ("tfa", "skiplist", NESTED),
        ("two-phase-commit", "tree", NESTED),
        ("granola-locking", "hashtable", NESTED),
        ("score", "skiplist", &objects),
        ("tfa", "tree", &objects),
        ("score", "skiplist", &auto),
        ("tfa", "list", &auto),
    ] {
        let seeded_run = SeededRun {
            protocol: protocol.to_owned(),
            parameters: parameters(given),
            faults: FaultKinds::all(),
            transactions_least: 120,
            ..SeededRun::of(available::find(workload).unwrap())
        };
        let trialled = seeded_run.run(2, false).unwrap();
        assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol} {workload}");
        assert_eq!(trialled.roots.undecided, 0, "{protocol} {workload}");
        let all = trialled.handlers;
        println!("{protocol} {workload}: {all:?}");
        assert!(all.compensations > 0 || given == auto, "{protocol} {workload}: {all:?}");
    }
}

/// All structures, counters and accounts, in each model, have their roots judged, and decided.
#[test]
fn roots_are_judged_in_every_model() {
    const SMALL: &str = "objects=24 initial=8 calls=3 reads=30 rule=random";
    let sets = ["skiplist", "list", "hashtable", "tree"].map(|name| (name, SMALL));
    let others = [
        ("counters", "objects=20 hot=2 calls=2 totals=5"),
        ("bank", "objects=20 calls=2 totals=5"),
        ("bank", "objects=6 calls=2 reads=20 totals=20 overdraft=true pairs=true"),
        ("loan", "objects=20 lenders=3 reads=20 totals=20"),
    ];
    for (workload, given) in sets.into_iter().chain(others) {
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
    // Seeds in which a client is killed just when something is left to be done.
    let seeds = [("score", None, [5, 6, 8]), ("tfa", Some(1), [4, 7, 12])];
    for (protocol, replicas, seeds) in seeds {
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
