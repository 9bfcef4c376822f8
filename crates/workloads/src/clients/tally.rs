//! What clients count: how their transactions ended, and how long they took.

use std::sync::MutexGuard;

use hdrhistogram::Histogram;
use muesli::Error;
use muesli_core::Nanos;

use crate::check::Check;
use crate::per_client::PerClient;

/// The check that holds whatever data were there before.
pub const UNEXPECTED: &str = "no unexpected errors";

/// How one transaction of a workload ended, retries included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It committed.
    Committed,
    /// The workload's own logic rolled it back.
    RolledBack,
    /// Its commit was sent and not answered.
    Unknown,
    /// It gave up: nothing was changed.
    Failed(Error),
}

/// What one client counted.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Transactions that committed.
    pub committed: u64,
    /// Attempts that met a conflict.
    pub aborted: u64,
    /// Transactions that the workload's logic rolled back.
    pub rolled_back: u64,
    /// Transactions whose outcome nobody knows.
    pub unknown: u64,
    /// Transactions that gave up: after the last retry, or unanswered in time.
    pub failed: u64,
    /// The first error that neither conflicts nor faults explain.
    pub unexpected: Option<String>,
    /// How long committed transactions took, in nanoseconds, from their first attempt on.
    pub latency: Histogram<u64>,
    /// Those among the committed ones that have several fragments.
    pub several: Several,
    /// Those that committed in their first attempt.
    pub first: Several,
}

/// Some of the transactions: those with several fragments, say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Several {
    /// How many committed.
    pub committed: u64,
    /// How long they took, all together.
    pub took: Nanos,
}

impl Several {
    /// Counts one that took this long.
    pub fn add(&mut self, took: Nanos) {
        self.committed += 1;
        self.took = self.took + took;
    }

    /// Counts what another client has counted, too.
    fn join(&mut self, other: Several) {
        self.committed += other.committed;
        self.took = self.took + other.took;
    }

    /// How long one took on average.
    pub fn mean(&self) -> Option<Nanos> {
        (self.committed > 0).then(|| Nanos(self.took.0 / self.committed))
    }
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            committed: 0,
            aborted: 0,
            rolled_back: 0,
            unknown: 0,
            failed: 0,
            unexpected: None,
            latency: Histogram::new(3).expect("three digits are allowed"),
            several: Several::default(),
            first: Several::default(),
        }
    }
}

impl Tally {
    /// Counts a transaction that took this long and so many attempts.
    pub fn count(&mut self, ended: &Ended, attempts: u32, took: Nanos) {
        let conflicts = match ended {
            Ended::Failed(Error::Conflict { .. }) => attempts,
            _ => attempts.saturating_sub(1),
        };
        self.aborted += u64::from(conflicts);
        match ended {
            Ended::Committed => {
                self.committed += 1;
                self.latency.record(took.0.max(1)).expect("it grows as it must");
                if attempts == 1 {
                    self.first.add(took);
                }
            }
            Ended::RolledBack => self.rolled_back += 1,
            Ended::Unknown => self.unknown += 1,
            Ended::Failed(Error::Conflict { .. } | Error::Timeout { .. } | Error::Closed) => {
                self.failed += 1;
            }
            Ended::Failed(error) => {
                self.failed += 1;
                self.unexpected.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Transactions that have ended, however.
    pub fn ended(&self) -> u64 {
        self.committed + self.rolled_back + self.unknown + self.failed
    }

    /// Adds what another client counted.
    pub fn add(&mut self, other: &Tally) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.rolled_back += other.rolled_back;
        self.unknown += other.unknown;
        self.failed += other.failed;
        if self.unexpected.is_none() {
            self.unexpected.clone_from(&other.unexpected);
        }
        self.latency.add(&other.latency).expect("it grows as it must");
        self.several.join(other.several);
        self.first.join(other.first);
    }

    /// Whether nothing went wrong but what conflicts and faults explain.
    pub fn expected(&self) -> Check {
        Check {
            name: UNEXPECTED,
            ok: self.unexpected.is_none(),
            details: self.unexpected.clone().unwrap_or_default(),
        }
    }

    /// Which share of all attempts met a conflict.
    pub fn abort_rate(&self) -> f64 {
        let attempts = self.aborted + self.committed + self.rolled_back + self.unknown;
        if attempts == 0 { 0.0 } else { self.aborted as f64 / attempts as f64 }
    }
}

/// The tallies of all clients, which outlive the clients and can be looked at while they run.
#[derive(Debug)]
pub struct Tallies(PerClient<Tally>);

impl Tallies {
    /// For so many clients.
    pub fn new(clients: u32) -> Tallies {
        Tallies(PerClient::new(clients, |_| Tally::default()))
    }

    /// How many clients there are.
    pub fn clients(&self) -> u32 {
        self.0.clients()
    }

    /// The tally of a client.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn of(&self, client: u32) -> MutexGuard<'_, Tally> {
        self.0.of(client)
    }

    /// Transactions that have ended so far.
    pub fn ended(&self) -> u64 {
        self.0.all().map(|tally| tally.ended()).sum()
    }

    /// The sum of all, which count from zero again.
    pub fn take(&self) -> Tally {
        let mut total = Tally::default();
        self.0.all().for_each(|mut tally| total.add(&std::mem::take(&mut *tally)));
        total
    }

    /// The sum of all.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.0.all().for_each(|tally| total.add(&tally));
        total
    }
}

#[cfg(test)]
mod tests {
    use muesli::Abort;

    use super::*;

    #[test]
    fn attempts_that_met_conflicts_are_counted_apart() {
        let tallies = Tallies::new(2);
        let conflict = Error::Conflict { reason: Abort::Locked, attempts: 5 };
        tallies.of(0).count(&Ended::Committed, 3, Nanos(2_000));
        tallies.of(1).count(&Ended::Failed(conflict), 5, Nanos(9_000));
        tallies.of(1).count(&Ended::RolledBack, 1, Nanos(10));
        tallies.of(1).count(&Ended::Failed(Error::ReadOnly), 1, Nanos(10));
        let total = tallies.total();
        assert_eq!((total.committed, total.aborted, total.failed, total.ended()), (1, 7, 2, 4));
        assert_eq!(total.unexpected, Some(Error::ReadOnly.to_string()));
        assert!((total.abort_rate() - 7.0 / 9.0).abs() < 1e-9);
        assert_eq!(total.latency.len(), 1);
        let far = Nanos(90_000_000_000);
        tallies.of(0).count(&Ended::Committed, 1, far);
        assert!(tallies.total().latency.max() >= far.0, "long latencies are not cut off");
        assert_eq!((tallies.take().committed, tallies.ended()), (2, 0));
    }
}
