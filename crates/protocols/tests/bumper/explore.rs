//! Bumper in small scopes: every interleaving, as for SCORe, with its own rules and without them.

use std::collections::BTreeMap;
use std::io::Write;

use Do::{Alter, Ask, Delay, Delete, Get, Mark, Put, ReadOnly, Scan, Strict};
use muesli_check::Level;
use muesli_protocols::bumper::{BumperSwitch, Switches, TimeWarp};
use muesli_protocols::two_phase::{self, Sabotage, TwoPhase};

use crate::harness::exploration::{Do, Fault, Found, Program, Scope, explore};
use crate::two_phase::nested;

type BumperScope = Scope<TwoPhase<TimeWarp>>;

/// Key a… lives at node 0, b… at node 1, c… at node 2.
const WRITE_A_AT_0: Program = (0, &[Get("a"), Put("a")]);
const PUT_AB_AT_0: Program = (0, &[Put("a"), Put("b")]);
const PUT_B_AT_1: Program = (1, &[Put("b")]);
const PUT_AC_AT_2: Program = (2, &[Get("a"), Put("a"), Put("c")]);
const WRITE_AC_AT_0: Program = (0, &[Put("a"), Put("c1")]);
const CHANGE_AB_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a"), Put("b")]);
const CHANGE_BC_AT_1: Program = (1, &[Get("b"), Get("c"), Put("b"), Put("c")]);
/// Reads what the writers above replace, and writes something else.
const READ_A_WRITE_B_AT_0: Program = (0, &[Get("a"), Put("b")]);
const READ_A_CHANGE_C_AT_0: Program = (0, &[Get("a"), Get("c"), Put("c")]);
const READ_B_WRITE_A_AT_1: Program = (1, &[Get("b"), Put("a")]);
const READ_AC_AT_0: Program = (0, &[ReadOnly, Get("a"), Get("c")]);
const READ_AB_AT_0: Program = (0, &[ReadOnly, Get("a"), Get("b")]);
const READ_AB_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b")]);
/// Three in a ring, each missing the next.
const READ_A_WRITE_B_AT_1: Program = (1, &[Get("a"), Put("b")]);
const READ_B_WRITE_C_AT_2: Program = (2, &[Get("b"), Put("c")]);
const READ_C_WRITE_A_AT_0: Program = (0, &[Get("c"), Put("a")]);
const SCAN_B_WRITE_A_AT_0: Program = (0, &[Scan("b", "c"), Put("a")]);
const READ_A_INSERT_B_AT_1: Program = (1, &[Get("a"), Put("b1")]);

const ADD_AB_AT_0: Program = (0, &[Delay("a"), Delay("b")]);
const ADD_B_AT_1: Program = (1, &[Delay("b")]);
const ADD_AB_AT_2: Program = (2, &[Get("c"), Delay("a"), Delay("b"), Put("c")]);
const READ_A_ADD_B_AT_1: Program = (1, &[Get("a"), Delay("b")]);
const ADD_C_AT_0: Program = (0, &[Delay("c")]);
const ADD_B_AT_2: Program = (2, &[Delay("b")]);
const READ_B_ADD_A_AT_1: Program = (1, &[Get("b"), Delay("a")]);
const SCAN_AB_AT_2: Program = (2, &[ReadOnly, Scan("a", "c")]);

/// None of these may go before whom it missed.
const STRICTLY_READ_A_WRITE_B_AT_0: Program = (0, &[Strict, Get("a"), Put("b")]);
const STRICTLY_WRITE_A_AT_1: Program = (1, &[Strict, Get("a"), Put("a")]);
const STRICTLY_READ_AB_AT_2: Program = (2, &[Strict, Get("a"), Get("b")]);

const DELETE_A_AT_0: Program = (0, &[Get("a"), Delete("a")]);
const READ_A_DELETE_B_AT_1: Program = (1, &[Get("a"), Delete("b")]);
const INSERT_A_AT_1: Program = (1, &[Get("b"), Put("a")]);
const ADD_A_AT_1: Program = (1, &[Get("b"), Delay("a")]);

const LIMIT: usize = 300_000;

fn hold(name: &str, scopes: &[BumperScope]) {
    for outcomes in hold_whatever(name, scopes) {
        assert!(outcomes.len() > 1, "more than one end: {outcomes:?}");
    }
}

/// The same, and how each scope may end.
fn hold_whatever(name: &str, scopes: &[BumperScope]) -> Vec<BTreeMap<String, usize>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explored");
    let mut golden = goldenfile::Mint::new(folder);
    let mut file = golden.new_goldenfile(format!("bumper_{name}.txt")).expect("a writable folder");
    let mut all = Vec::new();
    for scope in scopes {
        let Found { states, outcomes, violation, .. } = explore(scope, LIMIT);
        assert_eq!(violation, None);
        writeln!(file, "{}\n  {states} states", scope.title()).expect("a writable file");
        for (outcome, ends) in &outcomes {
            writeln!(file, "  {ends:6} × {outcome}").expect("a writable file");
        }
        all.push(outcomes);
    }
    all
}

fn breaks(change: impl Fn(&mut Switches), scope: &BumperScope) {
    let mut scope = scope.clone();
    change(&mut scope.switches);
    let found = explore(&scope, LIMIT);
    assert!(found.violation.is_some(), "nothing noticed in {} states", found.states);
}

/// One that can go before the writer of what it read, and a reader of both.
fn warped_and_reader() -> BumperScope {
    Scope::of(&[READ_A_WRITE_B_AT_0, WRITE_A_AT_0, READ_AB_AT_2])
}

/// The same, with a reader that has seen the writer before it asks for the rest.
fn warped_and_reader_beside() -> BumperScope {
    Scope::of(&[READ_A_WRITE_B_AT_0, WRITE_A_AT_0, READ_AB_AT_0])
}

/// Three that could each go before the next, in a ring.
fn ring() -> BumperScope {
    Scope::of(&[READ_A_WRITE_B_AT_1, READ_B_WRITE_C_AT_2, READ_C_WRITE_A_AT_0])
}

fn skew() -> BumperScope {
    let before = vec![WRITE_A_AT_0];
    Scope { before, ..Scope::of(&[READ_A_WRITE_B_AT_0, READ_B_WRITE_A_AT_1]) }
}

/// The paper's triad with a repository whose clock is behind.
fn triad() -> BumperScope {
    let before = vec![WRITE_A_AT_0];
    Scope { before, ..Scope::of(&[READ_A_CHANGE_C_AT_0, WRITE_AC_AT_0, READ_AC_AT_0]) }
}

#[test]
fn updates_go_before_whom_they_missed() {
    hold("past", &[warped_and_reader(), warped_and_reader_beside()]);
}

#[test]
fn whoever_missed_each_other_do_not_both_commit() {
    let two = Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1]);
    hold("skew", &[skew(), two]);
}

#[test]
fn three_in_a_ring() {
    hold("ring", &[ring()]);
}

#[test]
fn triads() {
    hold("triad", &[triad()]);
}

#[test]
fn scans() {
    hold("scans", &[Scope::of(&[SCAN_B_WRITE_A_AT_0, READ_A_INSERT_B_AT_1])]);
}

#[test]
fn two_replicas() {
    hold("two_replicas", &[Scope { replicas: 2, ..skew() }]);
}

#[test]
fn one_fault() {
    let crashes = [Fault::Crash(0), Fault::Crash(1), Fault::Outage(0), Fault::Outage(1)];
    let others = [Fault::Lose, Fault::Repeat, Fault::Early];
    let with = |fault| Scope { fault: Some(fault), ..skew() };
    let scopes: Vec<_> = crashes.into_iter().chain(others).map(with).collect();
    hold("one_fault", &scopes);
}

#[test]
fn two_faults() {
    let faults = [(Fault::Crash(0), Fault::Crash(1)), (Fault::Lose, Fault::Outage(0))];
    let with = |(fault, second)| Scope { fault: Some(fault), second: Some(second), ..skew() };
    hold("two_faults", &faults.map(with));
}

#[test]
fn keys_come_and_go() {
    let of = |programs: &[Program]| -> BumperScope {
        Scope { before: vec![CHANGE_AB_AT_0], ..Scope::of(programs) }
    };
    let warped = || of(&[READ_A_DELETE_B_AT_1, DELETE_A_AT_0]);
    let mut scopes = vec![warped(), of(&[DELETE_A_AT_0, INSERT_A_AT_1, READ_AB_AT_2])];
    scopes.push(of(&[DELETE_A_AT_0, ADD_A_AT_1, READ_AB_AT_2]));
    for fault in [Fault::Crash(0), Fault::Lose] {
        scopes.push(Scope { fault: Some(fault), ..warped() });
    }
    hold("come_and_go", &scopes);
}

/// Under time warping a child goes on with what is out of date, as its transaction may commit in
/// the past; with delayed actions alone it is undone.
#[test]
fn nested_transactions_hold_whether_a_child_is_undone_or_not() {
    let levels = &[Level::Serializable, Level::SerializableAttempts];
    let warping = nested::hold_nested::<TimeWarp>("bumper_nested", levels, |_| {});
    assert!(warping.iter().all(|(_, found)| found.partial_aborts.keys().all(|it| *it == 0)));
    let delaying = |switches: &mut Switches| *switches = Switches::delaying();
    let found = nested::hold_nested::<TimeWarp>("bumper_partial_aborts", levels, delaying);
    found.iter().for_each(|(scope, found)| nested::assert_rolls_back(scope, found));
}

#[test]
fn garbage_is_collected() {
    let of = |switches: Switches, programs: &[Program]| BumperScope {
        switches,
        before: [[PUT_AB_AT_0, PUT_B_AT_1].as_slice(), &[PUT_AC_AT_2].repeat(4)].concat(),
        collects: true,
        ..Scope::of(programs)
    };
    let (warped, comes) = ([READ_A_DELETE_B_AT_1, DELETE_A_AT_0], [DELETE_A_AT_0, INSERT_A_AT_1]);
    let scopes = [
        of(Switches::default(), &warped),
        of(Switches::time_warping(), &warped),
        of(Switches::delaying(), &[DELETE_A_AT_0, ADD_A_AT_1]),
        of(Switches::reconciled(), &[DELETE_A_AT_0, READ_A_ADD_B_AT_1]),
        of(Switches::default(), &comes),
    ];
    hold("garbage", &scopes);
}

/// All are strict: nobody goes before whom it missed, and readers see what has ended.
fn strict(switches: Switches) -> BumperScope {
    let programs = [STRICTLY_READ_A_WRITE_B_AT_0, STRICTLY_WRITE_A_AT_1, STRICTLY_READ_AB_AT_2];
    BumperScope { switches, level: Level::StrictSerializable, ..Scope::of(&programs) }
}

#[test]
fn strict_transactions_respect_real_time() {
    hold("strict", &[Switches::time_warping(), Switches::reconciled()].map(strict));
    breaks(
        |switches| switches.set(two_phase::FamilySwitch::ValidatesStrict, false),
        &strict(Switches::time_warping()),
    );
}

#[test]
fn without_the_triad_rule_the_checker_notices() {
    breaks(|switches| switches.set(BumperSwitch::Triads, false), &skew());
}

#[test]
fn without_read_timestamps_the_checker_notices() {
    breaks(
        |switches| switches.set(BumperSwitch::ReadTimestampsKept, false),
        &warped_and_reader_beside(),
    );
}

#[test]
fn without_waiting_for_the_past_the_checker_notices() {
    breaks(
        |switches| switches.set(BumperSwitch::ReadsWaitForTimeWarped, false),
        &warped_and_reader_beside(),
    );
}

#[test]
fn without_read_timestamps_of_updates_the_checker_notices() {
    breaks(|switches| switches.set(BumperSwitch::UpdatesSetReadTimestamps, false), &skew());
}

#[test]
fn as_printed_the_checker_notices() {
    breaks(|switches| *switches = Switches::printed(), &skew());
}

fn delayed(programs: &[Program]) -> BumperScope {
    Scope::of(programs)
}

#[test]
fn delayed_actions() {
    let fault = |fault| BumperScope { fault: Some(fault), ..delayed(&[ADD_AB_AT_0, ADD_B_AT_1]) };
    let alone =
        |programs: &[Program]| BumperScope { switches: Switches::delaying(), ..delayed(programs) };
    let two_replicas = BumperScope { replicas: 2, ..delayed(&[ADD_B_AT_1, READ_AB_AT_2]) };
    let two = delayed(&[ADD_AB_AT_0, ADD_B_AT_1]);
    let ends = &hold_whatever("delayed_alone", &[two])[0];
    assert_eq!(ends.keys().collect::<Vec<_>>(), ["t1 wrote, t2 wrote"], "nobody aborts");
    let scopes = [
        delayed(&[ADD_AB_AT_0, READ_AB_AT_2]),
        delayed(&[ADD_AB_AT_0, SCAN_AB_AT_2]),
        delayed(&[ADD_AB_AT_0, CHANGE_AB_AT_0]),
        delayed(&[ADD_AB_AT_0, READ_A_WRITE_B_AT_1]),
        alone(&[ADD_AB_AT_0, ADD_AB_AT_2]),
        alone(&[ADD_AB_AT_0, READ_A_WRITE_B_AT_1]),
        two_replicas,
        fault(Fault::Crash(0)),
        fault(Fault::Crash(1)),
        fault(Fault::Lose),
        fault(Fault::Repeat),
    ];
    let ends = hold_whatever("delayed", &scopes);
    assert!(ends.iter().flat_map(|ends| ends.keys()).any(|end| end.contains("aborted")));
}

#[test]
fn a_delayed_lock_is_no_shared_one() {
    breaks(
        |switches| switches.set(two_phase::FamilySwitch::DelayedExcludes, false),
        &delayed(&[ADD_AB_AT_0, READ_AB_AT_2]),
    );
}

const ASK_AB_AT_0: Program = (0, &[Ask("a"), Ask("b")]);
const MARK_BB_AT_0: Program = (0, &[Mark("b b1")]);
const MARK_BB_AT_1: Program = (1, &[Mark("b1 b")]);
const MARK_A_AND_B_AT_2: Program = (2, &[Mark("b b1"), Mark("a")]);
const MARK_A_AND_B_AT_0: Program = (0, &[Mark("b b1"), Mark("a")]);
const ALTER_BB_AT_0: Program = (0, &[Alter("b b1")]);
const ALTER_BB_AT_2: Program = (2, &[Get("c"), Alter("b1 b"), Put("c")]);
const ALTER_A_AND_B_AT_2: Program = (2, &[Alter("b"), Alter("a")]);
const ASK_B_AT_2: Program = (2, &[Ask("b")]);
const READ_BB_AT_2: Program = (2, &[ReadOnly, Get("b"), Get("b1")]);

/// Each under each of the faults.
fn with_faults(programs: &[Program], crashes: [u32; 2]) -> Vec<BumperScope> {
    let crashes = crashes.map(Fault::Crash);
    let faults = crashes.into_iter().chain([Fault::Lose, Fault::Repeat]);
    faults.map(|fault| BumperScope { fault: Some(fault), ..delayed(programs) }).collect()
}

#[test]
fn what_delayed_actions_left_is_told() {
    let mut scopes = vec![
        delayed(&[ASK_AB_AT_0, ADD_B_AT_1]),
        delayed(&[ASK_AB_AT_0, READ_AB_AT_2]),
        BumperScope { replicas: 2, ..delayed(&[ASK_B_AT_2, ADD_B_AT_1]) },
        reconciled(&[ASK_B_AT_2, READ_A_ADD_B_AT_1, WRITE_A_AT_0]),
    ];
    scopes.extend(with_faults(&[ASK_B_AT_2, ADD_B_AT_1], [1, 2]));
    hold_whatever("delayed_and_asked", &scopes);
}

#[test]
fn steady_procedures_run_beside_each_other() {
    let two = &hold_whatever("steady_alone", &[delayed(&[MARK_BB_AT_0, MARK_BB_AT_1])])[0];
    assert!(two.keys().all(|end| !end.contains("aborted")), "nobody aborts: {two:?}");
    let mut scopes = vec![
        delayed(&[MARK_BB_AT_0, ASK_B_AT_2]),
        delayed(&[MARK_BB_AT_0, READ_BB_AT_2]),
        delayed(&[MARK_A_AND_B_AT_2, MARK_BB_AT_0]),
        delayed(&[MARK_BB_AT_0, CHANGE_BC_AT_1]),
        BumperScope { replicas: 2, ..delayed(&[MARK_BB_AT_0, ASK_B_AT_2]) },
    ];
    scopes.extend(with_faults(&[MARK_BB_AT_0, MARK_BB_AT_1], [1, 0]));
    hold_whatever("steady", &scopes);
}

#[test]
fn procedures_that_are_not_steady_have_their_keys_alone() {
    let mut scopes = vec![
        delayed(&[ALTER_BB_AT_0, ALTER_BB_AT_2]),
        delayed(&[ALTER_BB_AT_0, MARK_BB_AT_1]),
        delayed(&[ALTER_BB_AT_0, READ_BB_AT_2]),
        delayed(&[ALTER_A_AND_B_AT_2, ADD_AB_AT_0]),
        delayed(&[ALTER_BB_AT_0, CHANGE_BC_AT_1]),
        BumperScope { replicas: 2, ..delayed(&[ALTER_BB_AT_0, ASK_B_AT_2]) },
    ];
    scopes.extend(with_faults(&[ALTER_BB_AT_0, MARK_BB_AT_1], [1, 0]));
    hold_whatever("delayed_procedures", &scopes);
}

#[test]
fn who_takes_the_lock_of_a_procedure_for_a_shared_one_is_caught() {
    let scope = delayed(&[MARK_A_AND_B_AT_0, READ_AB_AT_2]);
    breaks(|switches| switches.set(two_phase::FamilySwitch::DelayedExcludes, false), &scope);
}

fn reconciled(programs: &[Program]) -> BumperScope {
    Scope { switches: Switches::reconciled(), ..Scope::of(programs) }
}

/// Who may go into the past with its delayed action, and one who has one on the same key.
fn warped_and_delayer() -> BumperScope {
    reconciled(&[READ_A_ADD_B_AT_1, WRITE_A_AT_0, ADD_B_AT_2])
}

/// The same, where the clock of who is missed is ahead of the clock of the delayed actions.
fn warped_above_proposals() -> BumperScope {
    let before = vec![ADD_C_AT_0, ADD_C_AT_0];
    Scope { before, ..reconciled(&[READ_A_ADD_B_AT_1, WRITE_AC_AT_0, ADD_B_AT_2]) }
}

#[test]
fn delayed_actions_time_warped() {
    let fault = |fault| BumperScope {
        fault: Some(fault),
        ..reconciled(&[READ_A_ADD_B_AT_1, WRITE_A_AT_0])
    };
    let scopes = [
        reconciled(&[READ_A_ADD_B_AT_1, WRITE_A_AT_0, READ_AB_AT_2]),
        reconciled(&[READ_A_ADD_B_AT_1, WRITE_A_AT_0, SCAN_AB_AT_2]),
        reconciled(&[READ_A_ADD_B_AT_1, READ_B_ADD_A_AT_1]),
        warped_and_delayer(),
        warped_above_proposals(),
        reconciled(&[READ_A_ADD_B_AT_1, WRITE_A_AT_0, CHANGE_BC_AT_1]),
        BumperScope { replicas: 2, ..reconciled(&[READ_A_ADD_B_AT_1, READ_B_ADD_A_AT_1]) },
        fault(Fault::Crash(0)),
        fault(Fault::Crash(1)),
        fault(Fault::Lose),
        fault(Fault::Repeat),
    ];
    let ends = hold_whatever("delayed_in_the_past", &scopes);
    let all = |ends: &BTreeMap<String, usize>| ends.keys().any(|end| !end.contains("aborted"));
    assert!(ends.iter().all(all), "both mechanisms at once: nobody aborts in some run of each");
}

#[test]
fn who_delays_cannot_lie_above_its_proposal() {
    breaks(|switches| switches.set(BumperSwitch::BelowProposals, false), &warped_above_proposals());
}

#[test]
fn two_delayers_of_a_key_cannot_both_have_the_past() {
    breaks(|switches| switches.set(BumperSwitch::AloneTimeWarped, false), &warped_and_delayer());
}
