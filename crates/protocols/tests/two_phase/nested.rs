//! Small scopes of two nested transactions in which children are undone: every interleaving.

use Do::{Get, GiveUp, Merge, Nest, Put};
use muesli_check::Level;
use muesli_core::Protocol;
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, TwoPhase, Variant};

use super::exploring::LIMIT;
use crate::harness::exploration::{Do, Found, Program, Scope, explore, hold_as_written};

/// Two objects, a at node 0 and b at node 1, which both transactions read in a child and change.
/// Whoever reads one before and one after the other's commit has its child undone. (Snapshots of
/// SCORe move only where something has been written.)
const CHILD_OF_AB_AT_0: Program = (0, &[Nest, Get("a"), Put("a"), Get("b"), Put("b"), Merge]);
const CHILD_OF_BA_AT_1: Program = (1, &[Nest, Get("b"), Put("b"), Get("a"), Put("a"), Merge]);
/// The child of a child reads and writes b, and is given up. What it read stays its parent's.
const GIVES_UP_AT_0: Program =
    (0, &[Nest, Nest, Get("b"), Put("b"), GiveUp, Put("b"), Get("a"), Merge]);
/// A third object, b1 at node 1: the parent has read a, which stays when the child is undone.
const PARENT_OF_A_AT_0: Program = (0, &[Get("a"), Put("a"), Nest, Get("b"), Get("b1"), Merge]);
const CHILD_OF_B_AT_1: Program = (1, &[Nest, Get("b"), Put("b"), Put("b1"), Merge]);

/// The parent has read a; its child finds b newer than its snapshot where the other transaction has
/// written both.
const CHILD_OF_B_AT_0: Program = (0, &[Get("a"), Put("a1"), Nest, Get("b"), Put("b1"), Merge]);
const WRITE_AB_AT_2: Program = (2, &[Put("a"), Put("b")]);
/// Both levels have read what the other transaction overwrites, when the inner one meets a.
const TWO_LEVELS_AT_1: Program =
    (1, &[Put("b"), Nest, Get("b2"), Nest, Get("b1"), Get("a"), Merge, Merge]);
const WRITE_ABB_AT_0: Program = (0, &[Put("a"), Put("b1"), Put("b2")]);

/// What a protocol with moving snapshots of one timestamp promises: commits in the order of real
/// time, and whatever was seen, up to partial aborts too, in one order.
pub const WHOLE_ORDER: [Level; 2] = [Level::StrictSerializable, Level::SerializableAttempts];

/// Every interleaving holds at the levels that a protocol promises.
pub fn hold_with_partial_aborts<V: Variant<Service: Clone>>(name: &str, levels: &[Level]) {
    for (scope, found) in hold_nested::<V>(name, levels, |_| {}) {
        assert_rolls_back(&scope, &found);
    }
}

/// The same with other switches, whether children are undone alone or not: each scope, and what was
/// found in it.
pub fn hold_nested<V: Variant<Service: Clone>>(
    name: &str,
    levels: &[Level],
    change: impl Fn(&mut <TwoPhase<V> as Protocol>::Switches),
) -> Vec<(String, Found)> {
    let mut scopes = [
        Scope::<TwoPhase<V>>::of(&[CHILD_OF_AB_AT_0, CHILD_OF_BA_AT_1]),
        Scope::of(&[GIVES_UP_AT_0, CHILD_OF_BA_AT_1]),
        Scope::of(&[PARENT_OF_A_AT_0, CHILD_OF_B_AT_1]),
    ];
    scopes.iter_mut().for_each(|scope| change(&mut scope.switches));
    let at = |&level: &Level| {
        let scopes = scopes.clone().map(|scope| Scope { level, ..scope });
        let found = hold_as_written(name, &scopes, LIMIT);
        scopes.map(|scope| scope.title()).into_iter().zip(found).collect::<Vec<_>>()
    };
    levels.iter().flat_map(at).collect()
}

/// Some execution has exactly one rollback, and some transaction commits after one.
pub fn assert_rolls_back(title: &str, found: &Found) {
    let once = found.partial_aborts.get(&1).copied().unwrap_or_default();
    assert!(once > 0, "{title}: {:?} children are undone", found.partial_aborts);
    let commits = found.outcomes.keys().any(|outcome| outcome.contains("after partial aborts"));
    assert!(commits, "{title}: {:?}", found.outcomes);
}

/// Each rule of looks at what was read, broken alone, lets some attempt see what it should not.
pub fn looks_are_needed<V: Variant<Service: Clone>>(level: Level)
where
    <TwoPhase<V> as Protocol>::Switches: Sabotage<FamilySwitch>,
{
    let one_level = [CHILD_OF_B_AT_0, WRITE_AB_AT_2];
    let two_levels = [WRITE_ABB_AT_0, TWO_LEVELS_AT_1];
    let broken = [
        (FamilySwitch::MovesValidated, &one_level),
        (FamilySwitch::MovesAllLevels, &two_levels),
        (FamilySwitch::UndoesOutermost, &two_levels),
    ];
    for (switch, programs) in broken {
        let whole = Scope::<TwoPhase<V>> { level, ..Scope::of(programs) };
        assert_eq!(explore(&whole, LIMIT).violation, None, "with {switch:?}");
        let switches = whole.switches.clone().without(switch);
        let scope = Scope { switches, ..whole };
        let found = explore(&scope, LIMIT);
        assert!(found.violation.is_some(), "{switch:?}: nothing in {} states", found.states);
    }
}
