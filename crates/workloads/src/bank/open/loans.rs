//! Loans: each call of an account for money is an open child of the transaction.
//!
//! Calls are nested in each other in the other models. Here they are not: an account may be called
//! several times, by others within its own calls, and an open child must not write what the
//! transaction around it has written. Each call is one child, which moves what is paid from the
//! account that is called to its caller, so that no group ever holds less, with its two accounts
//! locked; what the called one borrows itself are children after it. As balances may be negative,
//! the order of all these changes does not matter.

use muesli::open_nesting::OpenTx;
use muesli::{Db, Error, Space};

use super::locks::lock_of;
use super::{OpenAccounts, UNDO};
use crate::bank::asked::AskedTransaction;
use crate::bank::books::AccountBooks;
use crate::bank::ledger::Transfer;
use crate::calls::CallLength;
use crate::workload::transact_nested;

/// What transactions of loans work with.
#[derive(Clone, Copy)]
pub(in crate::bank) struct LoanWork<'a> {
    pub books: &'a AccountBooks,
    pub asked: &'a AskedTransaction<'a>,
    pub space: Space,
    /// For waiting.
    pub db: &'a Db,
    pub length: CallLength,
}

impl OpenAccounts {
    /// Makes loans, given by what is paid one after the other.
    pub async fn lend(
        &self,
        writer: &Db,
        work: LoanWork<'_>,
        loans: &[Vec<Transfer>],
    ) -> (Result<(), Error>, u32) {
        let body = async |tx: &OpenTx| {
            work.asked.begin_attempt();
            for loan in loans {
                for transfer in loan {
                    self.pay(tx, work, *transfer).await?;
                }
                work.length.wait(work.db).await?;
                work.asked.did_all(loan);
            }
            Ok(())
        };
        transact_nested(writer, &self.layer, body).await
    }

    async fn pay(
        &self,
        tx: &OpenTx,
        work: LoanWork<'_>,
        Transfer { from, to, amount }: Transfer,
    ) -> Result<(), Error> {
        let changes = [(from, -amount), (to, amount)];
        let pay = async |child: &OpenTx| work.books.rows.change(child, work.space, &changes).await;
        tx.open_atomic((lock_of(from), &self.modes.withdraw), pay)
            .lock(lock_of(to), &self.modes.deposit)
            .on_abort(UNDO, changes.as_slice())
            .await
    }

    /// What accounts hold that loans would visit, each read by an open child.
    pub async fn sum_visited(
        &self,
        reader: &Db,
        work: LoanWork<'_>,
        loans: &[Vec<u32>],
    ) -> (Result<(), Error>, u32) {
        let body = async |tx: &OpenTx| {
            work.asked.begin_attempt();
            for loan in loans {
                for account in loan {
                    let balance = self.look(tx, work, *account).await?;
                    work.asked.has_read(*account, balance);
                }
                work.length.wait(work.db).await?;
            }
            Ok(())
        };
        transact_nested(reader, &self.layer, body).await
    }

    async fn look(&self, tx: &OpenTx, work: LoanWork<'_>, account: u32) -> Result<i64, Error> {
        let look = async |child: &OpenTx| {
            let account = std::iter::once(account);
            let found = work.books.rows.read(child, work.space, account).await?;
            Ok::<_, Error>(found[0].balance)
        };
        tx.open_atomic((lock_of(account), &self.modes.read), look).await
    }
}
