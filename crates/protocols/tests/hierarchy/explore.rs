//! Validation by a tree in small scopes: every interleaving, with its rules and without them.

use muesli_check::Level;
use muesli_protocols::hierarchy::{HierarchySwitch, Intervals};
use muesli_protocols::hierarchy_locking::LockingLeaves;
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, TwoPhase, Variant};

use crate::harness::exploration::{Do, Program, Scope, explore, hold_as_written};
use crate::two_phase::exploring::{
    CHANGE_AB_AT_0, CHANGE_BC_AT_1, DELETE_A_AT_0, INSERT_A_AT_1, LIMIT, READ_AB_AT_2, SKEW_A_AT_0,
    SKEW_B_AT_1, WRITE_A_AT_0, WRITE_A_AT_1, among_faults, among_two_faults, collecting, hold,
};

const WRITE_AB_AT_0: Program = (0, &[Do::Put("a"), Do::Put("b")]);
const WRITE_AB_AT_1: Program = (1, &[Do::Put("a"), Do::Put("b")]);
const WRITE_AC_AT_2: Program = (2, &[Do::Put("a"), Do::Put("c")]);
const SCAN_AB_WRITE_C_AT_2: Program = (2, &[Do::Scan("a", "c"), Do::Put("c")]);
const READ_ABC_AT_0: Program = (0, &[Do::ReadOnly, Do::Get("a"), Do::Get("b"), Do::Get("c")]);
const WRITE_BC_AT_2: Program = (2, &[Do::Put("b"), Do::Put("c")]);
const COPY_A_TO_B_AT_1: Program = (1, &[Do::Get("a"), Do::Put("b")]);
const COPY_A_TO_C_AT_2: Program = (2, &[Do::Get("a"), Do::Put("c")]);

/// The same with a root alone, and with two levels of validators.
fn both<V: Variant<Service: Clone>>(
    scopes: impl IntoIterator<Item = Scope<TwoPhase<V>>>,
) -> Vec<Scope<TwoPhase<V>>> {
    let both = |scope: Scope<_>| [Scope { two_levels: true, ..scope.clone() }, scope];
    scopes.into_iter().flat_map(both).collect()
}

fn pairs<V: Variant<Service: Clone>>() -> Vec<Scope<TwoPhase<V>>> {
    both([
        Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]),
        Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]),
        Scope::of(&[WRITE_AB_AT_0, READ_AB_AT_2]),
        Scope::of(&[WRITE_AB_AT_0, SCAN_AB_WRITE_C_AT_2]),
        Scope::of(&[COPY_A_TO_C_AT_2, WRITE_A_AT_0]),
    ])
}

fn faults<V: Variant<Service: Clone>>() -> Vec<Scope<TwoPhase<V>>> {
    let mut scopes = Vec::new();
    among_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    among_two_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    both(scopes)
}

#[test]
fn pairs_with_intervals() {
    hold::<Intervals>("hierarchy", Level::Serializable, &pairs());
}

#[test]
fn pairs_with_locks() {
    hold::<LockingLeaves>("hierarchy_locking", Level::Serializable, &pairs());
}

/// Nobody is refused for a key that others are about to write.
#[test]
fn blind_writers_of_one_key_all_commit_with_intervals() {
    let scopes = [
        Scope::<TwoPhase<Intervals>>::of(&[WRITE_AB_AT_0, WRITE_AC_AT_2]),
        Scope::of(&[WRITE_AB_AT_0, WRITE_AB_AT_1, READ_AB_AT_2]),
    ];
    for found in hold_as_written("hierarchy_blind", &scopes, LIMIT) {
        let all_write = |ends: &String| ends.contains("t1 wrote, t2 wrote");
        assert!(found.outcomes.keys().all(all_write), "{:?}", found.outcomes);
    }
}

#[test]
fn faults_with_intervals() {
    hold::<Intervals>("hierarchy_faults", Level::Serializable, &faults());
}

#[test]
fn faults_with_locks() {
    hold::<LockingLeaves>("hierarchy_locking_faults", Level::Serializable, &faults());
}

#[test]
fn garbage_is_collected() {
    let scope = collecting(&[DELETE_A_AT_0, INSERT_A_AT_1]);
    hold::<Intervals>("hierarchy_garbage", Level::Serializable, &[scope]);
    let scope = collecting(&[DELETE_A_AT_0, INSERT_A_AT_1]);
    hold::<LockingLeaves>("hierarchy_locking_garbage", Level::Serializable, &[scope]);
}

/// Whether something is noticed in one of these scopes without a rule.
fn is_noticed<V: Variant<Service: Clone>>(
    scopes: &[Scope<TwoPhase<V>>],
    change: impl Fn(&mut V::Switches),
) -> bool {
    scopes.iter().any(|scope| {
        let mut scope = scope.clone();
        change(&mut scope.switches);
        explore(&scope, LIMIT).violation.is_some()
    })
}

#[test]
fn each_rule_is_needed_with_intervals() {
    let updates = [
        Scope::of(&[COPY_A_TO_C_AT_2, WRITE_A_AT_0, READ_AB_AT_2]),
        Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]),
        Scope::of(&[WRITE_AB_AT_0, READ_AB_AT_2]),
        Scope { before: vec![WRITE_A_AT_1; 2], ..Scope::of(&[READ_ABC_AT_0, WRITE_BC_AT_2]) },
    ];
    let broken = |switch| is_noticed::<Intervals>(&updates, |switches| switches.set(switch, false));
    assert!(broken(FamilySwitch::LockReads), "no pending-writer test");
    assert!(broken(FamilySwitch::Validate), "no test whether reads are current");
    assert!(broken(FamilySwitch::ReadsRaise), "no raise before answering");
    assert!(broken(FamilySwitch::ReadsWait), "tentative versions are not waited for");
    // The clock where b is written is far ahead of that where a is read.
    let before = vec![WRITE_BC_AT_2; 3];
    let apart = Scope { before, ..Scope::of(&[COPY_A_TO_B_AT_1, WRITE_A_AT_0, READ_AB_AT_2]) };
    hold::<Intervals>("hierarchy_clocks_apart", Level::Serializable, std::slice::from_ref(&apart));
    let intervals = is_noticed::<Intervals>(&[apart], |switches| {
        switches.set(HierarchySwitch::WritersAboveIntervals, false);
    });
    assert!(intervals, "no interval");
}

#[test]
fn each_rule_is_needed_with_locks() {
    let updates = [
        Scope::of(&[COPY_A_TO_C_AT_2, WRITE_A_AT_0, READ_AB_AT_2]),
        Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]),
        Scope::of(&[WRITE_AB_AT_0, READ_AB_AT_2]),
        Scope { before: vec![WRITE_A_AT_1; 2], ..Scope::of(&[READ_ABC_AT_0, WRITE_BC_AT_2]) },
    ];
    let broken =
        |switch| is_noticed::<LockingLeaves>(&updates, |switches| switches.set(switch, false));
    assert!(broken(FamilySwitch::LockReads), "no locks of what was read");
    assert!(broken(FamilySwitch::Validate), "no test whether reads are current");
    assert!(broken(FamilySwitch::ReadsRaise), "no raise before answering");
    assert!(broken(FamilySwitch::ReadsWait), "tentative versions are not waited for");
}
