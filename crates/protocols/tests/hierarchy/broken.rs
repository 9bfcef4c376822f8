//! Validation by a tree without one of its rules: what that rule is for is noticed in a small
//! scope, and with it the same scope holds.

use muesli_check::Level;
use muesli_protocols::hierarchy::Switches;
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, TreeSwitch};

use crate::harness::exploration::{Do, Fault, Found, Program, Scope, explore};
use crate::scopes::{TreeScope, all_by_locks, both_ways, by_locks, scope};
use crate::two_phase::exploring::{
    CHANGE_A_AT_2, CHANGE_AB_AT_0, CHANGE_BC_AT_1, LIMIT, READ_AB_AT_2, SKEW_A_AT_0, SKEW_B_AT_1,
    WRITE_A_AT_0, WRITE_A_AT_1,
};

const WRITE_AB_AT_0: Program = (0, &[Do::Put("a"), Do::Put("b")]);
const WRITE_AC_AT_2: Program = (2, &[Do::Put("a"), Do::Put("c")]);
const WRITE_BC_AT_2: Program = (2, &[Do::Put("b"), Do::Put("c")]);
const WRITE_ABC_AT_2: Program = (2, &[Do::Put("a"), Do::Put("b"), Do::Put("c")]);
const WRITE_B_AT_2: Program = (2, &[Do::Put("b")]);
const READ_ABC_AT_0: Program = (0, &[Do::ReadOnly, Do::Get("a"), Do::Get("b"), Do::Get("c")]);
const COPY_A_TO_B_AT_1: Program = (1, &[Do::Get("a"), Do::Put("b")]);
const COPY_A_TO_C_AT_2: Program = (2, &[Do::Get("a"), Do::Put("c")]);
const READ_C_CHANGE_A_AT_2: Program = (2, &[Do::Get("c"), Do::Get("a"), Do::Put("a")]);

/// An update in doubt that copies a key, a writer of it, and a reader.
fn copied() -> TreeScope {
    scope(&[COPY_A_TO_C_AT_2, WRITE_A_AT_0, READ_AB_AT_2])
}

fn skewed() -> TreeScope {
    scope(&[SKEW_A_AT_0, SKEW_B_AT_1])
}

/// The clock where a is written is ahead of the others.
fn a_ahead() -> TreeScope {
    Scope { before: vec![WRITE_A_AT_1; 2], ..scope(&[READ_ABC_AT_0, WRITE_BC_AT_2]) }
}

/// Those where b and c are written are ahead of that where a is.
fn bc_ahead(programs: &[Program]) -> TreeScope {
    Scope { before: vec![WRITE_BC_AT_2; 3], ..scope(programs) }
}

fn updates() -> Vec<TreeScope> {
    vec![copied(), skewed(), scope(&[WRITE_AB_AT_0, READ_AB_AT_2]), a_ahead()]
}

/// What is found without a rule, in a scope that holds with it.
fn without(scope: &TreeScope, breaks: impl FnOnce(&mut Switches)) -> Found {
    let scope = Scope { level: Level::Serializable, ..scope.clone() };
    let right = explore(&scope, LIMIT);
    assert_eq!(right.violation, None, "{}", scope.title());
    let mut scope = scope;
    breaks(&mut scope.switches);
    explore(&scope, LIMIT)
}

/// Something goes wrong in one of these scopes without a rule of the family.
fn family_needs(switch: FamilySwitch, scopes: &[TreeScope]) {
    let breaks = |scope: &_| without(scope, |switches| switches.set(switch, false));
    let noticed = scopes.iter().any(|scope| breaks(scope).violation.is_some());
    assert!(noticed, "{switch:?} is not needed");
}

/// Something goes wrong in this scope without a rule of leaves.
fn leaves_need(switch: TreeSwitch, scope: &TreeScope) {
    let found = without(scope, |switches| switches.set(switch, false));
    assert!(found.violation.is_some(), "{switch:?} is not needed in {}", scope.title());
}

/// Nothing goes wrong in these scopes without a rule: it is there for something else.
fn is_safe_without(switch: TreeSwitch, scopes: &[TreeScope]) {
    for scope in scopes {
        let found = without(scope, |switches| switches.set(switch, false));
        assert_eq!(found.violation, None, "{switch:?} in {}", scope.title());
    }
}

/// No pending-writer test, no test whether reads are current, no raise before answering, tentative
/// versions that are not waited for.
const OF_THE_FAMILY: [FamilySwitch; 4] = [
    FamilySwitch::LockReads,
    FamilySwitch::Validate,
    FamilySwitch::ReadsRaise,
    FamilySwitch::ReadsWait,
];

#[test]
fn rules_of_the_family_are_needed_with_intervals() {
    OF_THE_FAMILY.into_iter().for_each(|switch| family_needs(switch, &updates()));
}

#[test]
fn rules_of_the_family_are_needed_with_locks() {
    OF_THE_FAMILY.into_iter().for_each(|switch| family_needs(switch, &all_by_locks(updates())));
}

#[test]
fn a_read_raises_the_clock_above_its_snapshot_and_looks_again_after_it_has_waited() {
    let apart = bc_ahead(&[COPY_A_TO_B_AT_1, WRITE_A_AT_0, READ_AB_AT_2]);
    for scope in both_ways([apart]) {
        leaves_need(TreeSwitch::ProposalsPassSnapshots, &scope);
    }
    for scope in both_ways([a_ahead()]) {
        leaves_need(TreeSwitch::ReadsRaiseClocks, &scope);
        leaves_need(TreeSwitch::LooksUpAgain, &scope);
    }
}

/// Intervals need it, too: a leaf forgets the interval of an update when that ends, and then its
/// clock alone keeps writers above.
#[test]
fn clocks_pass_the_ends_of_what_they_proposed() {
    let apart = bc_ahead(&[COPY_A_TO_B_AT_1, WRITE_A_AT_0, READ_AB_AT_2]);
    leaves_need(TreeSwitch::ClocksPassEnds, &apart);
    let apart = bc_ahead(&[WRITE_AB_AT_0, WRITE_A_AT_0, READ_AB_AT_2]);
    leaves_need(TreeSwitch::ClocksPassEnds, &by_locks(apart));
}

#[test]
fn writers_come_above_the_intervals_of_undecided_reads() {
    let apart = bc_ahead(&[COPY_A_TO_B_AT_1, WRITE_A_AT_0, READ_AB_AT_2]);
    leaves_need(TreeSwitch::WritersAboveIntervals, &apart);
}

/// An update between the proposal of another one and its final timestamp.
#[test]
fn the_newest_version_is_where_it_was_installed_and_not_where_it_was_proposed() {
    let scope = bc_ahead(&[WRITE_AB_AT_0, READ_C_CHANGE_A_AT_2]);
    leaves_need(TreeSwitch::NewestAsInstalled, &scope);
}

/// Two blind writers that are decided in the other order than their timestamps.
#[test]
fn the_newest_version_is_the_one_that_lies_last_and_not_that_which_came_last() {
    let programs = [WRITE_AB_AT_0, WRITE_AC_AT_2, READ_C_CHANGE_A_AT_2];
    let scope = Scope { before: vec![WRITE_B_AT_2; 3], ..scope(&programs) };
    leaves_need(TreeSwitch::NewestRises, &scope);
}

#[test]
fn locks_are_released_by_their_owners() {
    let scope = scope(&[CHANGE_AB_AT_0, WRITE_A_AT_1, CHANGE_A_AT_2]);
    leaves_need(TreeSwitch::LocksHaveOwners, &by_locks(scope));
}

#[test]
fn leaves_validate() {
    leaves_need(TreeSwitch::Validates, &skewed());
}

/// Printed so, and not unsafe: some transactions wait longer, or are refused for nothing.
#[test]
fn some_printed_rules_cost_aborts_alone() {
    fn scopes() -> Vec<TreeScope> {
        vec![copied(), skewed(), scope(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1])]
    }
    for switch in [
        TreeSwitch::SnapshotsByClocks,
        TreeSwitch::StampedByLeaf,
        TreeSwitch::BlindWritersPass,
        TreeSwitch::ReadsLeaveNoVersion,
        TreeSwitch::RefusalsPassAtOnce,
        TreeSwitch::VotesAloneClimb,
        TreeSwitch::ParentsKeepNoVersions,
    ] {
        is_safe_without(switch, &both_ways(scopes()));
    }
}

/// Told directly, as printed, all hear the same.
#[test]
fn a_decision_is_the_same_whichever_way_it_comes() {
    let scope = Scope { two_levels: true, ..scope(&[WRITE_ABC_AT_2, READ_AB_AT_2]) };
    is_safe_without(TreeSwitch::DecisionsGoDown, &both_ways([scope]));
}

/// As printed, what all have voted on waits for later votes of every child: there are none.
#[test]
#[should_panic(expected = "somebody waits, and for nothing")]
fn the_queue_of_stable_timestamps_is_not_live() {
    let broken = Switches::broken(TreeSwitch::DecidesAtOnce);
    let scope = scope(&[WRITE_AB_AT_0]);
    explore(&Scope { switches: broken, ..scope }, LIMIT);
}

/// As printed, a validator waits for a child that takes no part.
#[test]
#[should_panic(expected = "somebody waits, and for nothing")]
fn waiting_for_all_children_is_not_live() {
    let broken = Switches::broken(TreeSwitch::WaitsForParticipants);
    let scope = scope(&[WRITE_AB_AT_0]);
    explore(&Scope { switches: broken, ..scope }, LIMIT);
}

/// The fall-back of the family ends what a validator does not: nothing is wrong with that.
#[test]
fn a_queue_that_is_not_live_is_outlived_by_coordinators() {
    for switch in [TreeSwitch::DecidesAtOnce, TreeSwitch::WaitsForParticipants] {
        let fault = Some(Fault::Lose);
        let scope = scope(&[WRITE_AB_AT_0]);
        let scope = Scope { switches: Switches::broken(switch), fault, ..scope };
        let found = explore(&scope, LIMIT);
        assert_eq!(found.violation, None, "{switch:?}");
        assert!(found.outcomes.keys().all(|it| it.contains("t1 wrote")), "{:?}", found.outcomes);
    }
}
