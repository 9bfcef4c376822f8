//! Many seeds of each shape: whatever goes wrong, histories are serializable in the order of each
//! session, and what was begun ends.

use muesli_protocols::granola::{LockingExit, Switches};

use super::clients::Mix;
use super::worlds::Shape;

/// Every class at once.
pub const ALL: Mix = Mix {
    single: 3,
    independent: 4,
    coordinated: 2,
    look: 3,
    interactive: 2,
    moving: 0,
    sharing: 0,
    keys: 8,
};
/// Only what timestamp mode can do.
pub const TIMESTAMPS: Mix = Mix {
    single: 3,
    independent: 5,
    coordinated: 0,
    look: 3,
    interactive: 0,
    moving: 0,
    sharing: 0,
    keys: 6,
};

pub fn try_seeds(shape: &Shape, seeds: std::ops::Range<u64>) {
    let mut done = 0;
    for seed in seeds {
        let outcome = shape.run(seed);
        if let Some(problem) = outcome.problem {
            panic!("{shape:?}\n{problem}");
        }
        done += outcome.tally.done.get();
    }
    assert!(done > 500, "{done} transactions");
}

#[test]
fn timestamp_mode() {
    try_seeds(&Shape::new(TIMESTAMPS), 0..10);
}

#[test]
fn all_classes() {
    try_seeds(&Shape::new(ALL), 0..10);
    try_seeds(&Shape { switches: Switches::locking(), ..Shape::new(ALL) }, 0..5);
}

#[test]
fn all_ways_back() {
    for locking_exit in [LockingExit::UndoOnDemand, LockingExit::Stay] {
        let switches = Switches::default().with_locking_exit(locking_exit);
        try_seeds(&Shape { switches, ..Shape::new(ALL) }, 0..5);
    }
}

/// One of these once showed that who kept its claims on the way back was passed by who had to claim
/// all that it may touch.
#[test]
fn what_keeps_its_claims_where_a_participant_stays_away() {
    let switches = Switches::locks_undone_on_demand();
    try_seeds(&Shape { switches, faults: "all", ..Shape::new(ALL) }, 1000..1012);
}

#[test]
fn all_classes_on_several_replicas() {
    try_seeds(&Shape { replicas: 2, ..Shape::new(ALL) }, 0..5);
}

#[test]
fn all_classes_under_every_kind_of_fault() {
    try_seeds(&Shape { replicas: 2, faults: "all", ..Shape::new(ALL) }, 0..15);
    try_seeds(&Shape { faults: "all", ..Shape::new(ALL) }, 0..20);
    let switches = Switches::locking();
    try_seeds(&Shape { switches, faults: "all", ..Shape::new(ALL) }, 0..10);
}

#[test]
fn timestamp_mode_under_every_kind_of_fault() {
    try_seeds(&Shape { faults: "all", ..Shape::new(TIMESTAMPS) }, 0..20);
}

#[test]
fn participants_that_do_not_answer() {
    let faults = "pause,link,crash";
    try_seeds(&Shape { faults, clients: 9, ..Shape::new(ALL) }, 0..20);
    let few_keys = Mix { keys: 4, ..TIMESTAMPS };
    try_seeds(&Shape { faults, clients: 9, ..Shape::new(few_keys) }, 0..20);
}
