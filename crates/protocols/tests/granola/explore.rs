//! Granola and Sinfonia in small scopes: every interleaving of one-round transactions on two or
//! three repositories, with a crash, a lost or a repeated message at any point.

use Do::Call;
use muesli_check::Level;
use muesli_protocols::granola::{Granola, GranolaSwitch, LockingExit, Ordering, Switches};
use muesli_protocols::two_phase::Sabotage;

use crate::harness::exploration::{Do, Fault, Program, Scope, explore, hold_as_written};

type OneRound = Scope<Granola>;

/// Key a… lives at node 0, b… at node 1, c… at node 2. `bump` is independent where it is of two
/// repositories, `take` is coordinated and may refuse, `look` reads.
const BUMP_AB_AT_0: Program = (0, &[Call("bump", &["a", "b"])]);
const BUMP_AB_AT_1: Program = (1, &[Call("bump", &["a", "b"])]);
const BUMP_BC_AT_1: Program = (1, &[Call("bump", &["b", "c"])]);
const BUMP_CA_AT_2: Program = (2, &[Call("bump", &["c", "a"])]);
const BUMP_A_AT_1: Program = (1, &[Call("bump", &["a"])]);
const BUMP_B_AT_1: Program = (1, &[Call("bump", &["b"])]);
const LOOK_A_AT_2: Program = (2, &[Call("look", &["a"])]);
const LOOK_B_THEN_A_AT_2: Program = (2, &[Call("look", &["b"]), Call("look", &["a"])]);
const BUMP_A_AT_2: Program = (2, &[Call("bump", &["a"])]);
const TAKE_AB_AT_1: Program = (1, &[Call("take", &["a", "b"])]);
const TAKE_AB_AT_2: Program = (2, &[Call("take", &["a", "b"])]);
const LOOK_AB_AT_0: Program = (0, &[Call("look", &["a", "b"])]);
const LOOK_AB_AT_2: Program = (2, &[Call("look", &["a", "b"])]);
/// A session: what it sees first it sees afterwards, elsewhere.
const LOOK_A_THEN_B_AT_2: Program = (2, &[Call("look", &["a"]), Call("look", &["b"])]);

const DROP_AB_AT_2: Program = (2, &[Call("drop", &["a", "b"])]);

const BUMP_A1_AT_1: Program = (1, &[Call("bump", &["a1"])]);
const CHASE_A_A1_AT_1: Program = (1, &[Call("chase", &["a", "a1"])]);

const LIMIT: usize = 60_000;

fn hold(name: &str, scopes: &[OneRound]) {
    hold_as_written(name, scopes, LIMIT);
}

/// Explores a scope in which the checker must notice that a rule is missing, and nothing else.
fn breaks(change: impl Fn(&mut Switches), scope: &OneRound) {
    assert_eq!(explore(scope, LIMIT).violation, None, "with the rule");
    let mut broken = scope.clone();
    change(&mut broken.switches);
    let found = explore(&broken, LIMIT);
    assert!(found.violation.is_some(), "nothing noticed in {} states", found.states);
}

fn of(switches: Switches, programs: &[Program]) -> OneRound {
    Scope { switches, ..Scope::of(programs) }
}

/// Both keys are there to be taken, once.
fn after_one(scope: OneRound) -> OneRound {
    Scope { before: vec![BUMP_AB_AT_0], ..scope }
}

/// Every pair of classes that has something to do with each other.
fn pairs(switches: Switches) -> Vec<OneRound> {
    let pairs = [
        [BUMP_AB_AT_0, BUMP_AB_AT_1],
        [BUMP_AB_AT_0, TAKE_AB_AT_1],
        [BUMP_AB_AT_0, BUMP_A_AT_1],
        [BUMP_AB_AT_0, LOOK_AB_AT_2],
        [BUMP_AB_AT_0, LOOK_A_THEN_B_AT_2],
        [TAKE_AB_AT_1, TAKE_AB_AT_2],
        [TAKE_AB_AT_1, BUMP_A_AT_1],
        [TAKE_AB_AT_1, LOOK_AB_AT_0],
    ];
    pairs.iter().map(|pair| after_one(of(switches, pair))).collect()
}

#[test]
fn pairs_in_both_modes() {
    hold("granola_pairs", &pairs(Switches::default()));
}

#[test]
fn pairs_in_locking_mode() {
    hold("granola_locking_pairs", &pairs(Switches::locking()));
}

#[test]
fn pairs_under_a_master() {
    hold("sinfonia_pairs", &pairs(Switches::sinfonia()));
}

/// A deletion is collected as soon as it is done.
#[test]
fn garbage_is_collected() {
    let all =
        [Switches::default(), Switches::locking(), Switches::out_of_order(), Switches::sinfonia()];
    let of = |switches, programs: &[Program]| {
        after_one(OneRound { collects: true, ..of(switches, programs) })
    };
    let scopes = |switches| {
        [
            of(switches, &[DROP_AB_AT_2, BUMP_AB_AT_1]),
            of(switches, &[DROP_AB_AT_2, LOOK_AB_AT_0]),
            of(switches, &[DROP_AB_AT_2, TAKE_AB_AT_1]),
        ]
    };
    hold("granola_garbage", &all.map(scopes).concat());
}

/// Under a master all transactions are strict.
#[test]
fn real_time_is_respected_under_a_master() {
    let scopes = pairs(Switches::sinfonia()).into_iter();
    let strict = |scope| OneRound { level: Level::StrictSerializable, ..scope };
    hold("sinfonia_strict", &scopes.map(strict).collect::<Vec<_>>());
}

/// Node 3 decides, for all.
fn apart(scope: OneRound) -> OneRound {
    Scope { masters: 1, ..scope }
}

#[test]
fn pairs_under_a_master_on_a_node_of_its_own() {
    let pairs = [
        [BUMP_AB_AT_0, BUMP_A_AT_1],
        [BUMP_AB_AT_0, LOOK_A_THEN_B_AT_2],
        [BUMP_AB_AT_0, LOOK_AB_AT_2],
        [TAKE_AB_AT_1, BUMP_A_AT_1],
    ];
    let scopes = pairs.map(|pair| apart(after_one(of(Switches::sinfonia(), &pair))));
    hold("sinfonia_apart_pairs", &scopes);
}

/// Where the master or a repository crashes two are more than a test has time for.
#[test]
fn one_fault_under_a_master_on_a_node_of_its_own() {
    let scope = |fault, programs: &[Program]| {
        let scope = apart(after_one(of(Switches::sinfonia(), programs)));
        Scope { fault: Some(fault), ..scope }
    };
    let scopes = [
        scope(Fault::Crash(3), &[BUMP_AB_AT_0]),
        scope(Fault::Crash(1), &[BUMP_AB_AT_0]),
        scope(Fault::Crash(0), &[BUMP_AB_AT_0, BUMP_A_AT_1]),
        scope(Fault::Lose, &[BUMP_AB_AT_0, BUMP_A_AT_1]),
        scope(Fault::Repeat, &[BUMP_AB_AT_0, BUMP_A_AT_1]),
        scope(Fault::Repeat, &[TAKE_AB_AT_1, BUMP_A_AT_1]),
    ];
    hold("sinfonia_apart_faults", &scopes);
}

/// One of the two has nothing to take: that is known at its repository alone.
#[test]
fn with_a_master_of_its_own_that_does_not_wait_the_checker_notices() {
    let pair = apart(of(Switches::sinfonia(), &[TAKE_AB_AT_1, LOOK_A_AT_2]));
    let pair = Scope { before: vec![BUMP_A_AT_1], ..pair };
    breaks(|switches| switches.set(GranolaSwitch::MasterWaits, false), &pair);
}

#[test]
fn rings() {
    let before = vec![BUMP_AB_AT_0, BUMP_BC_AT_1, BUMP_CA_AT_2];
    let ring = of(Switches::default(), &[BUMP_AB_AT_0, BUMP_BC_AT_1, BUMP_CA_AT_2]);
    hold("granola_ring", &[Scope { before, ..ring }]);
}

#[test]
fn three() {
    let with = |locking_exit, third| {
        let switches = Switches::default().with_locking_exit(locking_exit);
        after_one(of(switches, &[BUMP_AB_AT_0, TAKE_AB_AT_1, third]))
    };
    let three = [
        with(LockingExit::UndoNow, BUMP_A_AT_2),
        with(LockingExit::UndoOnDemand, BUMP_A_AT_2),
        with(LockingExit::Stay, BUMP_A_AT_2),
        with(LockingExit::UndoNow, LOOK_A_AT_2),
    ];
    hold("granola_three", &three);
}

/// Scopes with one fault at any point.
fn with_faults(switches: Switches) -> Vec<OneRound> {
    let mut scopes = Vec::new();
    for fault in [Fault::Crash(0), Fault::Crash(1), Fault::Lose, Fault::Repeat] {
        for pair in
            [[BUMP_AB_AT_0, BUMP_A_AT_1], [BUMP_AB_AT_0, BUMP_AB_AT_1], [TAKE_AB_AT_1, BUMP_A_AT_1]]
        {
            if matches!(switches.ordering, Ordering::Locks | Ordering::Master)
                && pair[1] == BUMP_AB_AT_1
                && matches!(fault, Fault::Crash(_))
            {
                continue; // Two that are tried again and again: more than a test has time for.
            }
            let scope = after_one(of(switches, &pair));
            scopes.push(Scope { fault: Some(fault), ..scope });
        }
    }
    for fault in [Fault::Outage(0), Fault::Outage(1), Fault::Early] {
        for pair in [[BUMP_AB_AT_0, BUMP_A_AT_1], [TAKE_AB_AT_1, BUMP_A_AT_1]] {
            scopes.push(Scope { fault: Some(fault), ..after_one(of(switches, &pair)) });
        }
    }
    scopes
}

#[test]
fn pairs_with_one_fault() {
    hold("granola_faults", &with_faults(Switches::default()));
}

#[test]
fn pairs_with_one_fault_in_locking_mode() {
    hold("granola_locking_faults", &with_faults(Switches::locking()));
}

#[test]
fn pairs_with_one_fault_under_a_master() {
    hold("sinfonia_faults", &with_faults(Switches::sinfonia()));
}

/// Two faults at any two points. In locking mode one transaction is as much as a test has time for.
fn with_two_faults(switches: Switches, programs: &[Program]) -> Vec<OneRound> {
    let faults = [
        (Fault::Crash(0), Fault::Crash(1)),
        (Fault::Lose, Fault::Outage(0)),
        (Fault::Repeat, Fault::Early),
    ];
    let with = |(fault, second)| OneRound {
        fault: Some(fault),
        second: Some(second),
        ..after_one(of(switches, programs))
    };
    faults.map(with).into()
}

#[test]
fn two_faults() {
    let pair = [BUMP_AB_AT_0, BUMP_A_AT_1];
    hold("granola_two_faults", &with_two_faults(Switches::default(), &pair));
    hold("sinfonia_two_faults", &with_two_faults(Switches::sinfonia(), &[TAKE_AB_AT_1]));
}

/// One of two repositories, and two of r0 alone, on the same keys of r0 or on others.
fn who_may_pass(switches: Switches) -> Vec<OneRound> {
    let programs =
        [[BUMP_CA_AT_2, BUMP_A1_AT_1, LOOK_A_AT_2], [BUMP_CA_AT_2, CHASE_A_A1_AT_1, BUMP_A1_AT_1]];
    programs.iter().map(|three| of(switches, three)).collect()
}

#[test]
fn who_passes_the_head_of_the_queue() {
    let mut scopes = who_may_pass(Switches::out_of_order());
    for fault in [Fault::Crash(0), Fault::Lose, Fault::Repeat] {
        let pair = of(Switches::out_of_order(), &[BUMP_AB_AT_0, BUMP_A1_AT_1]);
        scopes.push(Scope { fault: Some(fault), ..ahead(pair) });
    }
    hold("granola_passing", &scopes);
}

/// Those of r0 alone come at one time or another, on the same key or on different ones.
fn who_runs_in_parallel(switches: Switches) -> Vec<OneRound> {
    let three = [BUMP_A_AT_1, BUMP_A1_AT_1, LOOK_A_AT_2];
    let mut scopes = vec![of(switches, &three), of(switches, &[BUMP_A_AT_1, BUMP_A_AT_2])];
    scopes.push(ahead(of(switches, &[BUMP_AB_AT_0, BUMP_A1_AT_1])));
    for fault in [Fault::Crash(0), Fault::Lose, Fault::Repeat] {
        let pair = of(switches, &[BUMP_A1_AT_1, BUMP_A_AT_2]);
        scopes.push(Scope { fault: Some(fault), ..pair });
    }
    scopes.into_iter().map(|scope| Scope { at_once: 3, ..scope }).collect()
}

#[test]
fn who_is_run_at_the_same_time() {
    hold("granola_together", &who_runs_in_parallel(Switches::default()));
    hold("granola_together_passing", &who_runs_in_parallel(Switches::out_of_order()));
}

#[test]
fn with_those_run_together_that_conflict_the_checker_notices() {
    for switches in [Switches::default(), Switches::out_of_order()] {
        let pair = Scope { at_once: 2, ..of(switches, &[BUMP_A_AT_1, BUMP_A_AT_2]) };
        breaks(|switches| switches.set(GranolaSwitch::ParallelApart, false), &pair);
    }
}

const SHARE_AB_AT_0: Program = (0, &[Call("share", &["a", "b"])]);
const SHARE_AB_AT_2: Program = (2, &[Call("share", &["a", "b"])]);
const SHARE_BA_AT_1: Program = (1, &[Call("share", &["b", "a"])]);

#[test]
fn who_shares_what_it_has() {
    let pairs = [
        [SHARE_AB_AT_0, SHARE_BA_AT_1],
        [SHARE_AB_AT_0, SHARE_AB_AT_2],
        [SHARE_AB_AT_0, BUMP_A_AT_1],
        [SHARE_AB_AT_2, TAKE_AB_AT_1],
        [SHARE_AB_AT_2, LOOK_AB_AT_0],
    ];
    let switches = Switches::sharing();
    let of_pair = |pair: &[Program; 2]| after_one(of(switches, pair));
    let mut scopes: Vec<_> = pairs.iter().map(of_pair).collect();
    for fault in [Fault::Crash(0), Fault::Lose, Fault::Repeat] {
        let pair = of_pair(&[SHARE_AB_AT_2, BUMP_A_AT_1]);
        scopes.push(Scope { fault: Some(fault), ..pair });
    }
    hold("granola_telling", &scopes);
}

/// r1's proposals are ahead of r0's.
fn ahead(scope: OneRound) -> OneRound {
    Scope { before: vec![BUMP_AB_AT_0, BUMP_B_AT_1, BUMP_B_AT_1, BUMP_B_AT_1], ..scope }
}

fn two() -> OneRound {
    of(Switches::default(), &[BUMP_AB_AT_0, BUMP_AB_AT_1])
}

#[test]
fn without_the_order_of_timestamps_the_checker_notices() {
    breaks(|switches| switches.set(GranolaSwitch::InOrder, false), &ahead(two()));
}

#[test]
fn without_what_sessions_have_seen_the_checker_notices() {
    let pair = [BUMP_AB_AT_0, LOOK_B_THEN_A_AT_2];
    breaks(
        |switches| switches.set(GranolaSwitch::CarriesLowerBound, false),
        &ahead(of(Switches::default(), &pair)),
    );
}

#[test]
fn without_a_look_at_what_its_session_has_seen_a_reader_is_noticed() {
    let pair = [BUMP_AB_AT_0, LOOK_B_THEN_A_AT_2];
    breaks(
        |switches| switches.set(GranolaSwitch::ReadersCheck, false),
        &ahead(of(Switches::default(), &pair)),
    );
}

#[test]
fn with_bounds_of_votes_out_of_order_the_checker_notices() {
    let lossy = Scope { fault: Some(Fault::Lose), ..after_one(two()) };
    breaks(|switches| switches.set(GranolaSwitch::BoundsInOrder, false), &lossy);
}

#[test]
fn with_who_passes_those_it_conflicts_with_the_checker_notices() {
    let three = [BUMP_AB_AT_1, BUMP_AB_AT_0, LOOK_A_THEN_B_AT_2];
    breaks(
        |switches| switches.set(GranolaSwitch::OutOfOrderApart, false),
        &ahead(of(Switches::out_of_order(), &three)),
    );
}

#[test]
fn without_locks_for_what_was_voted_on_the_checker_notices() {
    breaks(
        |switches| switches.set(GranolaSwitch::LocksQueued, false),
        &ahead(of(Switches::default(), &[BUMP_AB_AT_0, TAKE_AB_AT_1])),
    );
}
