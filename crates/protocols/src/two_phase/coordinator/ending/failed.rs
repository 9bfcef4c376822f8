//! Why transactions ended that failed before their commit.
//!
//! A client may have several operations of a transaction under way. The first that fails ends the
//! transaction; whatever the client asks of it before it has heard of that must tell the same
//! reason, for "ended" would be the client's own mistake, and a conflict is to be tried again.

use std::collections::VecDeque;
use std::fmt;

use muesli_core::{Failure, Txn};

/// So many are remembered: more than can fail before their clients' next turn.
const REMEMBERED: usize = 256;

/// The newest transactions that failed, and why. Invariant: at most [`REMEMBERED`].
#[derive(Clone, Default)]
pub(in crate::two_phase) struct Failed(VecDeque<(Txn, Failure)>);

/// Without what is in it: explorations compare states by this, and coordinators that differ in it
/// alone differ only in the reason that they tell for an operation that is refused anyway.
impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failed")
    }
}

impl Failed {
    /// A transaction has failed.
    pub fn remember(&mut self, txn: Txn, failure: &Failure) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((txn, failure.clone()));
        assert!(self.0.len() <= REMEMBERED, "failures that are remembered have a bound");
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.0.len() <= REMEMBERED, "{} failures are remembered", self.0.len());
    }

    /// Why a transaction takes no operation any more.
    #[cold]
    pub fn reason(&self, txn: Txn) -> Failure {
        let known = self.0.iter().rev().find(|(it, _)| *it == txn);
        known.map_or(Failure::Ended, |(_, failure)| failure.clone())
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::Abort;

    use super::*;

    #[test]
    fn the_newest_failures_are_told_and_others_have_just_ended() {
        let txn = |generation| Txn { slot: 3, generation };
        let mut failed = Failed::default();
        let conflict = Failure::Aborted(Abort::StaleRead);
        for generation in 0..REMEMBERED as u32 + 1 {
            failed.remember(txn(generation), &conflict);
        }
        assert_eq!(failed.reason(txn(0)), Failure::Ended);
        assert_eq!(failed.reason(txn(1)), conflict);
        assert_eq!(failed.reason(txn(REMEMBERED as u32)), conflict);
        assert_eq!(failed.reason(Txn { slot: 4, generation: 1 }), Failure::Ended);
    }
}
