//! What each client knows it has done to each account, and what it may have done.

use std::sync::MutexGuard;

use hashbrown::HashMap;

use crate::check::Complaints;
use crate::per_client::PerClient;
use crate::tally::Ended;

/// Money to be moved from one account to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub from: u32,
    pub to: u32,
    pub amount: i64,
}

/// An update: transfers, or a write of all accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BankUpdate {
    Transfers(Vec<Transfer>),
    All,
}

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
pub(super) struct BankLedger {
    /// Change of balance, and number of writes, by account. Looked up, never walked.
    sure: HashMap<u32, (i64, u64)>,
    /// Writes of all accounts that committed.
    pub all_written: u64,
    /// Updates of which nobody knows whether they committed.
    pub perhaps: Vec<BankUpdate>,
    /// The update under way. If the client vanishes now, its outcome is unknown.
    under_way: Option<BankUpdate>,
    /// Snapshots of all accounts that were summed.
    pub totals_read: u64,
    /// Snapshots in which money was missing, or too much.
    pub wrong_snapshots: Complaints,
    /// Snapshots with a balance below zero.
    pub overdrawn: Complaints,
}

impl BankLedger {
    /// A life begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.perhaps.extend(self.under_way.take());
    }

    /// Transfers are under way.
    pub fn set_out(&mut self, transfers: Vec<Transfer>) {
        self.under_way = Some(BankUpdate::Transfers(transfers));
    }

    /// A write of all accounts is under way.
    pub fn set_out_all(&mut self) {
        self.under_way = Some(BankUpdate::All);
    }

    /// What is under way has ended.
    pub fn settle(&mut self, ended: &Ended) {
        let update = self.under_way.take();
        match (ended, update) {
            (Ended::Committed, Some(BankUpdate::Transfers(transfers))) => {
                for Transfer { from, to, amount } in transfers {
                    self.book(from, -amount);
                    self.book(to, amount);
                }
            }
            (Ended::Committed, Some(BankUpdate::All)) => self.all_written += 1,
            (Ended::Unknown, update) => self.perhaps.extend(update),
            (Ended::RolledBack | Ended::Failed(_), _) | (_, None) => {}
        }
    }

    fn book(&mut self, account: u32, amount: i64) {
        let entry = self.sure.entry(account).or_default();
        entry.0 += amount;
        entry.1 += 1;
    }

    /// How the account's balance changed, and how often it was written by transfers, for sure.
    pub fn booked(&self, account: u32) -> (i64, u64) {
        self.sure.get(&account).copied().unwrap_or_default()
    }
}

/// The ledgers of all clients.
pub(super) type Ledgers = PerClient<BankLedger>;

/// All ledgers, once no client runs any more.
pub(super) fn closed(ledgers: &Ledgers) -> Vec<MutexGuard<'_, BankLedger>> {
    let mut all: Vec<_> = ledgers.all().collect();
    all.iter_mut().for_each(|ledger| ledger.begin_incarnation());
    all
}

#[cfg(test)]
mod tests {
    use muesli::Error;

    use super::*;

    #[test]
    fn only_commits_are_booked_and_open_ends_stay_possible() {
        let transfer = |amount| vec![Transfer { from: 1, to: 2, amount }];
        let mut ledger = BankLedger::default();
        for (amount, ended) in [
            (5, Ended::Committed),
            (7, Ended::RolledBack),
            (9, Ended::Failed(Error::Closed)),
            (11, Ended::Unknown),
        ] {
            ledger.set_out(transfer(amount));
            ledger.settle(&ended);
        }
        ledger.set_out(transfer(13));
        ledger.begin_incarnation();
        assert_eq!((ledger.booked(1), ledger.booked(2)), ((-5, 1), (5, 1)));
        assert_eq!(ledger.booked(3), (0, 0));
        let perhaps: Vec<_> = [11, 13].map(|amount| BankUpdate::Transfers(transfer(amount))).into();
        assert_eq!(ledger.perhaps, perhaps);
    }
}
