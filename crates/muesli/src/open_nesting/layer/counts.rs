//! What has happened in transactions with open children, and how long they took, by what they do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The last place of [`NestingCounts::aborted_by`] counts all children from this one on.
const CHILDREN_COUNTED: usize = 16;

/// What has happened in transactions with open children, as far as this handle's clones ran them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NestingCounts {
    /// Open children that committed.
    pub children: u64,
    /// Locks that were refused.
    pub refused: u64,
    /// Compensations that were run.
    pub compensations: u64,
    /// Commit handlers that were run.
    pub commit_handlers: u64,
    /// Scopes of others that made no progress and were finished.
    pub taken_over: u64,
    /// How often a lock that was refused to the first, second, … open child of a transaction
    /// aborted all of it; in the last place all further ones.
    pub aborted_by: [u64; CHILDREN_COUNTED],
    /// How long attempts took that committed.
    pub committed: NestingTimes,
    /// How long those took that did not, with their compensations.
    pub aborted: NestingTimes,
}

/// How long attempts took, all together, by what was done. What is left of [`all`](Self::all) is
/// the transaction's own body and commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NestingTimes {
    /// How many attempts there were.
    pub attempts: u64,
    /// From their beginning until nothing of them was left to be done.
    pub all: Duration,
    /// Bodies of open children that committed, with what is read for their end.
    pub bodies: Duration,
    /// Commits of these.
    pub commits: Duration,
    /// Attempts of open children that did not commit, and the pauses after them.
    pub lost: Duration,
    /// Ends of scopes: compensations or commit handlers, and the release of locks.
    pub ending: Duration,
}

impl NestingTimes {
    /// The transaction's own body and commit.
    pub fn own(&self) -> Duration {
        self.all.saturating_sub(self.bodies + self.commits + self.lost + self.ending)
    }
}

/// What an attempt is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::open_nesting) enum NestingPhase {
    Body,
    Commit,
    Lost,
    Ending,
}

/// So many phases there are.
pub(in crate::open_nesting) const PHASES: usize = 4;

/// Times that are counted up, in nanoseconds.
#[derive(Debug, Default)]
struct TimeCounters {
    attempts: AtomicU64,
    all: AtomicU64,
    phases: [AtomicU64; PHASES],
}

impl TimeCounters {
    /// An attempt has ended that took so long in all, and in each phase.
    fn add(&self, all: u64, phases: [u64; PHASES]) {
        let add = |counter: &AtomicU64, more: u64| {
            counter.fetch_add(more, Ordering::Relaxed);
        };
        add(&self.attempts, 1);
        add(&self.all, all);
        self.phases.iter().zip(phases).for_each(|(counter, more)| add(counter, more));
    }

    fn times(&self) -> NestingTimes {
        let time = |counter: &AtomicU64| Duration::from_nanos(read(counter));
        let phase = |phase: NestingPhase| time(&self.phases[phase as usize]);
        NestingTimes {
            attempts: read(&self.attempts),
            all: time(&self.all),
            bodies: phase(NestingPhase::Body),
            commits: phase(NestingPhase::Commit),
            lost: phase(NestingPhase::Lost),
            ending: phase(NestingPhase::Ending),
        }
    }
}

/// How attempts are counted.
#[derive(Debug, Default)]
pub(in crate::open_nesting) struct LayerCounters {
    pub children: AtomicU64,
    pub refused: AtomicU64,
    pub compensations: AtomicU64,
    pub commit_handlers: AtomicU64,
    pub taken_over: AtomicU64,
    aborted_by: [AtomicU64; CHILDREN_COUNTED],
    committed: TimeCounters,
    aborted: TimeCounters,
}

pub(in crate::open_nesting) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl LayerCounters {
    /// A lock that was refused to a child has aborted its transaction, of which so many others had
    /// committed.
    pub fn count_aborted_by(&self, before: u64) {
        count(&self.aborted_by[(before as usize).min(CHILDREN_COUNTED - 1)]);
    }

    /// An attempt has ended, and took so long in all and in each phase.
    pub fn count_attempt(&self, committed: bool, all: u64, phases: [u64; PHASES]) {
        let times = if committed { &self.committed } else { &self.aborted };
        times.add(all, phases);
    }

    pub fn counts(&self) -> NestingCounts {
        NestingCounts {
            children: read(&self.children),
            refused: read(&self.refused),
            compensations: read(&self.compensations),
            commit_handlers: read(&self.commit_handlers),
            taken_over: read(&self.taken_over),
            aborted_by: std::array::from_fn(|child| read(&self.aborted_by[child])),
            committed: self.committed.times(),
            aborted: self.aborted.times(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_phase_took_is_the_transactions_own() {
        let counters = TimeCounters::default();
        counters.add(100, [10, 20, 30, 5]);
        counters.add(50, [1, 2, 3, 4]);
        let times = counters.times();
        assert_eq!((times.attempts, times.all), (2, Duration::from_nanos(150)));
        assert_eq!(times.own(), Duration::from_nanos(150 - 75));
        assert_eq!(
            (times.bodies, times.ending),
            (Duration::from_nanos(11), Duration::from_nanos(9))
        );
    }
}
