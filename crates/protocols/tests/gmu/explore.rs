//! GMU in small scopes: every interleaving, with its rules and without them.

use Do::{Delete, Get, Merge, Nest, Put, ReadOnly, Scan, Strict};
use muesli_check::Level;
use muesli_protocols::gmu::{GmuSwitch, Switches, Vectors};
use muesli_protocols::two_phase::{self, Sabotage, TwoPhase};

use crate::harness::exploration::{Do, Fault, Program, Scope, explore, hold_as_written};
use crate::two_phase::nested;

type GmuScope = Scope<TwoPhase<Vectors>>;

/// Key a… lives at node 0, b… at node 1, c… at node 2.
const CHANGE_AB_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a"), Put("b")]);
const CHANGE_BC_AT_1: Program = (1, &[Get("b"), Get("c"), Put("b"), Put("c")]);
const WRITE_AB_AT_0: Program = (0, &[Put("a"), Put("b")]);
const WRITE_AB_AT_2: Program = (2, &[Put("a"), Put("b")]);
const WRITE_A_AT_0: Program = (0, &[Put("a")]);
const WRITE_B_AT_1: Program = (1, &[Put("b")]);
const SKEW_A_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a")]);
const SKEW_B_AT_1: Program = (1, &[Get("a"), Get("b"), Put("b")]);
const READ_AB_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b")]);
const READ_BA_AT_2: Program = (2, &[ReadOnly, Get("b"), Get("a")]);
const READ_AB_AT_1: Program = (1, &[ReadOnly, Get("a"), Get("b")]);
const READ_BA_STRICTLY_AT_2: Program = (2, &[Strict, Get("b"), Get("a")]);
const SCAN_AB_AT_2: Program = (2, &[ReadOnly, Scan("a", "c")]);
const SCAN_ABC_AT_1: Program = (1, &[ReadOnly, Scan("a", "d")]);
const SCAN_AB_WRITE_A_AT_1: Program = (1, &[Scan("a", "c"), Put("a1")]);

const DELETE_AB_AT_0: Program = (0, &[Get("a"), Delete("a"), Delete("b")]);
const INSERT_AB_AT_1: Program = (1, &[Get("b"), Put("a"), Put("b")]);

const LIMIT: usize = 300_000;

fn eus(programs: &[Program]) -> GmuScope {
    Scope { level: Level::Eus, ..Scope::of(programs) }
}

fn hold(name: &str, scopes: &[GmuScope]) {
    for found in hold_as_written(&format!("gmu_{name}"), scopes, LIMIT) {
        assert!(found.outcomes.len() > 1, "more than one end: {:?}", found.outcomes);
    }
}

fn breaks(change: impl Fn(&mut Switches), scope: &GmuScope) {
    let mut scope = scope.clone();
    change(&mut scope.switches);
    let found = explore(&scope, LIMIT);
    assert!(found.violation.is_some(), "nothing noticed in {} states", found.states);
}

#[test]
fn updates_and_readers() {
    let scopes = [
        eus(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]),
        eus(&[SKEW_A_AT_0, SKEW_B_AT_1]),
        eus(&[WRITE_AB_AT_0, SKEW_B_AT_1]),
        eus(&[WRITE_AB_AT_0, READ_AB_AT_2]),
        eus(&[WRITE_AB_AT_0, READ_BA_AT_2]),
        eus(&[WRITE_AB_AT_2, READ_AB_AT_1]),
        eus(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1, READ_AB_AT_2]),
        eus(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_BA_AT_2]),
        eus(&[WRITE_AB_AT_0, WRITE_AB_AT_2, READ_AB_AT_1]),
        eus(&[WRITE_AB_AT_0, SCAN_AB_AT_2]),
        eus(&[WRITE_AB_AT_0, SCAN_AB_WRITE_A_AT_1]),
    ];
    hold("updates_and_readers", &scopes);
}

/// A scan asks its repositories side by side.
#[test]
fn first_reads_side_by_side() {
    let scopes = [
        eus(&[WRITE_AB_AT_2, SCAN_AB_AT_2]),
        eus(&[WRITE_A_AT_0, WRITE_B_AT_1, SCAN_AB_AT_2]),
        eus(&[CHANGE_AB_AT_0, SCAN_ABC_AT_1]),
        eus(&[CHANGE_BC_AT_1, WRITE_A_AT_0, SCAN_ABC_AT_1]),
        GmuScope { replicas: 2, ..eus(&[WRITE_A_AT_0, SCAN_AB_AT_2]) },
    ];
    hold("first_reads_side_by_side", &scopes);
    breaks(
        |switches| switches.set(GmuSwitch::FitsSideBySide, false),
        &eus(&[WRITE_AB_AT_0, SCAN_AB_AT_2]),
    );
}

#[test]
fn two_replicas() {
    let of = |programs: &[Program]| GmuScope { replicas: 2, ..eus(programs) };
    hold("two_replicas", &[of(&[WRITE_A_AT_0, READ_AB_AT_2]), of(&[WRITE_A_AT_0, SKEW_B_AT_1])]);
}

#[test]
fn one_fault() {
    let with = |fault| GmuScope { fault: Some(fault), ..eus(&[WRITE_AB_AT_0, READ_BA_AT_2]) };
    let crashes = [Fault::Crash(0), Fault::Crash(1), Fault::Outage(0), Fault::Outage(1)];
    let others = [Fault::Lose, Fault::Repeat, Fault::Early];
    let scopes: Vec<_> = crashes.into_iter().chain(others).map(with).collect();
    hold("one_fault", &scopes);
}

#[test]
fn two_faults() {
    let faults = [(Fault::Crash(0), Fault::Crash(1)), (Fault::Lose, Fault::Outage(0))];
    let with = |(fault, second)| GmuScope {
        fault: Some(fault),
        second: Some(second),
        ..eus(&[WRITE_AB_AT_0, READ_BA_AT_2])
    };
    hold("two_faults", &faults.map(with));
}

#[test]
fn keys_come_and_go() {
    let two = || GmuScope { before: vec![WRITE_AB_AT_2], ..eus(&[DELETE_AB_AT_0, INSERT_AB_AT_1]) };
    let mut scopes = vec![two()];
    for fault in [Fault::Crash(0), Fault::Lose] {
        scopes.push(GmuScope { fault: Some(fault), ..two() });
    }
    hold("come_and_go", &scopes);
}

#[test]
fn garbage_is_collected() {
    let of = |programs: &[Program]| GmuScope {
        before: [[WRITE_B_AT_1, WRITE_AB_AT_0].as_slice(), &[WRITE_AB_AT_2].repeat(4)].concat(),
        collects: true,
        ..eus(programs)
    };
    hold("garbage", &[of(&[DELETE_AB_AT_0, INSERT_AB_AT_1]), of(&[DELETE_AB_AT_0, READ_AB_AT_1])]);
}

/// A strict reader beside two writers, of which it may miss the first and see the second.
fn strict_reader() -> GmuScope {
    let programs = [WRITE_A_AT_0, WRITE_B_AT_1, READ_BA_STRICTLY_AT_2];
    GmuScope { level: Level::StrictSerializable, ..Scope::of(&programs) }
}

#[test]
fn a_strict_reader_respects_real_time() {
    hold("strict", &[strict_reader()]);
    breaks(
        |switches| switches.set(two_phase::FamilySwitch::ValidatesStrict, false),
        &strict_reader(),
    );
}

#[test]
fn two_readers_may_see_two_orders() {
    let programs = [WRITE_A_AT_0, WRITE_B_AT_1, READ_AB_AT_2, READ_BA_AT_2];
    hold("two_orders", &[eus(&programs)]);
    let serial: GmuScope = Scope::of(&programs);
    assert!(explore(&serial, LIMIT).violation.is_some(), "it is not serializable");
}

#[test]
fn without_the_wait() {
    breaks(
        |switches| switches.set(GmuSwitch::ReadsWait, false),
        &eus(&[WRITE_AB_AT_0, READ_AB_AT_2]),
    );
    breaks(
        |switches| switches.set(GmuSwitch::LocalReadsWait, false),
        &eus(&[WRITE_AB_AT_2, READ_AB_AT_1]),
    );
}

#[test]
fn without_validation() {
    breaks(
        |switches| switches.set(two_phase::FamilySwitch::Validate, false),
        &eus(&[SKEW_A_AT_0, SKEW_B_AT_1]),
    );
}

/// Updates are in the order of real time, and all that was seen until a partial abort is of some
/// order of them.
#[test]
fn nested_transactions_hold_when_a_child_is_undone() {
    let levels = &[Level::StrictSerializable, Level::Eus];
    nested::hold_with_partial_aborts::<Vectors>("gmu_partial_aborts", levels);
}

/// The parent has read a, which the child's first read of b may depend on. The child finds c newer
/// than its snapshot where the third transaction has changed it.
const PARENT_OF_A_AT_0: Program =
    (0, &[Get("a"), Put("a1"), Nest, Get("b"), Get("c"), Put("c1"), Merge]);
const CHANGE_CB_AT_2: Program = (2, &[Get("c"), Put("c"), Put("b")]);
const WRITE_C_AT_1: Program = (1, &[Put("c")]);
/// Both levels have read what the other transaction overwrites, when the inner one meets a.
const TWO_LEVELS_AT_1: Program =
    (1, &[Put("b"), Nest, Get("b2"), Nest, Get("b1"), Get("a"), Merge, Merge]);
const WRITE_ABB_AT_0: Program = (0, &[Put("a"), Put("b1"), Put("b2")]);

/// Looks at three repositories fit each other, or are made once more.
#[test]
fn snapshots_that_move_are_of_one_moment() {
    let two = [PARENT_OF_A_AT_0, CHANGE_CB_AT_2];
    let three = [PARENT_OF_A_AT_0, CHANGE_CB_AT_2, WRITE_C_AT_1];
    let strict = GmuScope { level: Level::StrictSerializable, ..Scope::of(&two) };
    for found in hold_as_written("gmu_moves", &[strict, eus(&two), eus(&three)], LIMIT) {
        assert!(found.partial_aborts.keys().any(|undone| *undone > 0), "children are undone");
    }
}

#[test]
fn without_looks_at_all_that_was_read() {
    let nested = eus(&[PARENT_OF_A_AT_0, WRITE_AB_AT_2]);
    breaks(|switches| switches.set(two_phase::FamilySwitch::MovesValidated, false), &nested);
    let levels = [WRITE_ABB_AT_0, TWO_LEVELS_AT_1];
    for switch in
        [two_phase::FamilySwitch::MovesAllLevels, two_phase::FamilySwitch::UndoesOutermost]
    {
        breaks(|switches| switches.set(switch, false), &eus(&levels));
    }
    assert_eq!(explore(&eus(&levels), LIMIT).violation, None);
}
