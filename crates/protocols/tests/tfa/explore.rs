//! TFA in small scopes, flat and with children: every interleaving.

use Do::{Delete, Get, Merge, Nest, Put, ReadOnly};
use muesli_check::Level;
use muesli_protocols::tfa::OwnedObjects;
use muesli_protocols::two_phase::TwoPhase;

use crate::harness::exploration::{Do, Fault, Found, Program, Scope, hold_as_written};
use crate::two_phase::exploring::{
    CHANGE_AB_AT_0, DELETE_A_AT_0, INSERT_A_AT_1, LIMIT, READ_AB_AT_2, SKEW_A_AT_0, SKEW_B_AT_1,
    WRITE_A_AT_1, among_faults, among_two_faults, hold,
};
use crate::two_phase::nested;

/// Two objects, a at node 0 and b at node 1; each transaction reads one of them in a child, and
/// then both.
pub(super) const NESTED_AT_0: Program =
    (0, &[Nest, Get("b"), Merge, Nest, Get("a"), Put("a"), Merge]);
pub(super) const NESTED_AT_1: Program = (1, &[Nest, Get("a"), Put("a"), Get("b"), Put("b"), Merge]);
/// Two levels, of which each reads.
const TWO_LEVELS_AT_1: Program = (1, &[Nest, Get("b"), Nest, Get("a"), Put("b"), Merge, Merge]);

/// Key a moves from node 0, where it is placed.
pub(super) const TAKE_A_AT_0: Program = (0, &[Get("a"), Put("a")]);
pub(super) const TAKE_A_AT_1: Program = (1, &[Get("a"), Put("a")]);
pub(super) const TAKE_A_AT_2: Program = (2, &[Get("a"), Put("a")]);
const READ_A_AT_0: Program = (0, &[ReadOnly, Get("a")]);
const READ_A_AT_1: Program = (1, &[ReadOnly, Get("a")]);
const READ_AB_AT_0: Program = (0, &[ReadOnly, Get("a"), Get("b")]);
const TAKE_AB_AT_2: Program = (2, &[Get("a"), Get("b"), Put("a"), Put("b")]);
pub(super) const READ_A_AT_2: Program = (2, &[ReadOnly, Get("a")]);
const DELETE_A_AT_2: Program = (2, &[Get("a"), Delete("a")]);

#[test]
fn committed_transactions_are_strict_for_readers_too() {
    let with_reader = Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_AB_AT_2]);
    let mut scopes = vec![with_reader, Scope::of(&[NESTED_AT_0, NESTED_AT_1])];
    scopes.push(Scope::of(&[CHANGE_AB_AT_0, TWO_LEVELS_AT_1]));
    among_faults(&mut scopes, &[NESTED_AT_0, WRITE_A_AT_1]);
    among_two_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    hold::<OwnedObjects>("tfa", Level::StrictSerializable, &scopes);
}

/// They hold, though some of them end in one way alone.
pub(super) fn strictly(
    name: &str,
    mut scopes: Vec<Scope<TwoPhase<OwnedObjects>>>,
) -> Vec<(String, Found)> {
    scopes.iter_mut().for_each(|scope| scope.level = Level::StrictSerializable);
    let found = hold_as_written(name, &scopes, LIMIT);
    scopes.iter().map(Scope::title).zip(found).collect()
}

#[test]
fn a_key_that_moved_is_found_where_it_is() {
    let before = vec![TAKE_A_AT_1];
    let of = |programs: &[Program]| Scope { before: before.clone(), ..Scope::of(programs) };
    let mut scopes = vec![
        of(&[TAKE_A_AT_2, READ_A_AT_2]),
        of(&[TAKE_A_AT_2, TAKE_A_AT_1]),
        of(&[DELETE_A_AT_0, INSERT_A_AT_1]),
        of(&[DELETE_A_AT_2, TAKE_A_AT_1]),
    ];
    let mut faulty = Vec::new();
    among_faults(&mut faulty, &[TAKE_A_AT_2]);
    scopes.extend(faulty.into_iter().map(|scope| Scope { before: before.clone(), ..scope }));
    strictly("tfa_moved", scopes);
}

#[test]
fn keys_are_found_and_whole_when_the_committer_that_takes_them_crashes() {
    let of = |fault: Fault, programs: &[Program]| Scope {
        fault: Some(fault),
        before: vec![TAKE_A_AT_1],
        ..Scope::of(programs)
    };
    let scopes = vec![
        of(Fault::Crash(2), &[TAKE_A_AT_2, READ_A_AT_0]),
        of(Fault::Outage(2), &[TAKE_A_AT_2, READ_A_AT_0]),
        of(Fault::Crash(2), &[TAKE_AB_AT_2, CHANGE_AB_AT_0]),
        of(Fault::Outage(2), &[TAKE_AB_AT_2, READ_AB_AT_0]),
    ];
    for (title, found) in strictly("tfa_committer_crashes", scopes) {
        let ends = |seen: &str| found.outcomes.keys().any(|it| it.starts_with(seen));
        assert!(ends("t1 was lost, t2 saw t1"), "{title}: what was handed over: {found:?}");
        assert!(ends("t1 was lost, t2 saw before0"), "{title}: what was not: {found:?}");
    }
}

#[test]
fn a_key_is_whole_when_its_old_and_its_new_owner_crash() {
    let programs = [TAKE_A_AT_2, READ_A_AT_1];
    let (fault, second) = (Some(Fault::Crash(2)), Some(Fault::Crash(0)));
    strictly("tfa_both_owners_crash", vec![Scope { fault, second, ..Scope::of(&programs) }]);
}

#[test]
fn garbage_is_collected() {
    let before = [[TAKE_A_AT_1, TAKE_A_AT_0].as_slice(), &[TAKE_A_AT_2].repeat(4)].concat();
    let scope = Scope { before, collects: true, ..Scope::of(&[DELETE_A_AT_0, INSERT_A_AT_1]) };
    strictly("tfa_garbage", vec![scope]);
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

#[test]
fn nested_transactions_hold_when_a_child_is_undone() {
    let levels = &nested::WHOLE_ORDER;
    nested::hold_with_partial_aborts::<OwnedObjects>("tfa_partial_aborts", levels);
}
