//! Exhaustive exploration of small scopes: three nodes, two or three small transactions, every
//! interleaving of what clients do and of what messages arrive.
//!
//! The numbers of states are pinned: a change of the protocol changes them on purpose. So are the
//! outcomes: a scope in which a conflict never aborts, or a reader never waits, proves nothing.

mod exploration;
mod judge;

use Do::{Get, Put, ReadOnly, Scan, Strict};
use exploration::{Do, Fault, Found, Program, Scope, explore};
use muesli_check::Level;
use muesli_protocols::score::Rules;

/// Key a… lives at node 0, b… at node 1, c… at node 2.
const CHANGE_AB_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a"), Put("b")]);
const CHANGE_BC_AT_1: Program = (1, &[Get("b"), Get("c"), Put("b"), Put("c")]);
const CHANGE_CA_AT_2: Program = (2, &[Get("c"), Get("a"), Put("c"), Put("a")]);
const CHANGE_C_AT_2: Program = (2, &[Get("c"), Put("c")]);
const READ_ALL_AT_0: Program = (0, &[ReadOnly, Get("a"), Get("b"), Get("c")]);
const READ_ALL_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b"), Get("c")]);
const READ_STRICTLY_AT_2: Program = (2, &[Strict, Get("a"), Get("b")]);
const WRITE_A_AT_1: Program = (1, &[Put("a")]);
const WRITE_BC_AT_0: Program = (0, &[Put("b"), Put("c")]);
const WRITE_BC_AT_2: Program = (2, &[Put("b"), Put("c")]);
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

const LIMIT: usize = 300_000;

/// Explores a scope in which nothing may go wrong; the outcomes must be these.
#[track_caller]
fn holds(scope: &Scope, states: usize, outcomes: &[&str]) {
    let found = explore(scope, LIMIT);
    assert_eq!(found.violation, None);
    let reached: Vec<_> = found.outcomes.keys().map(String::as_str).collect();
    assert_eq!(reached, outcomes);
    assert_eq!(found.states, states, "the number of states has changed");
}

/// Explores a scope whose outcomes another test names.
#[track_caller]
fn holds_too(scope: &Scope, states: usize) {
    let Found { states: seen, outcomes, violation } = explore(scope, LIMIT);
    assert_eq!(violation, None);
    assert!(outcomes.len() > 1, "more than one end: {outcomes:?}");
    assert_eq!(seen, states, "the number of states has changed");
}

/// Explores a scope in which the checker must notice something.
fn breaks(scope: &Scope) {
    let found = explore(scope, LIMIT);
    assert!(found.violation.is_some(), "nothing noticed in {} states", found.states);
}

fn with_rules(rules: Rules, scope: &Scope) -> Scope {
    Scope { rules, ..scope.clone() }
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
fn two_updates_with_a_common_key() {
    holds(
        &Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]),
        210,
        &["t1 aborted, t2 saw - -", "t1 saw - -, t2 aborted", "t1 saw - -, t2 saw t1 -"],
    );
}

#[test]
fn two_updates_with_a_common_key_and_messages_that_overtake() {
    let scope = Scope { reordered: true, ..Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]) };
    holds(
        &scope,
        237,
        &["t1 aborted, t2 saw - -", "t1 saw - -, t2 aborted", "t1 saw - -, t2 saw t1 -"],
    );
}

#[test]
fn three_updates_in_a_ring() {
    holds_too(&Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1, CHANGE_CA_AT_2]), 20721);
}

#[test]
fn a_reader_of_two_updates_sees_all_or_nothing_of_each() {
    holds(
        &updates_and_reader(),
        6806,
        &[
            "t1 aborted, t2 saw - -, t3 saw - - -",
            "t1 saw - -, t2 aborted, t3 saw - - -",
            "t1 saw - -, t2 aborted, t3 saw t1 t1 -",
            "t1 saw - -, t2 saw t1 -, t3 saw - - -",
            "t1 saw - -, t2 saw t1 -, t3 saw t1 t1 -",
        ],
    );
}

#[test]
fn a_reader_that_begins_at_a_writers_node() {
    let scope = Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1, READ_ALL_AT_0]);
    holds_too(&scope, 11590);
}

#[test]
fn a_reader_whose_snapshot_is_beyond_the_writers_proposals() {
    holds(
        &writer_and_late_reader(),
        94,
        &["t1 saw before1 - -, t2 wrote", "t1 saw before1 t2 t2, t2 wrote"],
    );
    let mut scope = writer_and_late_reader();
    scope.programs.push(CHANGE_C_AT_2);
    holds_too(&scope, 1435);
    scope.programs[2] = CHANGE_BC_AT_1;
    holds_too(&scope, 6225);
}

#[test]
fn neighbours_leave_the_queue_in_order() {
    holds(
        &neighbours_and_reader(),
        5695,
        &[
            "t1 wrote, t2 wrote, t3 saw - - -",
            "t1 wrote, t2 wrote, t3 saw t2 - -",
            "t1 wrote, t2 wrote, t3 saw t2 t1 t1",
        ],
    );
}

#[test]
fn write_skew_is_refused() {
    holds(
        &Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1]),
        189,
        &[
            "t1 aborted, t2 aborted",
            "t1 aborted, t2 saw - -",
            "t1 saw - -, t2 aborted",
            "t1 saw - -, t2 saw t1 -",
            "t1 saw - t2, t2 saw - -",
        ],
    );
    holds_too(&Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1, READ_ALL_AT_2]), 6249);
}

#[test]
fn a_strict_reader_respects_real_time() {
    let programs = [SKEW_A_AT_0, WRITE_AB_AT_1, READ_STRICTLY_AT_2];
    let scope = Scope { level: Level::StrictSerializable, ..Scope::of(&programs) };
    holds_too(&scope, 49056);
}

#[test]
fn scans_see_no_phantoms() {
    holds(
        &Scope::of(&[SCAN_B_AT_0, INSERT_B_AT_1]),
        132,
        &[
            "t1 aborted, t2 aborted",
            "t1 aborted, t2 saw -",
            "t1 saw [], t2 aborted",
            "t1 saw [], t2 saw t1",
            "t1 saw [b1], t2 saw -",
        ],
    );
    holds_too(&Scope::of(&[SCAN_B_AT_0, INSERT_B_AT_1, WRITE_ANOTHER_B_AT_1]), 1236);
}

#[test]
fn blind_writers_wait_for_each_other_and_not_for_ever() {
    holds(
        &Scope::of(&[WRITE_AB_AT_2, WRITE_AB_AT_1]),
        202,
        &["t1 aborted, t2 wrote", "t1 wrote, t2 aborted", "t1 wrote, t2 wrote"],
    );
    holds_too(&Scope::of(&[WRITE_AB_AT_2, WRITE_AB_AT_1, READ_ALL_AT_0]), 5872);
}

#[test]
fn two_replicas_of_every_key() {
    let scope = Scope { replicas: 2, ..Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]) };
    holds(
        &scope,
        2785,
        &[
            "t1 aborted, t2 aborted",
            "t1 aborted, t2 saw - -",
            "t1 saw - -, t2 aborted",
            "t1 saw - -, t2 saw t1 -",
            "t1 saw - t2, t2 saw - -",
        ],
    );
    let reader: Program = (2, &[ReadOnly, Get("a"), Get("b")]);
    let one: Program = (0, &[Get("a"), Put("a"), Put("b")]);
    let other: Program = (1, &[Get("b"), Put("c")]);
    holds_too(&Scope { replicas: 2, ..Scope::of(&[one, other, reader]) }, 40605);
}

/// Scopes with one fault at any point: two updates, a late reader with a writer, a scan with an
/// insert, and the late reader once more with two replicas.
fn survives(fault: Fault, states: [usize; 4]) {
    let fault = Some(fault);
    let two_replicas = Scope { replicas: 2, ..Scope::of(&[WRITE_BC_AT_2, READ_ALL_AT_0]) };
    let scopes = [
        Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]),
        writer_and_late_reader(),
        Scope::of(&[SCAN_B_AT_0, INSERT_B_AT_1]),
        two_replicas,
    ];
    let seen = scopes.map(|scope| {
        let found = explore(&Scope { fault, ..scope }, LIMIT);
        assert_eq!(found.violation, None);
        assert!(found.outcomes.len() > 1, "more than one end: {:?}", found.outcomes);
        found.states
    });
    assert_eq!(seen, states, "the numbers of states have changed");
}

#[test]
fn a_crash_of_node_0() {
    survives(Fault::Crash(0), [2290, 793, 1186, 4353]);
}

#[test]
fn a_crash_of_node_1() {
    survives(Fault::Crash(1), [3520, 2113, 1488, 7127]);
}

#[test]
fn a_crash_of_node_2() {
    survives(Fault::Crash(2), [6091, 1125, 1486, 9922]);
}

#[test]
fn a_lost_message() {
    survives(Fault::Lose, [1169, 885, 756, 16860]);
}

#[test]
fn a_repeated_message() {
    survives(Fault::Repeat, [1304, 664, 949, 1391]);
}

#[test]
fn without_validation_the_checker_notices() {
    let rules = Rules { validate: false, ..Rules::default() };
    breaks(&with_rules(rules, &Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1])));
}

#[test]
fn without_waiting_reads_the_checker_notices() {
    let rules = Rules { reads_wait: false, ..Rules::default() };
    breaks(&with_rules(rules, &writer_and_late_reader()));
}

#[test]
fn without_read_locks_the_checker_notices() {
    let rules = Rules { lock_reads: false, ..Rules::default() };
    breaks(&with_rules(rules, &Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1])));
}

#[test]
fn without_validated_scans_the_checker_notices() {
    let rules = Rules { validate_scans: false, ..Rules::default() };
    breaks(&with_rules(rules, &Scope::of(&[SCAN_B_AT_0, INSERT_B_AT_1])));
}

#[test]
fn without_reads_that_raise_the_clock_the_checker_notices() {
    let rules = Rules { reads_raise: false, ..Rules::default() };
    breaks(&with_rules(rules, &writer_and_late_reader()));
}

/// The paper's rule for waiting reads trusts the clock, and the clock is right only as long as
/// transactions leave the queue in order and it catches up only when idle.
#[test]
fn by_the_papers_rule_for_waiting_reads_nothing_goes_wrong_either() {
    let rules = Rules { waits_by_proposal: false, ..Rules::default() };
    holds_too(&with_rules(rules, &updates_and_reader()), 6822);
    holds_too(&with_rules(rules, &writer_and_late_reader()), 94);
    holds_too(&with_rules(rules, &neighbours_and_reader()), 5609);
}

#[test]
fn without_order_in_the_queue_the_checker_notices_under_the_papers_rule() {
    let rules = Rules { ordered_queue: false, ..Rules::default() };
    // Reads that go by proposals do not need it.
    holds_too(&with_rules(rules, &neighbours_and_reader()), 5742);
    let rules = Rules { waits_by_proposal: false, ..rules };
    breaks(&with_rules(rules, &neighbours_and_reader()));
}

#[test]
fn with_a_clock_that_catches_up_when_busy_the_checker_notices_under_the_papers_rule() {
    let rules = Rules { catch_up_when_idle: false, ..Rules::default() };
    // Reads that go by proposals do not need it.
    holds_too(&with_rules(rules, &writer_and_late_reader()), 94);
    let rules = Rules { waits_by_proposal: false, ..rules };
    breaks(&with_rules(rules, &writer_and_late_reader()));
}
