//! Who commits of transactions that conflict on one object alone: strong progressiveness.

use Do::{Get, Put, ReadOnly};
use muesli_protocols::tfa::OwnedObjects;
use muesli_protocols::two_phase::TwoPhase;

use super::explore::{READ_A_AT_2, TAKE_A_AT_0, TAKE_A_AT_1, TAKE_A_AT_2, strictly};
use crate::harness::exploration::{Do, Found, Program, Scope};

const WRITE_A_AT_2: Program = (2, &[Put("a")]);
const READ_A_AT_0: Program = (0, &[ReadOnly, Get("a")]);

type OneObject = Scope<TwoPhase<OwnedObjects>>;

/// Whether every transaction can come to be aborted.
fn can_all_abort(found: &Found) -> bool {
    let all_abort = |outcome: &String| outcome.split(", ").all(|end| end.ends_with("aborted"));
    found.outcomes.keys().any(all_abort)
}

/// The key is where it was placed, or has moved to node 1.
#[test]
fn of_those_that_read_and_write_one_object_at_least_one_commits() {
    let pairs: [&[Program]; 6] = [
        &[TAKE_A_AT_0, TAKE_A_AT_1],
        &[TAKE_A_AT_1, TAKE_A_AT_2],
        &[TAKE_A_AT_2, TAKE_A_AT_2],
        &[TAKE_A_AT_1, READ_A_AT_2],
        &[TAKE_A_AT_2, READ_A_AT_0],
        &[TAKE_A_AT_0, TAKE_A_AT_1, TAKE_A_AT_2],
    ];
    let at_home = pairs.map(OneObject::of);
    let moved = at_home.clone().map(|scope| Scope { before: vec![TAKE_A_AT_1], ..scope });
    for (name, scopes) in [("tfa_one_object", at_home), ("tfa_one_moved_object", moved)] {
        for (title, found) in strictly(name, scopes.to_vec()) {
            assert!(!can_all_abort(&found), "{title}: {:?}", found.outcomes);
        }
    }
}

/// A move has two locks, one at the old and one at the new owner. Two transactions of one node ask
/// for them in one order, unless a prepare overtakes another one on its link; then each may have
/// one of the locks. Links as the contract has them keep the order.
#[test]
fn two_of_one_node_abort_each_other_only_where_prepares_overtake() {
    let pair = OneObject::of(&[TAKE_A_AT_2, TAKE_A_AT_2]);
    let reordered = Scope { reordered: true, ..pair };
    let all = strictly("tfa_one_object_reordered", vec![reordered]);
    assert!(all.iter().all(|(_, found)| can_all_abort(found)), "{all:?}");
}

/// What is refused is no conflict: nobody else runs. The node must read the key to learn where it
/// is.
#[test]
fn a_blind_write_of_a_key_that_moved_is_refused_where_its_node_does_not_know_the_owner() {
    let alone = Scope { before: vec![TAKE_A_AT_1], ..OneObject::of(&[WRITE_A_AT_2]) };
    let all = strictly("tfa_blind_write", vec![alone]);
    assert!(all.iter().all(|(_, found)| can_all_abort(found)), "{all:?}");
}
