//! Validation by a tree in small scopes: every interleaving.

use muesli_check::Level;
use muesli_protocols::hierarchy::{Exclusion, Leaves, Switches};

use crate::harness::exploration::{Do, Fault, Program, Scope, hold_as_written};
use crate::scopes::{TreeScope, all_by_locks, scope};
use crate::two_phase::exploring::{
    CHANGE_AB_AT_0, CHANGE_BC_AT_1, DELETE_A_AT_0, INSERT_A_AT_1, LIMIT, READ_AB_AT_2, SKEW_A_AT_0,
    SKEW_B_AT_1, WRITE_A_AT_0, WRITE_A_AT_1, among_faults, among_two_faults, collecting, hold,
};
use crate::two_phase::nested;

const WRITE_AB_AT_0: Program = (0, &[Do::Put("a"), Do::Put("b")]);
const WRITE_AB_AT_1: Program = (1, &[Do::Put("a"), Do::Put("b")]);
const WRITE_AC_AT_2: Program = (2, &[Do::Put("a"), Do::Put("c")]);
const SCAN_AB_WRITE_C_AT_2: Program = (2, &[Do::Scan("a", "c"), Do::Put("c")]);
const COPY_A_TO_C_AT_2: Program = (2, &[Do::Get("a"), Do::Put("c")]);

/// Below the validator of node 1 are a and b; what all three decide goes down to them by that one.
const WRITE_ABC_AT_2: Program = (2, &[Do::Put("a"), Do::Put("b"), Do::Put("c")]);
const READ_A_AT_0: Program = (0, &[Do::ReadOnly, Do::Get("a")]);

/// The same with a root alone, and with two levels of validators.
fn both(scopes: impl IntoIterator<Item = TreeScope>) -> Vec<TreeScope> {
    let both = |scope: TreeScope| [Scope { two_levels: true, ..scope.clone() }, scope];
    scopes.into_iter().flat_map(both).collect()
}

fn pairs() -> Vec<TreeScope> {
    both([
        scope(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]),
        scope(&[SKEW_A_AT_0, SKEW_B_AT_1]),
        scope(&[WRITE_AB_AT_0, READ_AB_AT_2]),
        scope(&[WRITE_AB_AT_0, SCAN_AB_WRITE_C_AT_2]),
        scope(&[COPY_A_TO_C_AT_2, WRITE_A_AT_0]),
    ])
}

fn faults() -> Vec<TreeScope> {
    let mut scopes = Vec::new();
    among_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    among_two_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    both(scopes)
}

#[test]
fn pairs_with_intervals() {
    hold("hierarchy", Level::Serializable, &pairs());
}

#[test]
fn pairs_with_locks() {
    hold("hierarchy_locking", Level::Serializable, &all_by_locks(pairs()));
}

/// Nobody is refused for a key that others are about to write.
#[test]
fn blind_writers_of_one_key_all_commit_with_intervals() {
    let scopes = [
        scope(&[WRITE_AB_AT_0, WRITE_AC_AT_2]),
        scope(&[WRITE_AB_AT_0, WRITE_AB_AT_1, READ_AB_AT_2]),
    ];
    for found in hold_as_written("hierarchy_blind", &scopes, LIMIT) {
        let all_write = |ends: &String| ends.contains("t1 wrote, t2 wrote");
        assert!(found.outcomes.keys().all(all_write), "{:?}", found.outcomes);
    }
}

#[test]
fn faults_with_intervals() {
    hold("hierarchy_faults", Level::Serializable, &faults());
}

#[test]
fn faults_with_locks() {
    hold("hierarchy_locking_faults", Level::Serializable, &all_by_locks(faults()));
}

fn on_the_way_down(faults: impl IntoIterator<Item = Fault>) -> Vec<TreeScope> {
    let programs = [WRITE_ABC_AT_2, READ_A_AT_0];
    let among = |fault| Scope { two_levels: true, fault: Some(fault), ..scope(&programs) };
    faults.into_iter().map(among).collect()
}

/// Who decides, who passes the decision on, or a message between them is gone.
#[test]
fn decisions_go_down_among_faults_with_intervals() {
    let faults = [Fault::Crash(0), Fault::Crash(1), Fault::Lose, Fault::Repeat, Fault::Early];
    hold("hierarchy_down", Level::Serializable, &on_the_way_down(faults));
}

#[test]
fn decisions_go_down_among_faults_with_locks() {
    let scopes = all_by_locks(on_the_way_down([Fault::Lose]));
    hold("hierarchy_locking_down", Level::Serializable, &scopes);
}

#[test]
fn nested_transactions_hold_when_a_child_is_undone() {
    let levels = &[Level::Serializable, Level::SerializableAttempts];
    nested::hold_with_partial_aborts::<Leaves>("hierarchy_partial_aborts", levels);
    let by_locks = |switches: &mut Switches| switches.choice.exclusion = Exclusion::ByLocks;
    let found = nested::hold_nested::<Leaves>("hierarchy_locking_partial_aborts", levels, by_locks);
    found.iter().for_each(|(scope, found)| nested::assert_rolls_back(scope, found));
}

#[test]
fn without_looks_at_what_was_read_some_attempt_sees_what_it_should_not() {
    nested::looks_are_needed::<Leaves>(Level::SerializableAttempts);
}

#[test]
fn garbage_is_collected() {
    let scopes = [collecting(&[DELETE_A_AT_0, INSERT_A_AT_1])];
    hold("hierarchy_garbage", Level::Serializable, &scopes);
    hold("hierarchy_locking_garbage", Level::Serializable, &all_by_locks(scopes));
}
