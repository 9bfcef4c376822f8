//! Loans between accounts, whose lenders borrow in turn: deep calls that no money leaves.
//!
//! A transaction borrows an amount for an account from up to two others. Each lender pays first,
//! and then borrows the same amount itself from those accounts that are left, so the calls are a
//! tree; accounts at its leaves pay in the end. An account may be called several times, as each
//! call has a list of its own of who is left. The shape is that of the distributed transactional
//! memories' benchmark of this name, in which each call is a transaction within its caller's
//! (`nesting=closed`). Reads
//! sum up the same tree of accounts.
//!
//! What makes runs checkable: accounts form groups that no loan leaves, so each look at a whole
//! group must find what it held at first; and clients book what each of their calls has moved, as
//! in the [bank](super).

use muesli::open_nesting::NestingCounts;
use muesli::{Db, Error, Space, SpaceOptions, Tx};

use super::account_rows::AccountRows;
use super::asked::AskedTransaction;
use super::books::{AccountBooks, INITIAL, OBJECTS};
use super::checks;
use super::ledger::Transfer;
use super::open::OpenAccounts;
use super::open::loans::LoanWork;
use crate::calls::{self, CallLength, LENGTH, check_shares};
use crate::chance::Chance;
use crate::check::Check;
use crate::interface::INTERFACE;
use crate::nesting::open_layer::check_finished;
use crate::nesting::roots::RecordsRoots;
use crate::nesting::{NESTING_SELDOM_OPEN, NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::tally::Ended;
use crate::workload::{LocalFuture, Seat, Workload, ended, transact};

/// What loans take.
pub const PARAMETERS: &[Parameter] = &[
    OBJECTS,
    INITIAL,
    Parameter::new(
        "amount",
        "9999",
        ParameterKind::Count(0, 1_000_000_000),
        "The most that is borrowed.",
    ),
    Parameter::new(
        "lenders",
        "4",
        ParameterKind::Count(1, 10),
        "Accounts that a loan may come from: it asks 1, 3, 6, 11, 19, 32, 53, 87, 142 or 231 times \
         for 1 to 10 of them.",
    ),
    calls::calls("1", 1, "Calls of a transaction: loans, or sums of what a loan would visit."),
    calls::reads("50", "Share of transactions whose calls only read."),
    LENGTH,
    Parameter::new(
        "group",
        "10",
        ParameterKind::Count(2, 10_000),
        "Accounts of a group, which all accounts of a loan are of.",
    ),
    Parameter::new(
        "totals",
        "1",
        ParameterKind::Percent,
        "Share of transactions that read a whole group.",
    ),
    INTERFACE,
    NESTING_SELDOM_OPEN,
    PATIENCE,
];

/// So often a loan asks for money, with 1 to 10 lenders.
const ASKED: [u64; 10] = [1, 3, 6, 11, 19, 32, 53, 87, 142, 231];
/// A part of a loan is drawn in so many steps.
const PARTS: u64 = 1 << 16;

/// Loans among accounts.
#[derive(Debug)]
pub struct Loan {
    books: AccountBooks,
    amount: u64,
    lenders: usize,
    calls: usize,
    length: CallLength,
    group: u32,
    reads: f64,
    totals: f64,
    nesting: NestingPlan,
}

/// What a client remembers.
#[derive(Debug)]
pub struct LoanMemory {
    space: Space,
    writer: Db,
    reader: Db,
    /// For reads of whole groups.
    total_reader: Db,
    /// Where calls are open children.
    open: Option<OpenAccounts>,
}

/// A call of an account for money: it pays what it was called for, if it was, and borrows that.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LoanCall {
    account: u32,
    /// What it pays to who has called it; nobody calls the first one.
    pays: i64,
    /// Whom it calls, one after the other.
    lenders: Vec<LoanCall>,
}

impl LoanCall {
    /// An account calls up to two of those who are left, the last one for all that is lacking.
    fn new(account: u32, pays: i64, borrows: i64, left: &[u32], chance: &mut Chance) -> LoanCall {
        let (mut lacking, mut lenders) = (borrows, Vec::new());
        let asked = left.len().min(2);
        for at in 0..asked {
            let part = match at + 1 == asked {
                true => lacking,
                false => (lacking as u64 * chance.below(PARTS) / PARTS) as i64,
            };
            let others = &left[at + 1..];
            lenders.push(LoanCall::new(left[at], part, part, others, chance));
            lacking -= part;
        }
        LoanCall { account, pays, lenders }
    }

    /// The accounts that a sum visits, in its order.
    fn visited(&self, into: &mut Vec<u32>) {
        into.push(self.account);
        self.lenders.iter().for_each(|lender| lender.visited(into));
    }

    /// What the calls move, one after the other.
    fn transfers(&self, into: &mut Vec<Transfer>) {
        for lender in &self.lenders {
            into.push(Transfer { from: lender.account, to: self.account, amount: lender.pays });
            lender.transfers(into);
        }
    }
}

impl Loan {
    /// Loans with these parameters, for so many clients.
    ///
    /// # Errors
    /// Groups that are larger than all accounts, or too small for a loan.
    pub fn new(values: &Values, clients: u32) -> Result<Loan, ParameterError> {
        let (objects, group) = (values.count("objects"), values.count("group"));
        let lenders = values.count("lenders");
        if group > objects || group <= lenders {
            return Err(ParameterError::Incompatible(format!(
                "group must be {} to {objects} where there are {lenders} lenders and {objects} \
                 objects; it is {group}",
                lenders + 1
            )));
        }
        check_shares(values, &["reads", "totals"])?;
        let calls = values.count("calls");
        let (nesting, length) = (NestingPlan::seldom_open(values), CallLength::new(values, calls));
        nesting.check_length(length.each())?;
        // A sum visits the account, too, that a loan would be for.
        nesting.check_children(calls * (ASKED[lenders as usize - 1] + 1))?;
        Ok(Loan {
            books: AccountBooks::new(values, true, clients),
            amount: values.count("amount"),
            lenders: lenders as usize,
            calls: calls as usize,
            length,
            group: group as u32,
            reads: values.number("reads"),
            totals: values.number("totals"),
            nesting,
        })
    }

    /// The first account of some group.
    fn draw_group(&self, chance: &mut Chance) -> u32 {
        chance.below(self.books.accounts / u64::from(self.group)) as u32 * self.group
    }

    /// Some loans within one group.
    fn draw(&self, chance: &mut Chance) -> Vec<LoanCall> {
        let first = self.draw_group(chance);
        let one = |_| {
            let mut accounts = Vec::with_capacity(self.lenders + 1);
            while accounts.len() <= self.lenders {
                let account = first + chance.below(u64::from(self.group)) as u32;
                if !accounts.contains(&account) {
                    accounts.push(account);
                }
            }
            let amount = chance.between(0, self.amount) as i64;
            LoanCall::new(accounts[0], 0, amount, &accounts[1..], chance)
        };
        (0..self.calls).map(one).collect()
    }

    async fn change(&self, tx: &Tx, space: Space, account: u32, by: i64) -> Result<(), Error> {
        let found = self.books.rows.read(tx, space, std::iter::once(account)).await?;
        self.books.rows.write(tx, space, (account, found[0].after(by))).await
    }

    /// An account borrows: each that it calls pays, and borrows as much itself.
    fn call<'a>(
        &'a self,
        tx: &'a Tx,
        space: Space,
        call: &'a LoanCall,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            for lender in &call.lenders {
                let borrow = async |tx: &Tx| {
                    self.change(tx, space, lender.account, -lender.pays).await?;
                    self.call(tx, space, lender).await?;
                    self.change(tx, space, call.account, lender.pays).await
                };
                self.nesting.run(tx, borrow).await?;
            }
            Ok(())
        })
    }

    /// What an account and those that it would call hold, each as often as it would be called.
    fn sum<'a>(
        &'a self,
        tx: &'a Tx,
        space: Space,
        call: &'a LoanCall,
    ) -> LocalFuture<'a, Result<Vec<i64>, Error>> {
        Box::pin(async move {
            let found = self.books.rows.read(tx, space, std::iter::once(call.account)).await?;
            let mut balances = vec![found[0].balance];
            for lender in &call.lenders {
                let lent = async |tx: &Tx| self.sum(tx, space, lender).await;
                balances.append(&mut self.nesting.run(tx, lent).await?);
            }
            Ok(balances)
        })
    }

    fn open(&self, db: &Db) -> Result<Option<OpenAccounts>, Error> {
        OpenAccounts::new((&self.books, &self.nesting), None, db)
    }

    /// What transactions with open children work with.
    fn work<'a>(
        &'a self,
        asked: &'a AskedTransaction<'a>,
        (memory, seat): (&LoanMemory, &'a Seat),
    ) -> LoanWork<'a> {
        let (books, space) = (&self.books, memory.space);
        LoanWork { books, asked, space, db: &seat.db, length: self.length }
    }

    async fn borrow(&self, memory: &LoanMemory, seat: &Seat, loans: &[LoanCall]) -> (Ended, u32) {
        let paid = loans.iter().map(|loan| {
            let mut transfers = Vec::new();
            loan.transfers(&mut transfers);
            transfers
        });
        let paid: Vec<Vec<Transfer>> = paid.collect();
        self.books.ledgers.of(seat.client).set_out(paid.concat());
        let (space, asked) = (memory.space, &self.books.ask());
        let writer = asked.root.handle(&memory.writer);
        let (answer, attempts) = match &memory.open {
            Some(open) => open.lend(&writer, self.work(asked, (memory, seat)), &paid).await,
            None => {
                transact(&writer, async |tx| {
                    asked.begin_attempt();
                    for (loan, paid) in loans.iter().zip(&paid) {
                        self.call(tx, space, loan).await?;
                        self.length.wait(&seat.db).await?;
                        asked.did_all(paid);
                    }
                    Ok(())
                })
                .await
            }
        };
        let ended = ended(answer);
        asked.root.end(&ended);
        self.books.ledgers.of(seat.client).settle(&ended, asked.last());
        (ended, attempts)
    }

    async fn read(&self, memory: &LoanMemory, seat: &Seat, loans: &[LoanCall]) -> (Ended, u32) {
        let (space, asked) = (memory.space, &self.books.ask());
        let reader = asked.root.handle(&memory.reader);
        let visited = loans.iter().map(|loan| {
            let mut accounts = Vec::new();
            loan.visited(&mut accounts);
            accounts
        });
        let visited: Vec<Vec<u32>> = visited.collect();
        let (answer, attempts) = match &memory.open {
            Some(open) => {
                open.sum_visited(&reader, self.work(asked, (memory, seat)), &visited).await
            }
            None => {
                transact(&reader, async |tx| {
                    asked.begin_attempt();
                    for (loan, visited) in loans.iter().zip(&visited) {
                        let balances = self.sum(tx, space, loan).await?;
                        self.length.wait(&seat.db).await?;
                        let all = visited.iter().zip(balances);
                        all.for_each(|(account, balance)| asked.has_read(*account, balance));
                    }
                    Ok(())
                })
                .await
            }
        };
        let ended = ended(answer);
        asked.root.end(&ended);
        (ended, attempts)
    }

    async fn read_group(&self, memory: &LoanMemory, seat: &Seat, first: u32) -> (Ended, u32) {
        let (space, all) = (memory.space, first..first + self.group);
        let asked = &self.books.ask();
        let (answer, attempts) = transact(&asked.root.handle(&memory.total_reader), async |tx| {
            asked.begin_attempt();
            let found = match &memory.open {
                Some(open) => open.read_decided((&self.books.rows, tx, space), all.clone()).await?,
                None => self.books.rows.read(tx, space, all.clone()).await?,
            };
            asked.has_read_all(all.clone(), &found);
            Ok(found)
        })
        .await;
        if let Ok(found) = &answer {
            let sum: i64 = found.iter().map(|account| account.balance).sum();
            let total = self.books.initial * i64::from(self.group);
            let mut ledger = self.books.ledgers.of(seat.client);
            ledger.totals_read += 1;
            if sum != total {
                ledger.wrong_snapshots.add(|| format!("group {first} holds {sum}, not {total}"));
            }
        }
        let ended = ended(answer);
        asked.root.end(&ended);
        (ended, attempts)
    }
}

impl Workload for Loan {
    type Memory = LoanMemory;

    fn spaces(&self, _repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        std::iter::once(AccountBooks::space()).chain(self.nesting.space()).collect()
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        self.books.load(db).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<LoanMemory, Error> {
        self.books.ledgers.of(seat.client).begin_incarnation();
        let writer = self.nesting.handle(seat.node, &seat.db, "loans");
        let total_reader = seat.db.read_only();
        // Sums wait for the locks of open children: how long they take counts for the choice.
        let sums = if self.nesting.may_be_open() { "loans" } else { "sums" };
        let reader = self.nesting.handle(seat.node, &total_reader, sums);
        let (space, open) = (AccountRows::space_of(&seat.db)?, self.open(&seat.db)?);
        Ok(LoanMemory { space, writer, reader, total_reader, open })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut LoanMemory) -> (Ended, u32) {
        let drawn = 100.0 * seat.chance.fraction();
        if drawn < self.totals {
            let first = self.draw_group(&mut seat.chance);
            return self.read_group(memory, seat, first).await;
        }
        let loans = self.draw(&mut seat.chance);
        match drawn < self.totals + self.reads {
            true => self.read(memory, seat, &loans).await,
            false => self.borrow(memory, seat, &loans).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        let ended = match self.open(db)? {
            Some(open) => Some(check_finished(&open.layer, db).await?),
            None => None,
        };
        Ok(checks::check(&self.books, db).await?.into_iter().chain(ended).collect())
    }

    fn notes(&self) -> Vec<String> {
        self.nesting.notes()
    }

    fn roots(&self) -> Option<&dyn RecordsRoots> {
        Some(&self.books)
    }

    fn open_children(&self) -> Option<NestingCounts> {
        self.nesting.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(call: &LoanCall) -> usize {
        call.lenders.iter().map(|lender| 1 + count(lender)).sum()
    }

    #[test]
    fn calls_are_as_many_as_lists_of_their_own_make_them() {
        for (expected, lenders) in ASKED.into_iter().zip(1..) {
            let all: Vec<u32> = (1..=lenders).collect();
            let call = LoanCall::new(0, 0, 100, &all, &mut Chance::new(7, 0, 1));
            assert_eq!(count(&call) as u64, expected, "{lenders} lenders");
        }
    }

    #[test]
    fn who_borrows_gains_what_the_last_ones_pay() {
        for seed in 0..100 {
            let call = LoanCall::new(0, 0, 100, &[1, 2, 3, 4], &mut Chance::new(seed, 0, 1));
            let mut transfers = Vec::new();
            call.transfers(&mut transfers);
            let balance = |account| -> i64 {
                let of = |it: &Transfer| match account {
                    _ if it.to == account => it.amount,
                    _ if it.from == account => -it.amount,
                    _ => 0,
                };
                transfers.iter().map(of).sum()
            };
            assert_eq!(balance(0), 100);
            assert_eq!((0..5).map(balance).sum::<i64>(), 0);
            assert!((1..5).map(balance).all(|paid| paid <= 0), "{transfers:?}");
        }
    }

    #[test]
    fn two_lenders_share_a_loan_as_in_the_example() {
        // The first one is called for a part, and calls the second one for it; then the second one
        // is called for the rest.
        let call = LoanCall::new(0, 0, 100, &[1, 2], &mut Chance::new(1, 0, 1));
        let [first, second] = &call.lenders[..] else { panic!("{call:?}") };
        assert_eq!((first.account, second.account), (1, 2));
        assert_eq!(first.pays + second.pays, 100);
        assert_eq!(first.lenders, [LoanCall { account: 2, pays: first.pays, lenders: vec![] }]);
        assert!(second.lenders.is_empty());
    }
}
