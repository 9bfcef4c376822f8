//! The baselines in small scopes: every interleaving, at the level that each promises.

use Do::{Delete, Get, Put, ReadOnly, Scan, Strict};
use muesli_check::Level;
use muesli_protocols::two_phase::{TwoPhase, Variant};

use crate::harness::exploration::{Do, Fault, Program, Scope, hold_as_written};

/// Key a… lives at node 0, b… at node 1, c… at node 2.
pub const CHANGE_AB_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a"), Put("b")]);
pub const CHANGE_BC_AT_1: Program = (1, &[Get("b"), Get("c"), Put("b"), Put("c")]);
pub const SKEW_A_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a")]);
pub const SKEW_B_AT_1: Program = (1, &[Get("a"), Get("b"), Put("b")]);
pub const READ_AB_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b")]);
pub const READ_AGAIN_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b"), Get("a"), Scan("a", "b")]);
pub const READ_STRICTLY_AT_2: Program = (2, &[Strict, Get("a"), Get("b")]);
pub const WRITE_A_AT_0: Program = (0, &[Put("a")]);
pub const CHANGE_A_AT_2: Program = (2, &[Get("a"), Put("a")]);
pub const WRITE_A_AT_1: Program = (1, &[Put("a")]);

pub const DELETE_A_AT_0: Program = (0, &[Get("a"), Get("b"), Delete("a")]);
pub const INSERT_A_AT_1: Program = (1, &[Get("b"), Put("a")]);

pub const LIMIT: usize = 300_000;

/// Scopes with each kind of fault, at any point.
pub fn among_faults<V: Variant<Service: Clone>>(
    scopes: &mut Vec<Scope<TwoPhase<V>>>,
    programs: &[Program],
) {
    let crashes = [Fault::Crash(0), Fault::Crash(1), Fault::Outage(0), Fault::Outage(1)];
    for fault in crashes.into_iter().chain([Fault::Lose, Fault::Repeat, Fault::Early]) {
        scopes.push(Scope { fault: Some(fault), ..Scope::of(programs) });
    }
}

/// Scopes with two faults, at any two points.
pub fn among_two_faults<V: Variant<Service: Clone>>(
    scopes: &mut Vec<Scope<TwoPhase<V>>>,
    programs: &[Program],
) {
    let faults = [(Fault::Crash(0), Fault::Crash(1)), (Fault::Lose, Fault::Outage(0))];
    for (fault, second) in faults {
        let (fault, second) = (Some(fault), Some(second));
        scopes.push(Scope { fault, second, ..Scope::of(programs) });
    }
}

pub fn hold<V: Variant<Service: Clone>>(name: &str, level: Level, scopes: &[Scope<TwoPhase<V>>]) {
    let scopes: Vec<_> = scopes.iter().map(|scope| Scope { level, ..scope.clone() }).collect();
    for found in hold_as_written(name, &scopes, LIMIT) {
        assert!(found.outcomes.len() > 1, "more than one end: {:?}", found.outcomes);
    }
}

/// Node 2 has told of a late snapshot, and the others tell of one when their transactions end.
pub fn collecting<V: Variant<Service: Clone>>(programs: &[Program]) -> Scope<TwoPhase<V>> {
    let before = [[WRITE_A_AT_1, WRITE_A_AT_0].as_slice(), &[CHANGE_A_AT_2].repeat(4)].concat();
    Scope { before, collects: true, ..Scope::of(programs) }
}
