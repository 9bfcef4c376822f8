//! Non-genuine multi-versioning in small scopes: every interleaving.

use muesli_check::Level;
use muesli_protocols::non_genuine_multiversioning::Everybody;

use crate::harness::exploration::Scope;
use crate::two_phase::exploring::{
    DELETE_A_AT_0, INSERT_A_AT_1, READ_AB_AT_2, READ_STRICTLY_AT_2, SKEW_A_AT_0, WRITE_A_AT_1,
    among_faults, collecting, hold,
};
use crate::two_phase::nested;

#[test]
fn with_everybody_taking_part() {
    let mut scopes =
        vec![Scope::of(&[SKEW_A_AT_0, WRITE_A_AT_1]), Scope::of(&[WRITE_A_AT_1, READ_AB_AT_2])];
    among_faults(&mut scopes, &[WRITE_A_AT_1, READ_AB_AT_2]);
    hold::<Everybody>("ngm", Level::Serializable, &scopes);
}

#[test]
fn nested_transactions_hold_when_a_child_is_undone() {
    nested::hold_with_partial_aborts::<Everybody>("ngm_partial_aborts", &nested::WHOLE_ORDER);
}

#[test]
fn garbage_is_collected() {
    let scope = collecting(&[DELETE_A_AT_0, INSERT_A_AT_1]);
    hold::<Everybody>("ngm_garbage", Level::Serializable, &[scope]);
}

/// Everybody's clock is beyond a commit when that ends, so no reader that begins later misses it,
/// validated or not.
#[test]
fn a_strict_reader_respects_real_time() {
    let scope = Scope::of(&[WRITE_A_AT_1, READ_STRICTLY_AT_2]);
    hold::<Everybody>("ngm_strict", Level::StrictSerializable, &[scope]);
}
