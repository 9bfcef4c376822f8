//! Transfers and sums of the bank.

use muesli::open_nesting::OpenTx;
use muesli::{Db, Error, Space};

use super::locks::lock_of;
use super::{OpenAccounts, UNDO};
use crate::bank::account::Account;
use crate::bank::account_rows::AccountChange;
use crate::bank::asked::AskedTransaction;
use crate::bank::books::AccountBooks;
use crate::bank::ledger::Transfer;
use crate::calls::CallLength;
use crate::marks;
use crate::workload::transact_nested;

/// What transactions of the bank work with.
#[derive(Clone, Copy)]
pub(in crate::bank) struct BankWork<'a> {
    pub books: &'a AccountBooks,
    pub asked: &'a AskedTransaction<'a>,
    pub space: Space,
    /// For what is done beside.
    pub db: &'a Db,
    pub length: CallLength,
    pub marks: &'a [marks::Use],
    /// Whether payees are paid by delayed actions.
    pub delayed: bool,
    /// Whether each transfer is undone once, and made again.
    pub undone: bool,
}

/// How a transfer ends that is made to be undone.
enum TransferEnd {
    Wanted,
    Failed(Error),
}

impl From<Error> for TransferEnd {
    fn from(error: Error) -> TransferEnd {
        TransferEnd::Failed(error)
    }
}

impl OpenAccounts {
    /// Makes transfers, each withdrawal and each deposit an open child.
    pub async fn transfer(
        &self,
        writer: &Db,
        work: BankWork<'_>,
        transfers: &[Transfer],
    ) -> (Result<(), Error>, u32) {
        let body = async |tx: &OpenTx| {
            work.asked.begin_attempt();
            for transfer in transfers {
                if work.undone {
                    self.undo_once(tx, work, transfer).await?;
                    tx.nested(async |tx| self.make(tx, work, transfer).await).await?;
                } else {
                    self.make(tx, work, transfer).await?;
                }
            }
            work.asked.did_all(transfers);
            marks::perform(tx, work.db, work.marks).await
        };
        transact_nested(writer, &self.layer, body).await
    }

    async fn make(
        &self,
        tx: &OpenTx,
        work: BankWork<'_>,
        transfer: &Transfer,
    ) -> Result<(), Error> {
        self.withdraw(tx, work, (transfer.from, -transfer.amount)).await?;
        self.deposit(tx, work, (transfer.to, transfer.amount)).await
    }

    /// Makes a transfer in a closed child that is then undone alone: both of its open children have
    /// committed, and are compensated.
    async fn undo_once(
        &self,
        tx: &OpenTx,
        work: BankWork<'_>,
        transfer: &Transfer,
    ) -> Result<(), Error> {
        let make = async |tx: &OpenTx| {
            self.make(tx, work, transfer).await?;
            Err::<(), _>(TransferEnd::Wanted)
        };
        match tx.nested(make).await {
            Err(TransferEnd::Failed(error)) => Err(error),
            Ok(()) | Err(TransferEnd::Wanted) => Ok(()),
        }
    }

    async fn withdraw(
        &self,
        tx: &OpenTx,
        work: BankWork<'_>,
        (account, by): AccountChange,
    ) -> Result<(), Error> {
        let BankWork { books, space, asked, .. } = work;
        let withdraw = async |child: &OpenTx| {
            let found = books.rows.read(child, space, std::iter::once(account)).await?[0];
            if let Err(refused) = asked.check_amount(books.overdraft, &found, -by) {
                child.acquire_lock(lock_of(account), &self.modes.read).await?;
                return Err(refused);
            }
            child.acquire_lock(lock_of(account), &self.modes.withdraw).await?;
            books.rows.write(child, space, (account, found.after(by))).await
        };
        let child = tx.open_atomic((), withdraw).expect_lock(lock_of(account));
        child.on_abort(UNDO, &[(account, by)].as_slice()).await
    }

    /// As in the other models, the transfer waits in this part.
    async fn deposit(
        &self,
        tx: &OpenTx,
        work: BankWork<'_>,
        change: AccountChange,
    ) -> Result<(), Error> {
        let BankWork { books, space, .. } = work;
        let (account, by) = change;
        let deposit = async |child: &OpenTx| {
            if work.delayed {
                child.defer(space, books.rows.key(account), Account::receive(by)).await?;
            } else {
                books.rows.change(child, space, &[change]).await?;
            }
            work.length.wait(work.db).await
        };
        let child = tx.open_atomic((lock_of(account), &self.modes.deposit), deposit);
        child.on_abort(UNDO, &[change].as_slice()).await
    }

    /// What accounts hold, those of each sum read by an open child.
    pub async fn sum(
        &self,
        summer: &Db,
        work: BankWork<'_>,
        accounts: &[u32],
    ) -> (Result<Vec<Account>, Error>, u32) {
        let body = async |tx: &OpenTx| {
            work.asked.begin_attempt();
            marks::perform(tx, work.db, work.marks).await?;
            let mut found = Vec::with_capacity(accounts.len());
            for pair in accounts.chunks(2) {
                let read = async |child: &OpenTx| {
                    let numbers = pair.iter().copied();
                    let found = work.books.rows.read(child, work.space, numbers).await?;
                    work.length.wait(work.db).await?;
                    Ok::<_, Error>(found)
                };
                let mut child = tx.open_atomic((), read);
                for account in pair {
                    child = child.lock(lock_of(*account), &self.modes.read);
                }
                found.extend(child.await?);
            }
            work.asked.has_read_all(accounts.iter().copied(), &found);
            Ok(found)
        };
        transact_nested(summer, &self.layer, body).await
    }
}
