//! What must hold of the accounts after a run, by the books of the clients.
//!
//! An update of unknown outcome took effect in whole or not at all, so it widens what an account
//! may hold on one side and never changes the total.

use std::ops::RangeInclusive;

use muesli::{Db, Error};

use super::account::Account;
use super::account_rows::AccountRows;
use super::books::AccountBooks;
use super::ledger::{BankUpdate, Transfer, TransferEnds, closed};
use crate::check::{Check, Complaints};

/// So many accounts are read in one transaction.
const CHUNK: usize = 2_000;

/// What an account may look like at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bounds {
    change: RangeInclusive<i64>,
    writes: RangeInclusive<u64>,
}

/// What holds of the accounts.
///
/// # Errors
/// What the database says.
pub(super) async fn check(books: &AccountBooks, db: &Db) -> Result<Vec<Check>, Error> {
    let accounts = read_accounts(books, db).await?;
    let (bounds, totals_read, perhaps, wrong, mut overdrawn) = close_books(books);
    let sum: i64 = accounts.iter().map(|account| account.balance).sum();
    let (mut balances, mut versions) = (Complaints::default(), Complaints::default());
    for (number, (account, bounds)) in accounts.iter().zip(&bounds).enumerate() {
        let change = account.balance - books.initial;
        if !bounds.change.contains(&change) {
            balances.add(|| format!("account {number} changed by {change}, not {bounds:?}"));
        }
        if !bounds.writes.contains(&account.version) {
            versions.add(|| format!("account {number} at {}, not {bounds:?}", account.version));
        }
        if !books.overdraft && account.balance < 0 {
            overdrawn.add(|| format!("account {number} holds {}", account.balance));
        }
    }
    let booked = format!("{} accounts, {perhaps} updates of unknown outcome", accounts.len());
    let conserved = format!("{sum}, at first {}", books.total());
    let mut checks = vec![
        Check { name: "money is conserved", ok: sum == books.total(), details: conserved },
        Check::none_wrong("snapshots hold the total", &wrong, format!("{totals_read} read")),
        Check::none_wrong("balances are those of the committed transfers", &balances, booked),
        Check::none_wrong("versions count the committed writes", &versions, String::new()),
    ];
    checks.push(check_ends(books));
    if !books.overdraft {
        let checked = format!("{} accounts", accounts.len());
        checks.push(Check::none_wrong("no account is overdrawn", &overdrawn, checked));
    }
    Ok(checks)
}

/// Whether each transfer that was asked for ended once, and as its last attempt did: of those that
/// were tried, all that were not tried again committed or were refused, but for those that failed
/// or of which nobody knows.
fn check_ends(books: &AccountBooks) -> Check {
    let (mut all, mut wrong) = (TransferEnds::default(), Complaints::default());
    for ledger in &closed(&books.ledgers) {
        wrong.extend(&ledger.wrong_ends);
        all.add(&ledger.ends);
    }
    if !all.add_up() {
        wrong.add(|| format!("not each transfer ended once: {all:?}"));
    }
    let TransferEnds { asked, attempts, retries, committed, refused, failed, unknown } = all;
    let counted = format!(
        "{asked} asked for, {attempts} attempts, of which {retries} were retries: {committed} \
         committed, {refused} refused, {failed} failed, {unknown} of unknown outcome"
    );
    Check::none_wrong("transfers end once, as their last attempt did", &wrong, counted)
}

async fn read_accounts(books: &AccountBooks, db: &Db) -> Result<Vec<Account>, Error> {
    let (space, strict) = (AccountRows::space_of(db)?, db.strict().read_only());
    let numbers: Vec<u32> = (0..books.accounts as u32).collect();
    let mut accounts = Vec::new();
    for chunk in numbers.chunks(CHUNK) {
        let read = async |tx: &muesli::Tx| books.rows.read(tx, space, chunk.iter().copied()).await;
        accounts.extend(strict.transact_here(read).await?);
    }
    Ok(accounts)
}

/// The bounds of every account; totals read; unknown outcomes; wrong snapshots; overdrawn ones.
fn close_books(books: &AccountBooks) -> (Vec<Bounds>, u64, usize, Complaints, Complaints) {
    let ledgers = closed(&books.ledgers);
    let all: u64 = ledgers.iter().map(|ledger| ledger.all_written).sum();
    let booked = |account| {
        let booked = ledgers.iter().map(|ledger| ledger.booked(account));
        let (change, writes) = booked.fold((0, all), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Bounds { change: change..=change, writes: writes..=writes }
    };
    let mut bounds: Vec<_> = (0..books.accounts as u32).map(booked).collect();
    let perhaps: Vec<&BankUpdate> = ledgers.iter().flat_map(|ledger| &ledger.perhaps).collect();
    perhaps.iter().for_each(|update| widen(&mut bounds, update));
    let (mut wrong, mut overdrawn) = (Complaints::default(), Complaints::default());
    for ledger in &ledgers {
        wrong.extend(&ledger.wrong_snapshots);
        overdrawn.extend(&ledger.overdrawn);
    }
    let totals_read = ledgers.iter().map(|ledger| ledger.totals_read).sum();
    (bounds, totals_read, perhaps.len(), wrong, overdrawn)
}

/// Allows for an update that may have taken effect.
fn widen(bounds: &mut [Bounds], update: &BankUpdate) {
    let accounts = bounds.len();
    let mut allow = |account: usize, amount: i64| {
        let Bounds { change, writes } = &mut bounds[account];
        *change = change.start() + amount.min(0)..=change.end() + amount.max(0);
        *writes = *writes.start()..=writes.end() + 1;
    };
    match update {
        BankUpdate::Transfers(transfers) => {
            for &Transfer { from, to, amount } in transfers {
                allow(from as usize, -amount);
                allow(to as usize, amount);
            }
        }
        BankUpdate::All => (0..accounts).for_each(|account| allow(account, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_updates_widen_both_ends_of_what_they_touch() {
        let exact = Bounds { change: 10..=10, writes: 2..=2 };
        let mut bounds = vec![exact.clone(), exact.clone(), exact];
        widen(&mut bounds, &BankUpdate::Transfers(vec![Transfer { from: 0, to: 1, amount: 4 }]));
        widen(&mut bounds, &BankUpdate::All);
        assert_eq!(bounds[0], Bounds { change: 6..=10, writes: 2..=4 });
        assert_eq!(bounds[1], Bounds { change: 10..=14, writes: 2..=4 });
        assert_eq!(bounds[2], Bounds { change: 10..=10, writes: 2..=3 });
    }
}
