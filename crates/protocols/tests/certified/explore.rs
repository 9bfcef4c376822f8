//! Small scopes: every interleaving of a few transactions, ordered by a leader. (All interleavings
//! of the broadcasts are looked at by themselves, in `crates/broadcast`.)

use muesli_check::Level;
use muesli_protocols::certified::{Certified, Switches};

use crate::harness::exploration::{Do, Program, Scope, hold_as_written};

const ADD_A_AT_0: Program = (0, &[Do::Get("a"), Do::Put("a")]);
const ADD_A_AT_1: Program = (1, &[Do::Get("a"), Do::Put("a")]);
const READ_AB_AT_2: Program = (2, &[Do::ReadOnly, Do::Get("a"), Do::Get("b")]);

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
