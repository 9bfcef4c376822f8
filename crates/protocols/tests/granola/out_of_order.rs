//! Past who waits at the head of the queue: whatever goes wrong, it cannot be seen; without one of
//! its rules it is; and what it gives where one repository is slow.

use muesli_protocols::granola::{GranolaSwitch, LockingExit, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_sim::time::Span;

use super::clients::Mix;
use super::sabotage::assert_caught;
use super::seeds::{ALL, TIMESTAMPS, try_seeds};
use super::worlds::Shape;

fn out_of_order(mix: Mix) -> Shape {
    Shape { switches: Switches::out_of_order(), ..Shape::new(mix) }
}

#[test]
fn seeds() {
    try_seeds(&out_of_order(TIMESTAMPS), 0..10);
    try_seeds(&out_of_order(ALL), 0..10);
    let far = Span::from_millis(1);
    try_seeds(&Shape { far, clients: 9, ..out_of_order(Mix { keys: 12, ..TIMESTAMPS }) }, 0..10);
}

#[test]
fn seeds_with_every_kind_of_fault() {
    try_seeds(&Shape { faults: "all", ..out_of_order(TIMESTAMPS) }, 0..20);
    try_seeds(&Shape { faults: "all", ..out_of_order(ALL) }, 0..20);
    try_seeds(&Shape { replicas: 2, faults: "all", ..out_of_order(ALL) }, 0..15);
    let faults = "pause,link,crash";
    try_seeds(&Shape { faults, clients: 9, ..out_of_order(TIMESTAMPS) }, 0..15);
    try_seeds(&Shape { caches: true, faults: "all", ..out_of_order(SOME_KEYS) }, 0..10);
}

#[test]
fn seeds_with_the_other_ways_back() {
    for locking_exit in [LockingExit::UndoOnDemand, LockingExit::Stay] {
        let switches = Switches::out_of_order().with_locking_exit(locking_exit);
        try_seeds(&Shape { switches, faults: "all", ..Shape::new(ALL) }, 0..10);
    }
}

/// Many different keys, so that there is somebody to pass; the same ones often enough.
const SOME_KEYS: Mix = Mix { keys: 9, ..TIMESTAMPS };

#[test]
fn who_passes_conflicts_with_nobody_before_it() {
    let shape = Shape { faults: "skew", ..out_of_order(SOME_KEYS) };
    assert_caught(
        "out_of_order_apart",
        &shape,
        |switches| switches.set(GranolaSwitch::OutOfOrderApart, false),
        20,
    );
}

#[test]
fn who_passes_conflicts_with_nothing_that_others_may_touch() {
    let shape = Shape { faults: "skew", clients: 9, ..out_of_order(SOME_KEYS) };
    assert_caught(
        "supersets",
        &shape,
        |switches| switches.set(GranolaSwitch::Supersets, false),
        100,
    );
}

#[test]
fn readers_behind_what_is_done_look_who_was_passed() {
    let mix = Mix { look: 8, ..SOME_KEYS };
    let shape = Shape { faults: "skew,pause,link", clients: 9, ..out_of_order(mix) };
    assert_caught(
        "readers_look",
        &shape,
        |switches| switches.set(GranolaSwitch::ReadersLook, false),
        100,
    );
}

/// How many transactions clients at three nodes have done in 60 ms, of which n2 is a millisecond
/// away from the others.
fn done_beside_a_slow_one(switches: Switches) -> u64 {
    let mix = Mix { single: 8, independent: 2, keys: 200, look: 0, ..TIMESTAMPS };
    let far = Span::from_millis(1);
    let shape = Shape { switches, far, clients: 24, ..Shape::new(mix) };
    (0..3).map(|seed| shape.run(seed)).map(|it| (it.problem, it.tally)).fold(0, |sum, it| {
        assert_eq!(it.0, None);
        sum + it.1.done.get()
    })
}

#[test]
fn beside_a_slow_repository_the_others_go_on() {
    let (waiting, out_of_order) = (
        done_beside_a_slow_one(Switches::default()),
        done_beside_a_slow_one(Switches::out_of_order()),
    );
    println!("done in turn {waiting}, with who passes {out_of_order}");
    assert!(out_of_order > waiting * 5 / 4, "{out_of_order} instead of {waiting}");
}
