//! Small scopes of validation by a tree. They go by intervals, unless they are to go by locks.

use muesli_protocols::hierarchy::{Exclusion, HierarchicalValidation};

use crate::harness::exploration::{Program, Scope};

pub type TreeScope = Scope<HierarchicalValidation>;

/// What these programs do, interleaved.
pub fn scope(programs: &[Program]) -> TreeScope {
    Scope::of(programs)
}

/// The same by locks.
pub fn by_locks(mut scope: TreeScope) -> TreeScope {
    scope.switches.choice.exclusion = Exclusion::ByLocks;
    scope
}

/// The same by locks, each.
pub fn all_by_locks(scopes: impl IntoIterator<Item = TreeScope>) -> Vec<TreeScope> {
    scopes.into_iter().map(by_locks).collect()
}

/// The same, and each by locks as well.
pub fn both_ways(scopes: impl IntoIterator<Item = TreeScope>) -> Vec<TreeScope> {
    scopes.into_iter().flat_map(|scope| [scope.clone(), by_locks(scope)]).collect()
}
