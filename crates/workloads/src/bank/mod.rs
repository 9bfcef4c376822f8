//! Transfers between accounts: the total never changes, so every look at all accounts is a test.
//!
//! An update moves money between two accounts (or several pairs of them); with overdraft
//! protection the paying account must hold the amount, else the transfer rolls back and is not
//! tried again. A read sums two accounts (or several pairs of them). A few transactions read all
//! accounts, or write all of them back unchanged, which conflicts with everything. Amounts are
//! whole numbers. Every account carries a version counter, raised by every write.

mod account;
mod account_rows;
mod asked;
mod books;
mod checks;
mod ledger;
pub mod loan;
mod mix;
mod open;
mod parameters;

use muesli::open_nesting::{NestingCounts, NestingSwitch};
use muesli::{Db, Error, Space, SpaceOptions, Tx};

use crate::calls::CallLength;
use crate::check::Check;
use crate::interface::Interface;
use crate::marks::{self, Marks};
use crate::nesting::NestingPlan;
use crate::nesting::open_layer::check_finished;
use crate::nesting::roots::RecordsRoots;
use crate::parameters::{ParameterError, Values};
use crate::staleness::StaleReads;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended, transact};
use account::Account;
use account_rows::AccountRows;
use asked::AskedTransaction;
use books::AccountBooks;
use ledger::Transfer;
use mix::{BankChoice, BankMix};
use open::OpenAccounts;
use open::transfers::BankWork;
pub use parameters::PARAMETERS;

/// The bank.
#[derive(Debug)]
pub struct Bank {
    books: AccountBooks,
    delayed: bool,
    /// Whether money stays in pairs of accounts.
    paired: bool,
    mix: BankMix,
    nesting: NestingPlan,
    /// For tests: a rule of open nesting that is broken.
    broken: Option<NestingSwitch>,
    /// Whether withdrawals, deposits and sums are parts of their own.
    apart: bool,
    /// Share of transactions that undo each transfer once.
    undone: f64,
    /// What each of its calls takes besides.
    length: CallLength,
    marks: Marks,
    stale_reads: StaleReads,
}

/// What a client of the bank remembers.
#[derive(Debug)]
pub struct BankMemory {
    space: Space,
    writer: Db,
    /// For sums.
    summer: Db,
    /// For reads of all accounts.
    reader: Db,
    /// Where parts are open children.
    open: Option<OpenAccounts>,
    /// Whether the next transfers are undone once.
    undoes: bool,
    choice: BankChoice,
}

impl Bank {
    /// A bank with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(values: &Values, clients: u32) -> Result<Bank, ParameterError> {
        let mix = BankMix::new(values, clients)?;
        let (calls, nesting) = (values.count("calls"), NestingPlan::seldom_open(values));
        let (has_parts, length) = (!nesting.is_flat(), CallLength::new(values, calls));
        nesting.check_length(length.each())?;
        nesting.check_children(2 * calls)?;
        if nesting.may_be_open() && values.number("write-all") > 0.0 {
            let text = "write-all needs nesting=flat, closed or checkpoints: an open child that \
                        writes all accounts would keep out everybody else";
            return Err(ParameterError::Incompatible(text.to_owned()));
        }
        let undone = values.number("undone");
        if undone > 0.0 && !nesting.may_be_open() {
            let text = "undone needs nesting=open or auto-open: it is about closed children that \
                        have open ones";
            return Err(ParameterError::Incompatible(text.to_owned()));
        }
        Interface::new(values).check_delayed(values.flag("delayed"))?;
        Ok(Bank {
            books: AccountBooks::new(values, values.flag("overdraft"), clients),
            delayed: values.flag("delayed"),
            paired: values.flag("pairs"),
            mix,
            nesting,
            broken: None,
            apart: values.flag("apart") || has_parts,
            undone,
            length,
            marks: Marks::new(values),
            stale_reads: StaleReads::new(values),
        })
    }

    /// For tests: breaks a rule of open nesting.
    #[doc(hidden)]
    pub fn without(self, switch: NestingSwitch) -> Bank {
        Bank { broken: Some(switch), ..self }
    }

    fn open(&self, db: &Db) -> Result<Option<OpenAccounts>, Error> {
        OpenAccounts::new((&self.books, &self.nesting), self.broken, db)
    }

    /// What transactions with open children work with.
    fn work<'a>(
        &'a self,
        asked: &'a AskedTransaction<'a>,
        (seat, space): (&'a Seat, Space),
        marks: &'a [marks::Use],
    ) -> BankWork<'a> {
        let (books, db, length, delayed) = (&self.books, &seat.db, self.length, self.delayed);
        BankWork { books, asked, space, db, length, marks, delayed, undone: false }
    }

    async fn transfer(
        &self,
        memory: &BankMemory,
        seat: &Seat,
        transfers: &[Transfer],
        marks: &[marks::Use],
    ) -> (Ended, u32) {
        self.books.ledgers.of(seat.client).set_out(transfers.to_vec());
        let asked = &self.books.ask();
        let (answer, attempts) = match &memory.open {
            Some(open) => {
                let undone = memory.undoes;
                let work = BankWork { undone, ..self.work(asked, (seat, memory.space), marks) };
                open.transfer(&asked.root.handle(&memory.writer), work, transfers).await
            }
            None => self.transfer_at_once(memory, (seat, asked), transfers, marks).await,
        };
        let ended = ended(answer);
        asked.root.end(&ended);
        self.books.ledgers.of(seat.client).settle(&ended, asked.last());
        (ended, attempts)
    }

    /// Transfers of which nothing commits before all does.
    async fn transfer_at_once(
        &self,
        memory: &BankMemory,
        (seat, asked): (&Seat, &AskedTransaction<'_>),
        transfers: &[Transfer],
        marks: &[marks::Use],
    ) -> (Result<(), Error>, u32) {
        let (space, overdraft) = (memory.space, self.books.overdraft);
        transact(&asked.root.handle(&memory.writer), async |tx| {
            asked.begin_attempt();
            if self.apart {
                for transfer in transfers {
                    self.withdraw_and_deposit(tx, (seat, space, asked), *transfer).await?;
                }
                asked.did_all(transfers);
                return marks::perform(tx, &seat.db, marks).await;
            }
            let touched = |it: &Transfer| [Some(it.from), (!self.delayed).then_some(it.to)];
            let touched = transfers.iter().flat_map(touched).flatten();
            let found = self.books.rows.read(tx, space, touched).await?;
            let each = if self.delayed { 1 } else { 2 };
            for (transfer, found) in transfers.iter().zip(found.chunks_exact(each)) {
                asked.check_amount(overdraft, &found[0], transfer.amount)?;
                let payer = found[0].after(-transfer.amount);
                self.books.rows.write(tx, space, (transfer.from, payer)).await?;
                match found.get(1) {
                    Some(payee) => {
                        let payee = payee.after(transfer.amount);
                        self.books.rows.write(tx, space, (transfer.to, payee)).await?;
                    }
                    None => {
                        let to = self.books.rows.key(transfer.to);
                        tx.defer(space, to, Account::receive(transfer.amount)).await?;
                    }
                }
            }
            asked.did_all(transfers);
            self.length.wait_for(&seat.db, transfers.len() as u32).await?;
            marks::perform(tx, &seat.db, marks).await
        })
        .await
    }

    /// A transfer in two parts; it waits in the second one.
    async fn withdraw_and_deposit(
        &self,
        tx: &Tx,
        (seat, space, asked): (&Seat, Space, &AskedTransaction<'_>),
        transfer: Transfer,
    ) -> Result<(), Error> {
        let Transfer { from, to, amount } = transfer;
        let change = async |tx: &Tx, account: u32, by: i64| {
            let found = self.books.rows.read(tx, space, std::iter::once(account)).await?;
            if by < 0 {
                asked.check_amount(self.books.overdraft, &found[0], -by)?;
            }
            self.books.rows.write(tx, space, (account, found[0].after(by))).await
        };
        self.nesting.run(tx, async |tx| change(tx, from, -amount).await).await?;
        let deposit = async |tx: &Tx| {
            match self.delayed {
                true => tx.defer(space, self.books.rows.key(to), Account::receive(amount)).await?,
                false => change(tx, to, amount).await?,
            }
            self.length.wait(&seat.db).await
        };
        match self.delayed {
            true => deposit(tx).await,
            false => self.nesting.run(tx, deposit).await,
        }
    }

    /// Sums accounts, two in a call; what they hold is judged where it can be.
    async fn read_sums(
        &self,
        memory: &BankMemory,
        seat: &Seat,
        accounts: &[u32],
        marks: &[marks::Use],
    ) -> (Ended, u32) {
        let asked = &self.books.ask();
        let (answer, attempts) = match &memory.open {
            Some(open) => {
                let work = self.work(asked, (seat, memory.space), marks);
                open.sum(&asked.root.handle(&memory.summer), work, accounts).await
            }
            None => self.sum_at_once(memory, (seat, asked), accounts, marks).await,
        };
        if let Ok(found) = &answer {
            self.judge_balances(seat, found);
            let sum: i64 = found.iter().map(|account| account.balance).sum();
            if !self.books.overdraft && sum > self.books.total() {
                let complain = || format!("accounts {accounts:?} hold {sum}, more than there is");
                self.books.ledgers.of(seat.client).wrong_snapshots.add(complain);
            }
            for (pair, found) in accounts.chunks(2).zip(found.chunks(2)).filter(|_| self.paired) {
                let (sum, both) = (found[0].balance + found[1].balance, 2 * self.books.initial);
                if sum != both {
                    let complain = || format!("the pair {pair:?} holds {sum}, not {both}");
                    self.books.ledgers.of(seat.client).wrong_snapshots.add(complain);
                }
            }
        }
        let ended = ended(answer);
        asked.root.end(&ended);
        (ended, attempts)
    }

    async fn sum_at_once(
        &self,
        memory: &BankMemory,
        (seat, asked): (&Seat, &AskedTransaction<'_>),
        accounts: &[u32],
        marks: &[marks::Use],
    ) -> (Result<Vec<Account>, Error>, u32) {
        let space = memory.space;
        transact(&asked.root.handle(&memory.summer), async |tx| {
            asked.begin_attempt();
            marks::perform(tx, &seat.db, marks).await?;
            // All at once, or those of each call in a part of its own.
            let in_part = if self.apart { 2 } else { accounts.len() };
            let mut found = Vec::with_capacity(accounts.len());
            for some in accounts.chunks(in_part) {
                let sum = async |tx: &Tx| {
                    let found = self.books.rows.read(tx, space, some.iter().copied()).await?;
                    self.length.wait_for(&seat.db, some.len() as u32 / 2).await?;
                    Ok(found)
                };
                found.extend(self.nesting.run(tx, sum).await?);
            }
            asked.has_read_all(accounts.iter().copied(), &found);
            Ok(found)
        })
        .await
    }

    async fn read_all(&self, memory: &BankMemory, seat: &Seat) -> (Ended, u32) {
        let (space, asked) = (memory.space, &self.books.ask());
        let (answer, attempts) = transact(&asked.root.handle(&memory.reader), async |tx| {
            asked.begin_attempt();
            let all = 0..self.books.accounts as u32;
            let found = match &memory.open {
                Some(open) => open.read_decided((&self.books.rows, tx, space), all.clone()).await?,
                None => self.books.rows.read(tx, space, all.clone()).await?,
            };
            asked.has_read_all(all, &found);
            Ok(found)
        })
        .await;
        if let Ok(found) = &answer {
            self.judge_balances(seat, found);
            let sum: i64 = found.iter().map(|account| account.balance).sum();
            let mut ledger = self.books.ledgers.of(seat.client);
            ledger.totals_read += 1;
            if sum != self.books.total() {
                let complain = || format!("a snapshot holds {sum}, not {}", self.books.total());
                ledger.wrong_snapshots.add(complain);
            }
        }
        let ended = ended(answer);
        asked.root.end(&ended);
        (ended, attempts)
    }

    fn judge_balances(&self, seat: &Seat, found: &[Account]) {
        let lowest = found.iter().map(|account| account.balance).min().unwrap_or(0);
        if !self.books.overdraft && lowest < 0 {
            let complain = || format!("a snapshot has a balance of {lowest}");
            self.books.ledgers.of(seat.client).overdrawn.add(complain);
        }
    }

    async fn write_all(&self, memory: &BankMemory, seat: &Seat) -> (Ended, u32) {
        self.books.ledgers.of(seat.client).set_out_all();
        let (space, asked) = (memory.space, &self.books.ask());
        let (answer, attempts) = transact(&asked.root.handle(&seat.db), async |tx| {
            asked.begin_attempt();
            let found = self.books.rows.read(tx, space, 0..self.books.accounts as u32).await?;
            for (account, state) in found.iter().enumerate() {
                self.books.rows.write(tx, space, (account as u32, state.after(0))).await?;
            }
            Ok(())
        })
        .await;
        let ended = ended(answer);
        asked.root.end(&ended);
        self.books.ledgers.of(seat.client).settle(&ended, asked.last());
        (ended, attempts)
    }
}

impl Workload for Bank {
    type Memory = BankMemory;

    fn spaces(&self, _repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let own = std::iter::once(AccountBooks::space());
        own.chain(self.marks.space()).chain(self.nesting.space()).collect()
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        self.books.load(db).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<BankMemory, Error> {
        self.books.ledgers.of(seat.client).begin_incarnation();
        let space = AccountRows::space_of(&seat.db)?;
        let choice = self.mix.choice(seat, space, self.books.rows.keys());
        let writer = self.nesting.handle(seat.node, &seat.db, "transfers");
        let reader = self.stale_reads.handle(&seat.db);
        // Sums wait for the locks of open children: how long they take counts for the choice.
        let sums = if self.nesting.may_be_open() { "transfers" } else { "sums" };
        let summer = self.nesting.handle(seat.node, &reader, sums);
        let open = self.open(&seat.db)?;
        let undoes = false;
        Ok(BankMemory { space, writer, summer, reader, open, undoes, choice })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut BankMemory) -> (Ended, u32) {
        match self.mix.draw(&mut memory.choice, &mut seat.chance) {
            mix::BankAction::ReadSums(accounts) => {
                let marks = self.marks.draw_reads(&mut seat.chance);
                self.read_sums(memory, seat, &accounts, &marks).await
            }
            mix::BankAction::Transfer(transfers) => {
                let marks = self.marks.draw(&mut seat.chance);
                memory.undoes = self.undone > 0.0 && seat.chance.percent(self.undone);
                self.transfer(memory, seat, &transfers, &marks).await
            }
            mix::BankAction::ReadAll => self.read_all(memory, seat).await,
            mix::BankAction::WriteAll => self.write_all(memory, seat).await,
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
