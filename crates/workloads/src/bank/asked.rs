//! What a client asks for, while it is under way: what its last attempt did, for its root and for
//! the client's books.

use std::cell::Cell;

use muesli::Error;
use muesli_check::abstract_operations::AbstractOperation;

use super::account::Account;
use super::ledger::{LastAttempt, Transfer};
use crate::nesting::roots::RootCall;

/// A transaction on accounts that a client asks for.
#[derive(Debug)]
pub(super) struct AskedTransaction<'a> {
    /// What is recorded of it.
    pub root: RootCall<'a>,
    attempts: Cell<u64>,
    /// Whether the last attempt found that an account does not hold what is to be paid.
    refused: Cell<bool>,
}

impl<'a> AskedTransaction<'a> {
    /// Of this root.
    pub fn new(root: RootCall<'a>) -> AskedTransaction<'a> {
        AskedTransaction { root, attempts: Cell::new(0), refused: Cell::new(false) }
    }

    /// An attempt begins: what those before it did is undone.
    pub fn begin_attempt(&self) {
        self.root.begin_attempt();
        self.attempts.set(self.attempts.get() + 1);
        self.refused.set(false);
    }

    /// The last one.
    pub fn last(&self) -> LastAttempt {
        LastAttempt { number: self.attempts.get(), is_refused: self.refused.get() }
    }

    /// An account that is to pay has been read; whether it may is a question of how it ends.
    ///
    /// # Errors
    /// It does not hold the amount.
    pub fn check_amount(&self, overdraft: bool, found: &Account, amount: i64) -> Result<(), Error> {
        let is_refused = !overdraft && found.balance < amount;
        self.refused.set(is_refused);
        match is_refused {
            true => Err(Error::rollback("the account does not hold the amount")),
            false => Ok(()),
        }
    }

    /// An attempt that is about to commit has made these transfers.
    pub fn did_all(&self, transfers: &[Transfer]) {
        for Transfer { from, to, amount } in transfers {
            for (account, by) in [(*from, -amount), (*to, *amount)] {
                self.root.did(AbstractOperation::Increase { counter: account.into(), by });
            }
        }
    }

    /// It has read this balance of an account.
    pub fn has_read(&self, account: u32, balance: i64) {
        self.root.did(AbstractOperation::Read { counter: account.into(), value: balance });
    }

    /// It has read these.
    pub fn has_read_all(&self, accounts: impl Iterator<Item = u32>, found: &[Account]) {
        accounts.zip(found).for_each(|(account, found)| self.has_read(account, found.balance));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nesting::roots::RootRecorder;

    #[test]
    fn only_the_last_attempt_counts() {
        let roots = RootRecorder::default();
        let asked = AskedTransaction::new(roots.begin());
        let holds = Account { balance: 5, version: 0 };
        for (overdraft, amount, is_refused) in
            [(false, 6, true), (true, 6, false), (false, 5, false)]
        {
            asked.begin_attempt();
            assert_eq!(asked.check_amount(overdraft, &holds, amount).is_err(), is_refused);
            assert_eq!(asked.last().is_refused, is_refused);
        }
        assert_eq!(asked.last(), LastAttempt { number: 3, is_refused: false });
    }
}
