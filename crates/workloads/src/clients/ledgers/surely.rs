//! What is done once: for sure, or perhaps.

use std::collections::BTreeSet;
use std::fmt::Debug;

use crate::check::Complaints;
use crate::tally::Ended;

/// What clients did for sure, and what they may have done.
#[derive(Clone, Debug)]
pub(crate) struct Surely<T> {
    pub sure: Vec<T>,
    pub perhaps: Vec<T>,
}

impl<T> Default for Surely<T> {
    fn default() -> Surely<T> {
        Surely { sure: Vec::new(), perhaps: Vec::new() }
    }
}

impl<T: Copy + Ord + Debug> Surely<T> {
    /// Adds what another client did.
    pub fn extend(&mut self, other: &Surely<T>) {
        self.sure.extend_from_slice(&other.sure);
        self.perhaps.extend_from_slice(&other.perhaps);
    }

    /// Notes what a transaction did, by how it ended.
    pub fn note(&mut self, what: T, ended: &Ended) {
        match ended {
            Ended::Committed => self.sure.push(what),
            Ended::Unknown => self.perhaps.push(what),
            Ended::RolledBack | Ended::Failed(_) => {}
        }
    }

    /// Complains where what is there is not what was done, with what may have been.
    pub fn judge(&self, there: &BTreeSet<T>, wrong: &mut Complaints) {
        let sure: BTreeSet<T> = self.sure.iter().copied().collect();
        let perhaps: BTreeSet<T> = self.perhaps.iter().copied().collect();
        if sure.len() < self.sure.len() {
            wrong.add(|| format!("{} were done twice", self.sure.len() - sure.len()));
        }
        for missing in sure.difference(there) {
            wrong.add(|| format!("{missing:?} committed and is not there"));
        }
        for more in there.iter().filter(|it| !sure.contains(it) && !perhaps.contains(it)) {
            wrong.add(|| format!("{more:?} is there and did not commit"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_what_was_done_with_what_may_have_been() {
        let mut done = Surely::default();
        done.note(1, &Ended::Committed);
        done.note(2, &Ended::Unknown);
        done.note(3, &Ended::RolledBack);
        let is_right = |done: &Surely<i32>, there: &[i32]| {
            let mut wrong = Complaints::default();
            done.judge(&there.iter().copied().collect(), &mut wrong);
            wrong == Complaints::default()
        };
        assert!(is_right(&done, &[1]) && is_right(&done, &[1, 2]));
        assert!(!is_right(&done, &[2]) && !is_right(&done, &[1, 3]));
        done.note(1, &Ended::Committed);
        assert!(!is_right(&done, &[1]), "one thing is done once");
    }
}
