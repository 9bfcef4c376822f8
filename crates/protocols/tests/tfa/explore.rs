//! TFA in small scopes, flat and with children: every interleaving.

use Do::{Get, Merge, Nest, Put};
use muesli_check::Level;
use muesli_protocols::tfa::{OwnedObjects, Switches};
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, TwoPhase};

use crate::harness::exploration::{Do, Program, Scope, explore};
use crate::two_phase::exploring::{
    CHANGE_AB_AT_0, LIMIT, READ_AB_AT_2, SKEW_A_AT_0, SKEW_B_AT_1, WRITE_A_AT_1, among_faults, hold,
};

/// Two objects, a at node 0 and b at node 1; each transaction reads one of them in a child, and
/// then both.
const NESTED_AT_0: Program = (0, &[Nest, Get("b"), Merge, Nest, Get("a"), Put("a"), Merge]);
const NESTED_AT_1: Program = (1, &[Nest, Get("a"), Put("a"), Get("b"), Put("b"), Merge]);
/// Two levels, of which each reads.
const TWO_LEVELS_AT_1: Program = (1, &[Nest, Get("b"), Nest, Get("a"), Put("b"), Merge, Merge]);

#[test]
fn committed_transactions_are_strict_for_readers_too() {
    let with_reader = Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_AB_AT_2]);
    let mut scopes = vec![with_reader, Scope::of(&[NESTED_AT_0, NESTED_AT_1])];
    scopes.push(Scope::of(&[CHANGE_AB_AT_0, TWO_LEVELS_AT_1]));
    among_faults(&mut scopes, &[NESTED_AT_0, WRITE_A_AT_1]);
    hold::<OwnedObjects>("tfa", Level::StrictSerializable, &scopes);
}

#[test]
fn every_attempt_sees_the_database_as_it_once_was() {
    let scopes = [
        Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_AB_AT_2]),
        Scope::of(&[NESTED_AT_0, NESTED_AT_1]),
        Scope::of(&[CHANGE_AB_AT_0, TWO_LEVELS_AT_1]),
    ];
    hold::<OwnedObjects>("tfa_attempts", Level::SerializableAttempts, &scopes);
}

/// What is found with one rule broken.
fn violation(programs: &[Program], level: Level, broken: FamilySwitch) -> Option<String> {
    let switches = Switches::staying().without(broken);
    let scope = Scope::<TwoPhase<OwnedObjects>> { switches, level, ..Scope::of(programs) };
    explore(&scope, LIMIT).violation
}

#[test]
fn a_snapshot_that_moves_without_a_look_is_noticed() {
    let programs = [NESTED_AT_0, NESTED_AT_1];
    let found = violation(&programs, Level::SerializableAttempts, FamilySwitch::MovesValidated);
    assert!(found.is_some());
}
