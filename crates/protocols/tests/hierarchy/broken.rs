//! Validation by a tree without one of its rules: what that rule is for is noticed in a small
//! scope, and with it the same scope holds.

use muesli_check::Level;
use muesli_protocols::hierarchy::{Intervals, Switches};
use muesli_protocols::hierarchy_locking::LockingLeaves;
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, TreeSwitch, TwoPhase, Variant};

use crate::harness::exploration::{Do, Found, Program, Scope, explore};
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

type Scopes<V> = Vec<Scope<TwoPhase<V>>>;

/// An update in doubt that copies a key, a writer of it, and a reader.
fn copied<V: Variant<Service: Clone>>() -> Scope<TwoPhase<V>> {
    Scope::of(&[COPY_A_TO_C_AT_2, WRITE_A_AT_0, READ_AB_AT_2])
}

fn skewed<V: Variant<Service: Clone>>() -> Scope<TwoPhase<V>> {
    Scope::of(&[SKEW_A_AT_0, SKEW_B_AT_1])
}

/// The clock where a is written is ahead of the others.
fn a_ahead<V: Variant<Service: Clone>>() -> Scope<TwoPhase<V>> {
    Scope { before: vec![WRITE_A_AT_1; 2], ..Scope::of(&[READ_ABC_AT_0, WRITE_BC_AT_2]) }
}

/// Those where b and c are written are ahead of that where a is.
fn bc_ahead<V: Variant<Service: Clone>>(programs: &[Program]) -> Scope<TwoPhase<V>> {
    Scope { before: vec![WRITE_BC_AT_2; 3], ..Scope::of(programs) }
}

fn updates<V: Variant<Service: Clone>>() -> Scopes<V> {
    vec![copied(), skewed(), Scope::of(&[WRITE_AB_AT_0, READ_AB_AT_2]), a_ahead()]
}

/// What is found without a rule, in a scope that holds with it.
fn without<V: Variant<Service: Clone>>(
    scope: &Scope<TwoPhase<V>>,
    breaks: impl FnOnce(&mut V::Switches),
) -> Found {
    let scope = Scope { level: Level::Serializable, ..scope.clone() };
    let right = explore(&scope, LIMIT);
    assert_eq!(right.violation, None, "{}", scope.title());
    let mut scope = scope;
    breaks(&mut scope.switches);
    explore(&scope, LIMIT)
}

/// Something goes wrong in one of these scopes without a rule of the family.
fn family_needs<V>(switch: FamilySwitch, scopes: &Scopes<V>)
where
    V: Variant<Service: Clone, Switches = Switches>,
{
    let breaks = |scope: &_| without::<V>(scope, |switches| switches.set(switch, false));
    let noticed = scopes.iter().any(|scope| breaks(scope).violation.is_some());
    assert!(noticed, "{switch:?} is not needed");
}

/// Something goes wrong in this scope without a rule of leaves.
fn leaves_need<V>(switch: TreeSwitch, scope: &Scope<TwoPhase<V>>)
where
    V: Variant<Service: Clone, Switches = Switches>,
{
    let found = without(scope, |switches| switches.set(switch, false));
    assert!(found.violation.is_some(), "{switch:?} is not needed in {}", scope.title());
}

/// Nothing goes wrong in these scopes without a rule: it is there for something else.
fn is_safe_without<V>(switch: TreeSwitch, scopes: &Scopes<V>)
where
    V: Variant<Service: Clone, Switches = Switches>,
{
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
    OF_THE_FAMILY.into_iter().for_each(|switch| family_needs::<Intervals>(switch, &updates()));
}

#[test]
fn rules_of_the_family_are_needed_with_locks() {
    OF_THE_FAMILY.into_iter().for_each(|switch| family_needs::<LockingLeaves>(switch, &updates()));
}

#[test]
fn a_read_raises_the_clock_above_its_snapshot_and_looks_again_after_it_has_waited() {
    fn needed<V: Variant<Service: Clone, Switches = Switches>>() {
        leaves_need::<V>(TreeSwitch::ReadsRaiseClocks, &a_ahead());
        let apart = bc_ahead(&[COPY_A_TO_B_AT_1, WRITE_A_AT_0, READ_AB_AT_2]);
        leaves_need::<V>(TreeSwitch::ProposalsPassSnapshots, &apart);
        leaves_need::<V>(TreeSwitch::LooksUpAgain, &a_ahead());
    }
    needed::<Intervals>();
    needed::<LockingLeaves>();
}

/// Intervals need it, too: a leaf forgets the interval of an update when that ends, and then its
/// clock alone keeps writers above.
#[test]
fn clocks_pass_the_ends_of_what_they_proposed() {
    let apart = bc_ahead(&[COPY_A_TO_B_AT_1, WRITE_A_AT_0, READ_AB_AT_2]);
    leaves_need::<Intervals>(TreeSwitch::ClocksPassEnds, &apart);
    let apart = bc_ahead(&[WRITE_AB_AT_0, WRITE_A_AT_0, READ_AB_AT_2]);
    leaves_need::<LockingLeaves>(TreeSwitch::ClocksPassEnds, &apart);
}

#[test]
fn writers_come_above_the_intervals_of_undecided_reads() {
    let apart = bc_ahead(&[COPY_A_TO_B_AT_1, WRITE_A_AT_0, READ_AB_AT_2]);
    leaves_need::<Intervals>(TreeSwitch::WritersAboveIntervals, &apart);
}

/// An update between the proposal of another one and its final timestamp.
#[test]
fn the_newest_version_is_where_it_was_installed_and_not_where_it_was_proposed() {
    let scope = bc_ahead(&[WRITE_AB_AT_0, READ_C_CHANGE_A_AT_2]);
    leaves_need::<Intervals>(TreeSwitch::NewestAsInstalled, &scope);
}

/// Two blind writers that are decided in the other order than their timestamps.
#[test]
fn the_newest_version_is_the_one_that_lies_last_and_not_that_which_came_last() {
    let programs = [WRITE_AB_AT_0, WRITE_AC_AT_2, READ_C_CHANGE_A_AT_2];
    let scope = Scope { before: vec![WRITE_B_AT_2; 3], ..Scope::of(&programs) };
    leaves_need::<Intervals>(TreeSwitch::NewestRises, &scope);
}

#[test]
fn locks_are_released_by_their_owners() {
    let scope = Scope::of(&[CHANGE_AB_AT_0, WRITE_A_AT_1, CHANGE_A_AT_2]);
    leaves_need::<LockingLeaves>(TreeSwitch::LocksHaveOwners, &scope);
}

#[test]
fn leaves_validate() {
    leaves_need::<Intervals>(TreeSwitch::Validates, &skewed());
}

/// Printed so, and not unsafe: some transactions wait longer, or are refused for nothing.
#[test]
fn some_printed_rules_cost_aborts_alone() {
    fn scopes<V: Variant<Service: Clone>>() -> Scopes<V> {
        vec![copied(), skewed(), Scope::of(&[CHANGE_AB_AT_0, CHANGE_BC_AT_1])]
    }
    for switch in [
        TreeSwitch::SnapshotsByClocks,
        TreeSwitch::StampedByLeaf,
        TreeSwitch::BlindWritersPass,
        TreeSwitch::ReadsLeaveNoVersion,
        TreeSwitch::RefusalsPassAtOnce,
    ] {
        is_safe_without::<Intervals>(switch, &scopes());
        is_safe_without::<LockingLeaves>(switch, &scopes());
    }
}

/// Told directly, as printed, all hear the same.
#[test]
fn a_decision_is_the_same_whichever_way_it_comes() {
    fn two_levels<V: Variant<Service: Clone>>() -> Scopes<V> {
        let scope = Scope::of(&[WRITE_ABC_AT_2, READ_AB_AT_2]);
        vec![Scope { two_levels: true, ..scope }]
    }
    is_safe_without::<Intervals>(TreeSwitch::DecisionsGoDown, &two_levels());
    is_safe_without::<LockingLeaves>(TreeSwitch::DecisionsGoDown, &two_levels());
}

/// As printed, what all have voted on waits for later votes of every child: there are none.
#[test]
#[should_panic(expected = "somebody waits, and for nothing")]
fn the_queue_of_stable_timestamps_is_not_live() {
    let broken = Switches::broken(TreeSwitch::DecidesAtOnce);
    let scope = Scope::<TwoPhase<Intervals>>::of(&[WRITE_AB_AT_0]);
    explore(&Scope { switches: broken, ..scope }, LIMIT);
}

/// As printed, a validator waits for a child that takes no part.
#[test]
#[should_panic(expected = "somebody waits, and for nothing")]
fn waiting_for_all_children_is_not_live() {
    let broken = Switches::broken(TreeSwitch::WaitsForParticipants);
    let scope = Scope::<TwoPhase<Intervals>>::of(&[WRITE_AB_AT_0]);
    explore(&Scope { switches: broken, ..scope }, LIMIT);
}

/// The fall-back of the family ends what a validator does not: nothing is wrong with that.
#[test]
fn a_queue_that_is_not_live_is_outlived_by_coordinators() {
    for switch in [TreeSwitch::DecidesAtOnce, TreeSwitch::WaitsForParticipants] {
        let fault = Some(crate::harness::exploration::Fault::Lose);
        let scope = Scope::<TwoPhase<Intervals>>::of(&[WRITE_AB_AT_0]);
        let scope = Scope { switches: Switches::broken(switch), fault, ..scope };
        let found = explore(&scope, LIMIT);
        assert_eq!(found.violation, None, "{switch:?}");
        assert!(found.outcomes.keys().all(|it| it.contains("t1 wrote")), "{:?}", found.outcomes);
    }
}
