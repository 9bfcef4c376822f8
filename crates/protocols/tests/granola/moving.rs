//! Partitions move while clients read and write them: in worlds with every kind of fault, judged by
//! the checker; and in the same worlds without one rule each, which it notices.

use muesli_protocols::granola::{GranolaSwitch, LockingExit, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::clients::Mix;
use super::sabotage::assert_caught;
use super::seeds::{ALL, TIMESTAMPS};
use super::worlds::Shape;

/// Every class at once, and moves.
const MOVING: Mix = Mix { moving: 10, ..ALL };
const FEW_KEYS: Mix = Mix { moving: 10, keys: 5, ..TIMESTAMPS };

fn shape(mix: Mix) -> Shape {
    Shape { partitions_per_repository: 3, ..Shape::new(mix) }
}

fn try_seeds(shape: &Shape, seeds: std::ops::Range<u64>) {
    let (mut done, mut moved) = (0, 0);
    for seed in seeds {
        let outcome = shape.run(seed);
        if let Some(problem) = outcome.problem {
            panic!("{shape:?}\n{problem}");
        }
        done += outcome.tally.done.get();
        moved += outcome.tally.moved.get();
    }
    assert!(done > 500 && moved > 50, "{done} transactions, {moved} moves");
}

#[test]
fn under_load() {
    try_seeds(&shape(MOVING), 0..10);
    try_seeds(&shape(Mix { moving: 10, ..TIMESTAMPS }), 0..5);
}

#[test]
fn in_locking_mode_and_with_all_ways_back() {
    for locking_exit in [LockingExit::UndoOnDemand, LockingExit::Stay] {
        let switches = Switches::default().with_locking_exit(locking_exit);
        try_seeds(&Shape { switches, ..shape(MOVING) }, 0..5);
    }
    try_seeds(&Shape { switches: Switches::locking(), ..shape(MOVING) }, 0..5);
    try_seeds(&Shape { switches: Switches::locking(), faults: "all", ..shape(MOVING) }, 0..10);
}

#[test]
fn where_some_pass_others_and_tell_each_other() {
    let switches = Switches::out_of_order();
    let mix = Mix { sharing: 4, ..MOVING };
    try_seeds(&Shape { switches, ..shape(mix) }, 0..5);
    try_seeds(&Shape { switches, faults: "all", ..shape(mix) }, 0..10);
}

#[test]
fn under_a_master() {
    let switches = Switches::sinfonia();
    try_seeds(&Shape { switches, faults: "all", ..shape(MOVING) }, 0..10);
}

#[test]
fn under_every_kind_of_fault() {
    try_seeds(&Shape { faults: "all", ..shape(MOVING) }, 0..20);
    try_seeds(&Shape { faults: "all", ..shape(Mix { moving: 10, ..TIMESTAMPS }) }, 0..20);
    try_seeds(&Shape { faults: "pause,link,crash", clients: 9, ..shape(MOVING) }, 0..20);
}

#[test]
fn on_several_replicas() {
    try_seeds(&Shape { replicas: 2, ..shape(MOVING) }, 0..5);
    try_seeds(&Shape { replicas: 2, faults: "all", ..shape(MOVING) }, 0..15);
}

#[test]
fn beside_copies_at_coordinators() {
    let mix = Mix { look: 9, ..MOVING };
    try_seeds(&Shape { caches: true, ..shape(mix) }, 0..5);
    try_seeds(&Shape { caches: true, faults: "all", ..shape(mix) }, 0..15);
}

#[test]
fn who_does_not_hold_a_partition_refuses() {
    let shape = shape(MOVING);
    assert_caught(
        "epochs_checked",
        &shape,
        |switches| switches.set(GranolaSwitch::EpochsChecked, false),
        20,
    );
}

#[test]
fn a_partition_lies_above_what_was_done_on_it_before() {
    let shape = Shape { faults: "skew", ..shape(FEW_KEYS) };
    assert_caught(
        "moves_raise",
        &shape,
        |switches| switches.set(GranolaSwitch::MovesRaise, false),
        100,
    );
}

#[test]
fn what_is_under_way_ends_before_a_partition_moves() {
    let shape = shape(FEW_KEYS);
    assert_caught(
        "moves_wait",
        &shape,
        |switches| switches.set(GranolaSwitch::MovesWait, false),
        50,
    );
}

#[test]
fn a_partition_moves_with_all_of_its_keys() {
    let shape = shape(FEW_KEYS);
    assert_caught(
        "moves_whole",
        &shape,
        |switches| switches.set(GranolaSwitch::MovesWhole, false),
        50,
    );
}

#[test]
fn nothing_is_taken_up_on_what_is_about_to_move() {
    let shape = shape(FEW_KEYS);
    assert_caught(
        "moves_hold_still",
        &shape,
        |switches| switches.set(GranolaSwitch::MovesHoldStill, false),
        50,
    );
}

#[test]
fn copies_know_what_has_moved() {
    let mix = Mix { look: 12, ..FEW_KEYS };
    let shape = Shape { caches: true, clients: 9, ..shape(mix) };
    assert_caught(
        "copies_know",
        &shape,
        |switches| switches.set(GranolaSwitch::CopiesKnow, false),
        100,
    );
}
