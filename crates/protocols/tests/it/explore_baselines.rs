//! The baselines in small scopes: every interleaving, at the level that each promises.

use std::io::Write;

use crate::exploration::{Do, Fault, Found, Program, Scope, explore};
use Do::{Delete, Get, Put, ReadOnly, Scan, Strict};
use muesli_check::Level;
use muesli_protocols::non_genuine_multiversioning::Everybody;
use muesli_protocols::repeatable_read::NewestVersions;
use muesli_protocols::two_phase::{TwoPhase, Variant};
use muesli_protocols::two_phase_commit::TryLocks;

/// Key a… lives at node 0, b… at node 1, c… at node 2.
const CHANGE_AB_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a"), Put("b")]);
const CHANGE_BC_AT_1: Program = (1, &[Get("b"), Get("c"), Put("b"), Put("c")]);
const SKEW_A_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a")]);
const SKEW_B_AT_1: Program = (1, &[Get("a"), Get("b"), Put("b")]);
const READ_AB_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b")]);
const READ_AGAIN_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b"), Get("a"), Scan("a", "b")]);
const READ_STRICTLY_AT_2: Program = (2, &[Strict, Get("a"), Get("b")]);
const WRITE_A_AT_0: Program = (0, &[Put("a")]);
const CHANGE_A_AT_2: Program = (2, &[Get("a"), Put("a")]);
const WRITE_A_AT_1: Program = (1, &[Put("a")]);

const DELETE_A_AT_0: Program = (0, &[Get("a"), Get("b"), Delete("a")]);
const INSERT_A_AT_1: Program = (1, &[Get("b"), Put("a")]);

const LIMIT: usize = 300_000;

/// Scopes with each kind of fault, at any point.
fn among_faults<V: Variant>(scopes: &mut Vec<Scope<TwoPhase<V>>>, programs: &[Program]) {
    let crashes = [Fault::Crash(0), Fault::Crash(1), Fault::Outage(0), Fault::Outage(1)];
    for fault in crashes.into_iter().chain([Fault::Lose, Fault::Repeat, Fault::Early]) {
        scopes.push(Scope { fault: Some(fault), ..Scope::of(programs) });
    }
}

/// Scopes with two faults, at any two points.
fn among_two_faults<V: Variant>(scopes: &mut Vec<Scope<TwoPhase<V>>>, programs: &[Program]) {
    let faults = [(Fault::Crash(0), Fault::Crash(1)), (Fault::Lose, Fault::Outage(0))];
    for (fault, second) in faults {
        let (fault, second) = (Some(fault), Some(second));
        scopes.push(Scope { fault, second, ..Scope::of(programs) });
    }
}

fn hold<V: Variant>(name: &str, level: Level, scopes: &[Scope<TwoPhase<V>>]) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explored");
    let mut golden = goldenfile::Mint::new(folder);
    let mut file = golden.new_goldenfile(format!("{name}.txt")).expect("a writable folder");
    for scope in scopes {
        let scope = Scope { level, ..scope.clone() };
        let Found { states, outcomes, violation } = explore(&scope, LIMIT);
        assert_eq!(violation, None);
        assert!(outcomes.len() > 1, "more than one end: {outcomes:?}");
        writeln!(file, "{}\n  {states} states", scope.title()).expect("a writable file");
        for (outcome, ends) in outcomes {
            writeln!(file, "  {ends:6} × {outcome}").expect("a writable file");
        }
    }
}

#[test]
fn two_phase_locking_is_strict_for_readers_too() {
    let with_reader = Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_AB_AT_2]);
    let mut scopes = vec![with_reader, Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1])];
    among_faults(&mut scopes, &[SKEW_A_AT_0, SKEW_B_AT_1]);
    among_two_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    scopes.push(Scope { before: vec![WRITE_A_AT_1], ..Scope::of(&[DELETE_A_AT_0, INSERT_A_AT_1]) });
    hold::<TryLocks>("2pc", Level::StrictSerializable, &scopes);
}

#[test]
fn repeatable_read_repeats() {
    let mut scopes = vec![
        Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]),
        Scope::of(&[WRITE_A_AT_1, SKEW_B_AT_1, READ_AGAIN_AT_2]),
    ];
    among_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    among_two_faults(&mut scopes, &[SKEW_A_AT_0, WRITE_A_AT_1]);
    scopes.push(Scope { before: vec![WRITE_A_AT_1], ..Scope::of(&[DELETE_A_AT_0, INSERT_A_AT_1]) });
    hold::<NewestVersions>("rr", Level::Rr, &scopes);
}

/// Node 2 has told of a late snapshot, and the others tell of one when their transactions end.
fn collecting<V: Variant>(programs: &[Program]) -> Scope<TwoPhase<V>> {
    let before = [[WRITE_A_AT_1, WRITE_A_AT_0].as_slice(), &[CHANGE_A_AT_2].repeat(4)].concat();
    Scope { before, collects: true, ..Scope::of(programs) }
}

#[test]
fn garbage_is_collected() {
    let programs = [DELETE_A_AT_0, INSERT_A_AT_1];
    hold::<TryLocks>("2pc_garbage", Level::StrictSerializable, &[collecting(&programs)]);
    hold::<NewestVersions>("rr_garbage", Level::Rr, &[collecting(&programs)]);
    hold::<Everybody>("ngm_garbage", Level::Serializable, &[collecting(&programs)]);
}

/// Everybody's clock is beyond a commit when that ends, so no reader that begins later misses it,
/// validated or not.
#[test]
fn a_strict_reader_respects_real_time() {
    let scope = Scope::of(&[WRITE_A_AT_1, READ_STRICTLY_AT_2]);
    hold::<Everybody>("ngm_strict", Level::StrictSerializable, &[scope]);
}

#[test]
fn repeatable_read_lets_write_skew_pass() {
    let scope: Scope<TwoPhase<NewestVersions>> = Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]);
    assert!(explore(&scope, LIMIT).violation.is_some());
}

#[test]
fn with_everybody_taking_part() {
    let mut scopes =
        vec![Scope::of(&[SKEW_A_AT_0, WRITE_A_AT_1]), Scope::of(&[WRITE_A_AT_1, READ_AB_AT_2])];
    among_faults(&mut scopes, &[WRITE_A_AT_1, READ_AB_AT_2]);
    hold::<Everybody>("ngm", Level::Serializable, &scopes);
}
