//! Repeatable read in small scopes: every interleaving, at the level that it promises.

use muesli_check::Level;
use muesli_protocols::repeatable_read::NewestVersions;
use muesli_protocols::two_phase::TwoPhase;

use crate::harness::exploration::{Scope, explore};
use crate::two_phase::exploring::{
    DELETE_A_AT_0, INSERT_A_AT_1, LIMIT, READ_AGAIN_AT_2, SKEW_A_AT_0, SKEW_B_AT_1, WRITE_A_AT_1,
    among_faults, among_two_faults, collecting, hold,
};

#[test]
fn repeatable_read_repeats() {
    let mut scopes = vec![
        Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]),
        Scope::of(&[WRITE_A_AT_1, SKEW_B_AT_1, READ_AGAIN_AT_2]),
    ];
    among_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    among_two_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    scopes.push(Scope { before: vec![WRITE_A_AT_1], ..Scope::of(&[DELETE_A_AT_0, INSERT_A_AT_1]) });
    hold::<NewestVersions>("rr", Level::Rr, &scopes);
}

#[test]
fn garbage_is_collected() {
    let scope = collecting(&[DELETE_A_AT_0, INSERT_A_AT_1]);
    hold::<NewestVersions>("rr_garbage", Level::Rr, &[scope]);
}

#[test]
fn repeatable_read_lets_write_skew_pass() {
    let scope: Scope<TwoPhase<NewestVersions>> = Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]);
    assert!(explore(&scope, LIMIT).violation.is_some());
}
