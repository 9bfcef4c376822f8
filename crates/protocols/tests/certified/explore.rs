//! Small scopes: every interleaving of a few transactions, ordered by a leader. (All interleavings
//! of the broadcasts are looked at by themselves, in `crates/broadcast`.)

use muesli_check::Level;
use muesli_protocols::certified::{Certified, Switches};

use crate::harness::exploration::{Do, Program, Scope, hold_as_written};

const ADD_A_AT_0: Program = (0, &[Do::Get("a"), Do::Put("a")]);
const ADD_A_AT_1: Program = (1, &[Do::Get("a"), Do::Put("a")]);
const READ_AB_AT_2: Program = (2, &[Do::ReadOnly, Do::Get("a"), Do::Get("b")]);

const ADD_A_AT_1_LOSING: Program = (1, &[Do::KeepsLosing, Do::Get("a"), Do::Put("a")]);
const WRITE_A_AT_0: Program = (0, &[Do::Put("a")]);
const WRITE_A_AT_2: Program = (2, &[Do::Put("a")]);
const WRITE_AB_AT_2: Program = (2, &[Do::Get("b"), Do::Put("a"), Do::Put("b")]);

/// Who keeps losing is refused for what the first one has written, and holds that: so the other one
/// commits before it, or not at all.
#[test]
fn one_that_keeps_losing_holds_what_it_has_read() {
    let of = |programs: &[Program]| Scope::<Certified> {
        switches: Switches::multipaxos(),
        level: Level::Serializable,
        ..Scope::of(programs)
    };
    let programs = [ADD_A_AT_1_LOSING, WRITE_A_AT_0, WRITE_A_AT_2];
    let with_reader = [ADD_A_AT_1_LOSING, WRITE_AB_AT_2];
    hold_as_written("certified_losers", &[of(&programs), of(&with_reader)], 1_500_000);
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
