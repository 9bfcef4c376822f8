//! What each client knows it has changed, what it may have changed, and what it saw wrong.

use crate::check::Complaints;
use crate::per_client::PerClient;
use crate::tally::Ended;

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
pub(super) struct YcsbLedger {
    /// Changes of records that committed.
    pub changes: u64,
    /// Changes that may have.
    pub changes_perhaps: u64,
    /// Changes that the transaction under way makes, as of its last attempt.
    under_way: u64,
    /// A number taken for an insert that is not known to be there.
    pub inserting: Option<u64>,
    /// Groups read whole.
    pub groups_read: u64,
    /// Groups with other units than they must have.
    pub wrong_groups: Complaints,
    /// Records that should be there and were not, or were others.
    pub wrong_records: Complaints,
}

impl YcsbLedger {
    /// A life begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.changes_perhaps += std::mem::take(&mut self.under_way);
    }

    /// An attempt is about to commit so many changes.
    pub fn set_out(&mut self, changes: u64) {
        self.under_way = changes;
    }

    /// The transaction has ended.
    pub fn settle(&mut self, ended: &Ended) {
        let changes = std::mem::take(&mut self.under_way);
        match ended {
            Ended::Committed => self.changes += changes,
            Ended::Unknown => self.changes_perhaps += changes,
            Ended::RolledBack | Ended::Failed(_) => {}
        }
    }
}

/// The ledgers of all clients.
pub(super) type Ledgers = PerClient<YcsbLedger>;

/// All books together, once no client runs any more.
pub(super) fn closed(ledgers: &Ledgers) -> YcsbLedger {
    let mut all = YcsbLedger::default();
    for mut one in ledgers.all() {
        one.begin_incarnation();
        all.changes += one.changes;
        all.changes_perhaps += one.changes_perhaps;
        all.groups_read += one.groups_read;
        all.wrong_groups.extend(&one.wrong_groups);
        all.wrong_records.extend(&one.wrong_records);
    }
    all
}
