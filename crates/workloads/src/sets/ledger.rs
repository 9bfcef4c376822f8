//! What each client knows it has added and removed, what it may have, and what it saw wrong.

use std::collections::BTreeMap;

use crate::check::Complaints;
use crate::per_client::PerClient;
use crate::tally::Ended;

/// A key that was added (+1) to or removed (-1) from a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetChange {
    pub structure: usize,
    pub key: u64,
    pub by: i64,
}

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
pub(crate) struct SetLedger {
    /// Adds minus removes that committed, by structure and key.
    pub sure: BTreeMap<(usize, u64), i64>,
    /// Changes that may have committed.
    pub perhaps: Vec<SetChange>,
    /// What the transaction under way changes, as of its last attempt.
    under_way: Vec<SetChange>,
    /// What was added to the tallies of structures by transactions that committed, and what may
    /// have been.
    pub tallied: BTreeMap<usize, i64>,
    pub tallied_perhaps: Vec<(usize, i64)>,
    /// What the transaction under way adds.
    tallying: Option<(usize, i64)>,
    /// Structures that were walked through.
    pub walks: u64,
    /// Structures that a snapshot had wrong.
    pub wrong_walks: Complaints,
    /// Answers that cannot be.
    pub wrong_answers: Complaints,
}

impl SetLedger {
    /// A life begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.perhaps.append(&mut self.under_way);
        self.tallied_perhaps.extend(self.tallying.take());
    }

    /// An attempt is about to commit these changes.
    pub fn set_out(&mut self, changes: Vec<SetChange>) {
        self.under_way = changes;
    }

    /// And to add so much to a structure's tally.
    pub fn set_out_tally(&mut self, structure: usize, by: i64) {
        self.tallying = Some((structure, by));
    }

    /// The transaction has ended.
    pub fn settle(&mut self, ended: &Ended) {
        let changes = std::mem::take(&mut self.under_way);
        let tallying = self.tallying.take();
        match ended {
            Ended::Committed => {
                if let Some((structure, by)) = tallying {
                    *self.tallied.entry(structure).or_default() += by;
                }
                for SetChange { structure, key, by } in changes {
                    *self.sure.entry((structure, key)).or_default() += by;
                }
            }
            Ended::Unknown => {
                self.perhaps.extend(changes);
                self.tallied_perhaps.extend(tallying);
            }
            Ended::RolledBack | Ended::Failed(_) => {}
        }
    }
}

/// The ledgers of all clients.
pub(super) type Ledgers = PerClient<SetLedger>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_are_booked_and_open_ends_stay_possible() {
        let change = |key, by| vec![SetChange { structure: 0, key, by }];
        let mut ledger = SetLedger::default();
        for (key, ended) in [(1, Ended::Committed), (2, Ended::RolledBack), (3, Ended::Unknown)] {
            ledger.set_out(change(key, 1));
            ledger.set_out_tally(0, 1);
            ledger.settle(&ended);
        }
        ledger.set_out(change(1, -1));
        ledger.set_out_tally(0, -1);
        ledger.begin_incarnation();
        assert_eq!(ledger.sure, BTreeMap::from([((0, 1), 1)]));
        assert_eq!(ledger.perhaps, [change(3, 1), change(1, -1)].concat());
        assert_eq!(ledger.tallied, BTreeMap::from([(0, 1)]));
        assert_eq!(ledger.tallied_perhaps, [(0, 1), (0, -1)]);
    }
}
