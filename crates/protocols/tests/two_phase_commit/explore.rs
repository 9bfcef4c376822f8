//! Two-phase commit in small scopes: every interleaving.

use muesli_check::Level;
use muesli_protocols::two_phase_commit::TryLocks;

use crate::harness::exploration::Scope;
use crate::two_phase::exploring::{
    CHANGE_AB_AT_0, CHANGE_BC_AT_1, DELETE_A_AT_0, INSERT_A_AT_1, READ_AB_AT_2, SKEW_A_AT_0,
    SKEW_B_AT_1, WRITE_A_AT_1, among_faults, among_two_faults, collecting, hold,
};
use crate::two_phase::nested;

#[test]
fn two_phase_locking_is_strict_for_readers_too() {
    let with_reader = Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_AB_AT_2]);
    let mut scopes = vec![with_reader, Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1])];
    among_faults(&mut scopes, &[SKEW_A_AT_0, SKEW_B_AT_1]);
    among_two_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    scopes.push(Scope { before: vec![WRITE_A_AT_1], ..Scope::of(&[DELETE_A_AT_0, INSERT_A_AT_1]) });
    hold::<TryLocks>("2pc", Level::StrictSerializable, &scopes);
}

#[test]
fn nested_transactions_hold_when_a_child_is_undone() {
    nested::hold_with_partial_aborts::<TryLocks>("2pc_partial_aborts", &nested::WHOLE_ORDER);
}

#[test]
fn without_looks_at_what_was_read_some_attempt_sees_what_it_should_not() {
    nested::looks_are_needed::<TryLocks>(Level::SerializableAttempts);
}

#[test]
fn garbage_is_collected() {
    let scope = collecting(&[DELETE_A_AT_0, INSERT_A_AT_1]);
    hold::<TryLocks>("2pc_garbage", Level::StrictSerializable, &[scope]);
}
