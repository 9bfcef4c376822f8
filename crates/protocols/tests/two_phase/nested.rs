//! Small scopes of two nested transactions in which children are undone: every interleaving.

use Do::{Get, GiveUp, Merge, Nest, Put};
use muesli_check::Level;
use muesli_protocols::two_phase::{TwoPhase, Variant};

use super::exploring::LIMIT;
use crate::harness::exploration::{Do, Found, Program, Scope, hold_as_written};

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

/// What a protocol with moving snapshots of one timestamp promises: commits in the order of real
/// time, and whatever was seen, up to partial aborts too, in one order.
pub const WHOLE_ORDER: [Level; 2] = [Level::StrictSerializable, Level::SerializableAttempts];

/// Every interleaving holds at the levels that a protocol promises.
pub fn hold_with_partial_aborts<V: Variant<Service: Clone>>(name: &str, levels: &[Level]) {
    let scopes = [
        Scope::<TwoPhase<V>>::of(&[CHILD_OF_AB_AT_0, CHILD_OF_BA_AT_1]),
        Scope::of(&[GIVES_UP_AT_0, CHILD_OF_BA_AT_1]),
        Scope::of(&[PARENT_OF_A_AT_0, CHILD_OF_B_AT_1]),
    ];
    for &level in levels {
        let scopes = scopes.clone().map(|scope| Scope { level, ..scope });
        for (scope, found) in scopes.iter().zip(hold_as_written(name, &scopes, LIMIT)) {
            assert_rolls_back(&scope.title(), &found);
        }
    }
}

/// Some execution has exactly one rollback, and some transaction commits after one.
fn assert_rolls_back(title: &str, found: &Found) {
    let once = found.partial_aborts.get(&1).copied().unwrap_or_default();
    assert!(once > 0, "{title}: {:?} children are undone", found.partial_aborts);
    let commits = found.outcomes.keys().any(|outcome| outcome.contains("after partial aborts"));
    assert!(commits, "{title}: {:?}", found.outcomes);
}
