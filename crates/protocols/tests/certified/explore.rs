//! Small scopes: every interleaving of a few transactions, ordered by a leader. (All interleavings
//! of the broadcasts are looked at by themselves, in `crates/broadcast`.)

use muesli_check::Level;
use muesli_protocols::certified::{Certified, Switches};

use crate::harness::exploration::{Do, Program, Scope, explore_part, hold_as_written};

const ADD_A_AT_0: Program = (0, &[Do::Get("a"), Do::Put("a")]);
const ADD_A_AT_1: Program = (1, &[Do::Get("a"), Do::Put("a")]);
const READ_AB_AT_2: Program = (2, &[Do::ReadOnly, Do::Get("a"), Do::Get("b")]);

const ADD_A_AT_1_LOSING: Program = (1, &[Do::KeepsLosing, Do::Get("a"), Do::Put("a")]);
const WRITE_A_AT_0: Program = (0, &[Do::Put("a")]);
const WRITE_A_AT_2: Program = (2, &[Do::Put("a")]);

/// One that keeps losing is refused for what a blind write has changed, and holds what it has read.
/// Blind writes lose to nobody else: where one is refused, the loser was refused before it. (A part
/// of the states: there are too many of three transactions.)
#[test]
fn one_that_keeps_losing_holds_what_it_has_read() {
    let scope = Scope::<Certified> {
        switches: Switches::multipaxos(),
        level: Level::Serializable,
        ..Scope::of(&[ADD_A_AT_1_LOSING, WRITE_A_AT_0, WRITE_A_AT_2])
    };
    let found = explore_part(&scope, 20_000);
    assert_eq!(found.violation, None);
    let ends = found.outcomes.keys();
    let (refused, others): (Vec<_>, Vec<_>) =
        ends.partition(|end| end.contains("t2 aborted") || end.contains("t3 aborted"));
    assert!(!refused.is_empty() && !others.is_empty(), "{others:?}");
    let is_loser_refused = |end: &&String| end.contains("t1 aborted");
    assert!(refused.iter().all(is_loser_refused), "{refused:?}");
}

#[test]
fn two_that_conflict_and_one_that_only_reads() {
    let of = |programs: &[Program]| Scope::<Certified> {
        switches: Switches::multipaxos(),
        level: Level::Serializable,
        ..Scope::of(programs)
    };
    let scopes = [of(&[ADD_A_AT_0, ADD_A_AT_1]), of(&[ADD_A_AT_0, READ_AB_AT_2])];
    hold_as_written("certified", &scopes, 400_000);
}
