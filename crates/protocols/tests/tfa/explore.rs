//! TFA in small scopes: every interleaving, with keys that move.

use Do::{Delete, Get, Put, ReadOnly};
use muesli_check::Level;
use muesli_protocols::tfa::Objects;

use crate::harness::exploration::{Do, Program, Scope};
use crate::two_phase::exploring::{
    CHANGE_AB_AT_0, CHANGE_BC_AT_1, DELETE_A_AT_0, INSERT_A_AT_1, READ_AB_AT_2, SKEW_A_AT_0,
    SKEW_B_AT_1, WRITE_A_AT_1, among_faults, among_two_faults, hold,
};

/// Key a moves from node 0, where it is placed.
const TAKE_A_AT_0: Program = (0, &[Get("a"), Put("a")]);
const TAKE_A_AT_1: Program = (1, &[Get("a"), Put("a")]);
const TAKE_A_AT_2: Program = (2, &[Get("a"), Put("a")]);
const READ_A_AT_2: Program = (2, &[ReadOnly, Get("a")]);
const DELETE_A_AT_2: Program = (2, &[Get("a"), Delete("a")]);

#[test]
fn readers_and_writers_of_keys_that_move_are_strict() {
    let with_reader = Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_AB_AT_2]);
    let mut scopes = vec![with_reader, Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1])];
    among_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    among_two_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    hold::<Objects>("tfa", Level::StrictSerializable, &scopes);
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
    hold::<Objects>("tfa_moved", Level::StrictSerializable, &scopes);
}

#[test]
fn garbage_is_collected() {
    let before = [[TAKE_A_AT_1, TAKE_A_AT_0].as_slice(), &[TAKE_A_AT_2].repeat(4)].concat();
    let scope = Scope { before, collects: true, ..Scope::of(&[DELETE_A_AT_0, INSERT_A_AT_1]) };
    hold::<Objects>("tfa_garbage", Level::StrictSerializable, &[scope]);
}
