//! Without one of its rules, Granola is caught: some seed of a world that needs the rule shows a
//! history that may not be.

use muesli_protocols::granola::{GranolaSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::clients::Mix;
use super::seeds::{ALL, TIMESTAMPS};
use super::worlds::Shape;

/// The first seed at which the checker notices that a rule is missing.
fn first_caught(shape: &Shape, switch_off: impl Fn(&mut Switches), seeds: u64) -> Option<u64> {
    let mut broken = shape.clone();
    switch_off(&mut broken.switches);
    (0..seeds).find(|&seed| broken.run(seed).problem.is_some())
}

pub fn assert_caught(name: &str, shape: &Shape, switch_off: impl Fn(&mut Switches), seeds: u64) {
    let found = first_caught(shape, switch_off, seeds);
    let whole = found.and_then(|seed| shape.run(seed).problem);
    assert_eq!(whole, None, "with `{name}`");
    assert!(found.is_some(), "without `{name}`, {seeds} seeds are still fine");
}

const FEW_KEYS: Mix = Mix { keys: 4, ..TIMESTAMPS };

#[test]
fn transactions_are_done_in_the_order_of_their_timestamps() {
    assert_caught(
        "in_order",
        &Shape::new(TIMESTAMPS),
        |switches| switches.set(GranolaSwitch::InOrder, false),
        20,
    );
}

#[test]
fn the_highest_proposal_is_final() {
    let shape = Shape::new(TIMESTAMPS);
    assert_caught(
        "highest_is_final",
        &shape,
        |switches| switches.set(GranolaSwitch::HighestIsFinal, false),
        20,
    );
}

#[test]
fn sessions_carry_what_they_have_seen() {
    let shape = Shape { faults: "skew", ..Shape::new(FEW_KEYS) };
    assert_caught(
        "carries_floor",
        &shape,
        |switches| switches.set(GranolaSwitch::CarriesLowerBound, false),
        100,
    );
}

#[test]
fn whatever_is_done_raises_the_last_timestamp() {
    let mix = Mix { keys: 5, coordinated: 4, ..ALL };
    let shape = Shape { faults: "skew", ..Shape::new(mix) };
    assert_caught(
        "raises_last",
        &shape,
        |switches| switches.set(GranolaSwitch::RaisesLast, false),
        100,
    );
}

#[test]
fn readers_of_any_replica_look_at_what_their_session_has_seen() {
    let mix = Mix { look: 9, keys: 4, ..TIMESTAMPS };
    let shape = Shape { replicas: 2, faults: "skew,link,pause", clients: 9, ..Shape::new(mix) };
    assert_caught(
        "readers_check",
        &shape,
        |switches| switches.set(GranolaSwitch::ReadersCheck, false),
        100,
    );
}

#[test]
fn votes_imply_something_only_in_order() {
    let shape = Shape { faults: "link,skew", clients: 9, ..Shape::new(TIMESTAMPS) };
    assert_caught(
        "bounds_in_order",
        &shape,
        |switches| switches.set(GranolaSwitch::BoundsInOrder, false),
        100,
    );
}

#[test]
fn reads_raise_the_last_timestamp_too() {
    let mix = Mix { look: 8, ..TIMESTAMPS };
    let shape = Shape { faults: "skew,pause,link", clients: 9, ..Shape::new(mix) };
    assert_caught(
        "reads_raise",
        &shape,
        |switches| switches.set(GranolaSwitch::ReadsRaise, false),
        100,
    );
}

#[test]
fn votes_against_are_stable() {
    let mix = Mix { keys: 4, coordinated: 6, ..ALL };
    let shape = Shape { faults: "crash,disk", ..Shape::new(mix) };
    assert_caught(
        "stable_conflicts",
        &shape,
        |switches| switches.set(GranolaSwitch::StableConflicts, false),
        100,
    );
}

#[test]
fn answers_rest_on_votes() {
    let shape = Shape { faults: "crash,disk", clients: 3, ..Shape::new(TIMESTAMPS) };
    let broken = |switches: &mut Switches| switches.set(GranolaSwitch::AnswersRestOnVotes, false);
    assert_caught("answers_rest_on_votes", &shape, broken, 200);
}

#[test]
fn what_was_voted_on_is_locked_first() {
    let shape = Shape::new(Mix { keys: 5, ..ALL });
    assert_caught(
        "locks_queued",
        &shape,
        |switches| switches.set(GranolaSwitch::LocksQueued, false),
        100,
    );
}
