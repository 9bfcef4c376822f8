//! Participants that tell each other what they decide by: whatever goes wrong, all decide alike;
//! data that are told too early are noticed; and what it gives beside votes and locks.

use muesli_protocols::granola::{GranolaSwitch, LockingExit, SharedData, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::clients::Mix;
use super::sabotage::assert_caught;
use super::seeds::{ALL, TIMESTAMPS, try_seeds};
use super::worlds::Shape;

/// Transactions whose participants tell, and others on the same keys.
const SHARING: Mix = Mix { sharing: 6, ..TIMESTAMPS };
/// The same with all that changes the mode.
const AMONG_ALL: Mix = Mix { sharing: 5, ..ALL };

/// Participants tell, and nobody passes who waits for what it is to be told.
fn sharing(mix: Mix) -> Shape {
    Shape { switches: Switches::sharing(), ..Shape::new(mix) }
}

#[test]
fn seeds() {
    try_seeds(&sharing(SHARING), 0..10);
    try_seeds(&sharing(AMONG_ALL), 0..10);
    try_seeds(&Shape { replicas: 2, ..sharing(AMONG_ALL) }, 0..5);
    try_seeds(&Shape { switches: Switches::locking(), ..sharing(AMONG_ALL) }, 0..5);
    try_seeds(&Shape { switches: Switches::out_of_order(), ..sharing(SHARING) }, 0..10);
}

#[test]
fn seeds_with_every_kind_of_fault() {
    try_seeds(&Shape { faults: "all", ..sharing(SHARING) }, 0..15);
    try_seeds(&Shape { faults: "all", ..sharing(AMONG_ALL) }, 0..20);
    try_seeds(&Shape { replicas: 2, faults: "all", ..sharing(AMONG_ALL) }, 0..10);
    let switches = Switches::out_of_order();
    try_seeds(&Shape { switches, faults: "all", ..sharing(AMONG_ALL) }, 0..15);
}

#[test]
fn seeds_with_the_other_ways_back() {
    for locking_exit in [LockingExit::UndoOnDemand, LockingExit::Stay] {
        let switches = sharing(AMONG_ALL).switches.with_locking_exit(locking_exit);
        try_seeds(&Shape { switches, faults: "all", ..sharing(AMONG_ALL) }, 0..8);
        let switches = Switches::out_of_order().with_locking_exit(locking_exit);
        try_seeds(&Shape { switches, faults: "all", ..sharing(AMONG_ALL) }, 0..8);
    }
}

#[test]
fn data_that_go_with_the_vote_are_too_early() {
    let shape = Shape { faults: "skew", ..sharing(SHARING) };
    assert_caught(
        "data_sent_in_order",
        &shape,
        |switches| switches.set(GranolaSwitch::DataSentInOrder, false),
        20,
    );
}

/// How many transactions clients have done in 60 ms, of which some decide by data of others, or had
/// refused.
fn done_beside_those_that_decide(mix: Mix, switches: Switches) -> u64 {
    let shape = Shape { switches, clients: 24, ..Shape::new(mix) };
    (0..3).map(|seed| shape.run(seed)).fold(0, |sum, outcome| {
        assert_eq!(outcome.problem, None);
        sum + outcome.tally.done.get() + outcome.tally.refused.get()
    })
}

#[test]
fn without_votes_and_locks_more_is_done() {
    let mix = Mix { single: 6, independent: 2, sharing: 2, look: 0, keys: 40, ..TIMESTAMPS };
    let voting = Switches::out_of_order().with_shared_data(SharedData::Coordinated);
    let [voted, voted_and_passed, shared, passed] =
        [Switches::default(), voting, sharing(mix).switches, Switches::out_of_order()]
            .map(|switches| done_beside_those_that_decide(mix, switches));
    println!("with votes and locks {voted}, and passed {voted_and_passed}");
    println!("told {shared}, told and passed {passed}");
    assert!(passed > voted.max(voted_and_passed), "{passed} instead of {voted}");
}
