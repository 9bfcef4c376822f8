//! Small scopes: every interleaving of a few transactions over shards of one member each, without
//! and with faults. (All interleavings of the broadcasts are looked at by themselves, in
//! `crates/broadcast`.)

use muesli_check::Level;
use muesli_protocols::sharded::{Sharded, Switches};

use crate::harness::exploration::{Do, Fault, Program, Scope, hold_as_written};

/// These two form a cycle where each shard orders them alone.
const READ_A_WRITE_B: Program = (0, &[Do::Get("a"), Do::Put("b")]);
const READ_B_WRITE_A: Program = (1, &[Do::Get("b"), Do::Put("a")]);
const WRITE_AB: Program = (0, &[Do::Put("a"), Do::Put("b")]);
const READ_AB_AT_2: Program = (2, &[Do::ReadOnly, Do::Get("a"), Do::Get("b")]);

fn of(programs: &[Program]) -> Scope<Sharded> {
    Scope { switches: Switches::multipaxos(), level: Level::Serializable, ..Scope::of(programs) }
}

#[test]
fn two_over_two_shards_and_one_that_only_reads() {
    let scopes = [
        of(&[READ_A_WRITE_B, READ_B_WRITE_A]),
        of(&[WRITE_AB, READ_AB_AT_2]),
        Scope { fault: Some(Fault::Crash(1)), ..of(&[WRITE_AB]) },
        Scope { fault: Some(Fault::Crash(0)), ..of(&[WRITE_AB]) },
        Scope { fault: Some(Fault::Repeat), ..of(&[WRITE_AB]) },
    ];
    hold_as_written("sharded", &scopes, 400_000);
}
