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
    /// How transfers ended.
    pub ends: TransferEnds,
    /// Transfers that ended as their last attempt does not explain.
    pub wrong_ends: Complaints,
}

/// What is known of a transaction that has ended, beside that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastAttempt {
    /// How often its body was run.
    pub number: u64,
    /// Whether it found the last time that an account does not hold what is to be paid.
    pub is_refused: bool,
}

/// How many transfers ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TransferEnds {
    /// Transactions of transfers that were begun.
    pub asked: u64,
    /// How often their bodies were run.
    pub attempts: u64,
    /// How often not for the first time.
    pub retries: u64,
    pub committed: u64,
    /// Rolled back as an account does not hold the amount.
    pub refused: u64,
    /// Of which nothing was done, for another reason.
    pub failed: u64,
    /// Of unknown outcome, and those whose client was gone before their end.
    pub unknown: u64,
}

impl TransferEnds {
    /// Counts those of another client, too.
    pub fn add(&mut self, other: &TransferEnds) {
        for (all, more) in [
            (&mut self.asked, other.asked),
            (&mut self.attempts, other.attempts),
            (&mut self.retries, other.retries),
            (&mut self.committed, other.committed),
            (&mut self.refused, other.refused),
            (&mut self.failed, other.failed),
            (&mut self.unknown, other.unknown),
        ] {
            *all += more;
        }
    }

    /// Whether each transaction ended once.
    pub fn add_up(&self) -> bool {
        let ended = self.committed + self.refused + self.failed + self.unknown;
        ended == self.asked
    }
}

impl BankLedger {
    /// A life begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.ends.unknown += u64::from(self.under_way.is_some());
        self.perhaps.extend(self.under_way.take());
    }

    /// Transfers are under way.
    pub fn set_out(&mut self, transfers: Vec<Transfer>) {
        self.ends.asked += 1;
        self.under_way = Some(BankUpdate::Transfers(transfers));
    }

    /// A write of all accounts is under way.
    pub fn set_out_all(&mut self) {
        self.ends.asked += 1;
        self.under_way = Some(BankUpdate::All);
    }

    /// What is under way has ended, after this attempt.
    pub fn settle(&mut self, ended: &Ended, last: LastAttempt) {
        let LastAttempt { number, is_refused } = last;
        self.ends.attempts += number;
        self.ends.retries += number.saturating_sub(1);
        let (count, may_be) = match ended {
            Ended::Committed => (&mut self.ends.committed, !is_refused && number > 0),
            Ended::RolledBack => (&mut self.ends.refused, is_refused),
            Ended::Failed(_) => (&mut self.ends.failed, true),
            Ended::Unknown => (&mut self.ends.unknown, !is_refused),
        };
        *count += 1;
        if !may_be {
            let refused = if is_refused { "" } else { "not " };
            self.wrong_ends.add(|| format!("{ended:?}, and its last attempt was {refused}refused"));
        }
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
            let is_refused = ended == Ended::RolledBack;
            ledger.set_out(transfer(amount));
            ledger.settle(&ended, LastAttempt { number: 2, is_refused });
        }
        ledger.set_out(transfer(13));
        ledger.begin_incarnation();
        assert_eq!((ledger.booked(1), ledger.booked(2)), ((-5, 1), (5, 1)));
        assert_eq!(ledger.booked(3), (0, 0));
        let perhaps: Vec<_> = [11, 13].map(|amount| BankUpdate::Transfers(transfer(amount))).into();
        assert_eq!(ledger.perhaps, perhaps);
        let TransferEnds { asked, committed, refused, failed, unknown, .. } = ledger.ends;
        assert_eq!((asked, committed, refused, failed, unknown), (5, 1, 1, 1, 2));
        assert!(ledger.ends.add_up() && ledger.wrong_ends == Complaints::default());
    }

    #[test]
    fn an_end_that_its_last_attempt_does_not_explain_is_told() {
        let mut ledger = BankLedger::default();
        for (ended, is_refused) in
            [(Ended::Committed, true), (Ended::RolledBack, false), (Ended::Unknown, true)]
        {
            ledger.set_out(vec![Transfer { from: 1, to: 2, amount: 3 }]);
            ledger.settle(&ended, LastAttempt { number: 1, is_refused });
        }
        assert!(ledger.wrong_ends.to_string().starts_with("3 wrong"), "{}", ledger.wrong_ends);
    }
}
