//! Exhaustive exploration of small scopes: three nodes, two or three small transactions, every
//! interleaving of what clients do and of what messages arrive.
//!
//! How many states there are, and how often each outcome is an end, stands in `explored/`, a file
//! for each test: a change of the protocol changes it on purpose, by `UPDATE_GOLDENFILES=1 cargo
//! test`, and is read. A scope in which a conflict never aborts, or a reader never waits, proves
//! nothing.

use Do::{Delete, Get, Put, ReadOnly, Scan, Strict};
use muesli_check::Level;
use muesli_protocols::score::{FamilySwitch, Score, Snapshots, Switches};
use muesli_protocols::two_phase::Sabotage;

use crate::harness::exploration::{self, Do, Fault, Program, explore, hold_as_written};
use crate::two_phase::nested;

type Scope = exploration::Scope<Score>;

/// Key a… lives at node 0, b… at node 1, c… at node 2.
const CHANGE_AB_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a"), Put("b")]);
const CHANGE_BC_AT_1: Program = (1, &[Get("b"), Get("c"), Put("b"), Put("c")]);
const CHANGE_CA_AT_2: Program = (2, &[Get("c"), Get("a"), Put("c"), Put("a")]);
const CHANGE_C_AT_2: Program = (2, &[Get("c"), Put("c")]);
const READ_ALL_AT_0: Program = (0, &[ReadOnly, Get("a"), Get("b"), Get("c")]);
const READ_ALL_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b"), Get("c")]);
const READ_STRICTLY_AT_2: Program = (2, &[Strict, Get("a"), Get("b")]);
const READ_AB_AT_1: Program = (1, &[ReadOnly, Get("a"), Get("b")]);
const WRITE_A_AT_1: Program = (1, &[Put("a")]);
const WRITE_BC_AT_0: Program = (0, &[Put("b"), Put("c")]);
const WRITE_BC_AT_2: Program = (2, &[Put("b"), Put("c")]);
const CHANGE_A_AT_2: Program = (2, &[Get("a"), Put("a")]);
const WRITE_AB_AT_0: Program = (0, &[Put("a"), Put("b")]);
const WRITE_AB_AT_1: Program = (1, &[Put("a"), Put("b")]);
const WRITE_AB_AT_2: Program = (2, &[Put("a"), Put("b")]);
const WRITE_A_AND_ANOTHER_B_AT_1: Program = (1, &[Put("a"), Put("b1")]);
/// Two that would let each other's reads grow stale.
const SKEW_A_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a")]);
const SKEW_B_AT_1: Program = (1, &[Get("a"), Get("b"), Put("b")]);
/// The same, by a scan and an insert into what was scanned.
const SCAN_B_AT_0: Program = (0, &[Scan("b", "c"), Put("a")]);
const INSERT_B_AT_1: Program = (1, &[Get("a"), Put("b1")]);
const WRITE_ANOTHER_B_AT_1: Program = (1, &[Put("b2")]);
/// Keys that come and go.
const DELETE_AB_AT_0: Program = (0, &[Get("a"), Delete("a"), Delete("b")]);
const INSERT_AB_AT_1: Program = (1, &[Get("b"), Put("a"), Put("b")]);
const SCAN_DELETE_B_AT_2: Program = (2, &[Scan("a", "c"), Delete("b")]);

const LIMIT: usize = 300_000;

/// Explores scopes in which nothing may go wrong, and compares what was found with the file of
/// this name.
fn hold(name: &str, scopes: &[Scope]) {
    for found in hold_as_written(name, scopes, LIMIT) {
        assert!(found.outcomes.len() > 1, "more than one end: {:?}", found.outcomes);
    }
}

/// Explores a scope in which the checker must notice something.
fn breaks(scope: &Scope) {
    let found = explore(scope, LIMIT);
    assert!(found.violation.is_some(), "nothing noticed in {} states", found.states);
}

fn with_switches(switches: Switches, scope: &Scope) -> Scope {
    Scope { switches, ..scope.clone() }
}

/// Two updates with a common key, and a reader of everything.
fn updates_and_reader() -> Scope {
    Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1, READ_ALL_AT_2])
}

/// A blind writer, and a reader whose snapshot begins beyond the writer's proposals.
fn writer_and_late_reader() -> Scope {
    let before = vec![WRITE_A_AT_1; 2];
    Scope { before, ..Scope::of(&[READ_ALL_AT_0, WRITE_BC_AT_2]) }
}

/// Two writers that share a repository and no key, and a reader of both.
fn neighbours_and_reader() -> Scope {
    Scope::of(&[WRITE_BC_AT_0, WRITE_A_AND_ANOTHER_B_AT_1, READ_ALL_AT_2])
}

#[test]
fn updates() {
    let reordered = Scope { reordered: true, ..Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]) };
    let two = Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]);
    let ring = Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1, CHANGE_CA_AT_2]);
    hold("updates", &[two, reordered, ring]);
}

#[test]
fn readers_see_all_or_nothing_of_each_update() {
    let beside_a_writer = Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1, READ_ALL_AT_0]);
    hold("readers", &[updates_and_reader(), beside_a_writer]);
}

#[test]
fn a_reader_whose_snapshot_is_beyond_the_writers_proposals() {
    let with = |third: Program| {
        let mut scope = writer_and_late_reader();
        scope.programs.push(third);
        scope
    };
    let scopes = [writer_and_late_reader(), with(CHANGE_C_AT_2), with(CHANGE_BC_AT_1)];
    hold("late_readers", &scopes);
}

#[test]
fn neighbours_leave_the_queue_in_order() {
    hold("neighbours", &[neighbours_and_reader()]);
}

#[test]
fn write_skew_is_refused() {
    let two = Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]);
    hold("write_skew", &[two, Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_ALL_AT_2])]);
}

#[test]
fn nested_transactions_hold_when_a_child_is_undone() {
    let levels = &nested::WHOLE_ORDER;
    nested::hold_with_partial_aborts::<Snapshots>("score_partial_aborts", levels);
}

#[test]
fn without_looks_at_what_was_read_some_attempt_sees_what_it_should_not() {
    nested::looks_are_needed::<Snapshots>(Level::SerializableAttempts);
}

#[test]
fn a_strict_reader_respects_real_time() {
    hold("strict", &[strict_reader()]);
}

/// A strict reader beside two writers, one of which may end before it begins.
fn strict_reader() -> Scope {
    let programs = [SKEW_A_AT_0, WRITE_AB_AT_1, READ_STRICTLY_AT_2];
    Scope { level: Level::StrictSerializable, ..Scope::of(&programs) }
}

#[test]
fn scans_see_no_phantoms() {
    let two = Scope::of(&[SCAN_B_AT_0, INSERT_B_AT_1]);
    hold("scans", &[two, Scope::of(&[SCAN_B_AT_0, INSERT_B_AT_1, WRITE_ANOTHER_B_AT_1])]);
}

/// What is deleted while others insert it again.
fn deletes(programs: &[Program]) -> Scope {
    Scope { before: vec![WRITE_AB_AT_1], ..Scope::of(programs) }
}

#[test]
fn keys_come_and_go() {
    let (two, three) = ([DELETE_AB_AT_0, INSERT_AB_AT_1], [DELETE_AB_AT_0, SCAN_DELETE_B_AT_2]);
    let mut scopes = vec![deletes(&two), deletes(&three)];
    scopes.push(Scope { replicas: 2, ..deletes(&[DELETE_AB_AT_0, READ_STRICTLY_AT_2]) });
    for fault in [Fault::Crash(0), Fault::Outage(1), Fault::Lose, Fault::Early] {
        scopes.push(Scope { fault: Some(fault), ..deletes(&two) });
    }
    hold("come_and_go", &scopes);
}

/// Versions and deletions are collected while others may still read them: node 2 has told of a late
/// snapshot, and the others tell of one when their transactions end.
#[test]
fn garbage_is_collected() {
    let last = [CHANGE_A_AT_2].repeat(4);
    let before = [[WRITE_AB_AT_1, WRITE_AB_AT_0].as_slice(), &last].concat();
    let of = |programs: &[Program]| Scope {
        before: before.clone(),
        collects: true,
        ..Scope::of(programs)
    };
    let mut scopes = vec![of(&[DELETE_AB_AT_0, INSERT_AB_AT_1])];
    scopes.push(of(&[DELETE_AB_AT_0, READ_AB_AT_1]));
    hold("garbage", &scopes);
}

#[test]
fn blind_writers_wait_for_each_other_and_not_for_ever() {
    let two = Scope::of(&[WRITE_AB_AT_2, WRITE_AB_AT_1]);
    hold("blind_writers", &[two, Scope::of(&[WRITE_AB_AT_2, WRITE_AB_AT_1, READ_ALL_AT_0])]);
}

#[test]
fn two_replicas_of_every_key() {
    let two = Scope { replicas: 2, ..Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]) };
    let reader: Program = (2, &[ReadOnly, Get("a"), Get("b")]);
    let one: Program = (0, &[Get("a"), Put("a"), Put("b")]);
    let other: Program = (1, &[Get("b"), Put("c")]);
    hold("two_replicas", &[two, Scope { replicas: 2, ..Scope::of(&[one, other, reader]) }]);
}

/// Scopes with one fault at any point: two updates, a late reader with a writer, a scan with an
/// insert, and a reader with a writer and two replicas.
fn survives(name: &str, fault: Fault) {
    let fault = Some(fault);
    let scopes = [
        Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]),
        writer_and_late_reader(),
        Scope::of(&[SCAN_B_AT_0, INSERT_B_AT_1]),
        Scope { replicas: 2, ..Scope::of(&[WRITE_BC_AT_2, READ_ALL_AT_0]) },
    ];
    hold(name, &scopes.map(|scope| Scope { fault, ..scope }));
}

#[test]
fn a_crash_of_node_0() {
    survives("crash_of_node_0", Fault::Crash(0));
}

#[test]
fn a_crash_of_node_1() {
    survives("crash_of_node_1", Fault::Crash(1));
}

#[test]
fn a_crash_of_node_2() {
    survives("crash_of_node_2", Fault::Crash(2));
}

#[test]
fn a_lost_message() {
    survives("lost_message", Fault::Lose);
}

#[test]
fn a_repeated_message() {
    survives("repeated_message", Fault::Repeat);
}

#[test]
fn an_outage_of_node_0() {
    survives("outage_of_node_0", Fault::Outage(0));
}

#[test]
fn a_timer_that_fires_early() {
    survives("early_timer", Fault::Early);
}

/// Two updates with a common repository, and two faults at any two points.
#[test]
fn two_faults() {
    let pair = || Scope::of(&[SKEW_A_AT_0, WRITE_AB_AT_1]);
    let faults = [
        (Fault::Crash(0), Fault::Crash(1)),
        (Fault::Outage(1), Fault::Early),
        (Fault::Lose, Fault::Outage(0)),
        (Fault::Repeat, Fault::Lose),
    ];
    let scopes =
        faults.map(|(fault, second)| Scope { fault: Some(fault), second: Some(second), ..pair() });
    hold("two_faults", &scopes);
}

#[test]
fn without_validation_the_checker_notices() {
    let switches = Switches::broken(FamilySwitch::Validate);
    breaks(&with_switches(switches, &Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1])));
}

#[test]
fn without_validated_strict_readers_the_checker_notices() {
    let switches = Switches::broken(FamilySwitch::ValidatesStrict);
    breaks(&with_switches(switches, &strict_reader()));
}

#[test]
fn without_waiting_reads_the_checker_notices() {
    let switches = Switches::broken(FamilySwitch::ReadsWait);
    breaks(&with_switches(switches, &writer_and_late_reader()));
}

#[test]
fn without_read_locks_the_checker_notices() {
    let switches = Switches::broken(FamilySwitch::LockReads);
    breaks(&with_switches(switches, &Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1])));
}

#[test]
fn without_validated_scans_the_checker_notices() {
    let switches = Switches::broken(FamilySwitch::ValidateScans);
    breaks(&with_switches(switches, &Scope::of(&[SCAN_B_AT_0, INSERT_B_AT_1])));
}

#[test]
fn without_reads_that_raise_the_clock_the_checker_notices() {
    let switches = Switches::broken(FamilySwitch::ReadsRaise);
    breaks(&with_switches(switches, &writer_and_late_reader()));
}

/// The paper's rule for waiting reads trusts the clock, and the clock is right only as long as
/// transactions leave the queue in order and it catches up only when idle.
#[test]
fn by_the_papers_rule_for_waiting_reads_nothing_goes_wrong_either() {
    let switches = Switches::broken(FamilySwitch::WaitsByProposal);
    let scopes = [updates_and_reader(), writer_and_late_reader(), neighbours_and_reader()];
    hold("papers_rule", &scopes.map(|scope| with_switches(switches, &scope)));
}

#[test]
fn without_order_in_the_queue_the_checker_notices_under_the_papers_rule() {
    let switches = Switches::broken(FamilySwitch::OrderedQueue);
    // Reads that go by proposals do not need it.
    hold("queue_without_order", &[with_switches(switches, &neighbours_and_reader())]);
    let switches = switches.without(FamilySwitch::WaitsByProposal);
    breaks(&with_switches(switches, &neighbours_and_reader()));
}

#[test]
fn with_a_clock_that_catches_up_when_busy_the_checker_notices_under_the_papers_rule() {
    let switches = Switches::broken(FamilySwitch::CatchUpWhenIdle);
    // Reads that go by proposals do not need it.
    hold("clock_that_catches_up", &[with_switches(switches, &writer_and_late_reader())]);
    let switches = switches.without(FamilySwitch::WaitsByProposal);
    breaks(&with_switches(switches, &writer_and_late_reader()));
}
