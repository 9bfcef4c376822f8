//! Which scopes were seen to make no progress, and since when, by this process's clock.

use std::collections::BTreeMap;

use muesli_core::{Nanos, SmallBytes};

use crate::open_nesting::rows::ScopeId;

/// So many scopes are remembered; the one seen first is forgotten for a further one.
const SCOPES_MAX: usize = 1_024;

/// Scopes that were in the way.
#[derive(Debug, Default)]
pub(crate) struct ScopeWatch {
    seen: BTreeMap<ScopeId, SeenScope>,
}

#[derive(Clone, Debug)]
struct SeenScope {
    since: Nanos,
    /// Its row then, once it was read.
    row: Option<SmallBytes>,
}

impl ScopeWatch {
    /// A scope is in the way; whether its row is to be looked at, as it has been for long.
    pub fn meet(&mut self, scope: ScopeId, now: Nanos, patience: Nanos) -> bool {
        if let Some(seen) = self.seen.get(&scope) {
            return now.0.saturating_sub(seen.since.0) >= patience.0;
        }
        if self.seen.len() >= SCOPES_MAX
            && let Some(first) = self.seen.iter().min_by_key(|(_, seen)| seen.since).map(|it| *it.0)
        {
            self.seen.remove(&first);
        }
        self.seen.insert(scope, SeenScope { since: now, row: None });
        false
    }

    /// Its row is this; whether it was the same when it was looked at before, which
    /// [`meet`](Self::meet) said is long ago.
    pub fn is_stuck(&mut self, scope: ScopeId, now: Nanos, row: &SmallBytes) -> bool {
        let before = self.seen.insert(scope, SeenScope { since: now, row: Some(row.clone()) });
        before.is_some_and(|seen| seen.row.as_ref() == Some(row))
    }

    /// It is there no more.
    pub fn forget(&mut self, scope: ScopeId) {
        self.seen.remove(&scope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_stuck_when_its_row_stays_for_as_long_as_the_patience() {
        let (mut watch, scope, patience) = (ScopeWatch::default(), ScopeId(1), Nanos(10));
        let row = |text: &str| SmallBytes::from(text);
        assert!(!watch.meet(scope, Nanos(0), patience));
        assert!(!watch.meet(scope, Nanos(9), patience));
        assert!(watch.meet(scope, Nanos(10), patience), "now its row is looked at");
        assert!(!watch.is_stuck(scope, Nanos(10), &row("a")));
        assert!(!watch.meet(scope, Nanos(19), patience));
        assert!(watch.meet(scope, Nanos(20), patience));
        assert!(!watch.is_stuck(scope, Nanos(20), &row("b")), "it goes on");
        assert!(watch.meet(scope, Nanos(30), patience));
        assert!(watch.is_stuck(scope, Nanos(30), &row("b")));
        watch.forget(scope);
        assert!(!watch.meet(scope, Nanos(99), patience));
    }

    #[test]
    fn few_are_remembered() {
        let mut watch = ScopeWatch::default();
        for number in 0..3_000_u64 {
            watch.meet(ScopeId(u128::from(number)), Nanos(number), Nanos(10_000));
        }
        assert_eq!(watch.seen.len(), SCOPES_MAX);
        assert!(watch.seen.contains_key(&ScopeId(2_999)));
    }
}
