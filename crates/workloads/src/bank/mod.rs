//! Transfers between accounts: the total never changes, so every look at all accounts is a test.
//!
//! An update moves money between two accounts (or several pairs of them); with overdraft
//! protection the paying account must hold the amount, else the transfer rolls back and is not
//! tried again. A read sums two accounts (or several pairs of them). A few transactions read all
//! accounts, or write all of them back unchanged, which conflicts with everything. Amounts are
//! whole numbers. Every account carries a version counter, raised by every write.

mod account;
mod account_rows;
mod books;
mod checks;
mod ledger;
pub mod loan;
mod mix;
mod open;

use muesli::open_nesting::{NestingCounts, NestingSwitch};
use muesli::{Db, Error, Space, SpaceOptions, Tx};

use crate::calls::{self, CallLength, LENGTH};
use crate::check::Check;
use crate::interface::{INTERFACE, Interface};
use crate::marks::{self, Marks};
use crate::nesting::open_layer::check_finished;
use crate::nesting::{NESTING_SELDOM_OPEN, NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::staleness::{self, StaleReads};
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended, transact};
use account::Account;
use account_rows::AccountRows;
use books::{AccountBooks, INITIAL, OBJECTS};
use ledger::Transfer;
use mix::{BankChoice, BankMix};
use open::OpenAccounts;
use open::transfers::BankWork;

/// What the bank takes.
pub const PARAMETERS: &[Parameter] = &[
    OBJECTS,
    INITIAL,
    Parameter::new(
        "amount",
        "100",
        ParameterKind::Count(1, 1_000_000_000),
        "The most that a transfer moves; the least is 1.",
    ),
    calls::calls(
        "1",
        1,
        "Calls of a transaction: transfers, or sums of two accounts, all of different accounts.",
    ),
    calls::reads("50", "Share of transactions whose calls only read."),
    LENGTH,
    Parameter::new(
        "overdraft",
        "false",
        ParameterKind::Flag,
        "Whether accounts may be overdrawn; if not, such transfers roll back.",
    ),
    Parameter::new(
        "delayed",
        "false",
        ParameterKind::Flag,
        "Whether payees are paid by delayed actions, unread.",
    ),
    Parameter::new(
        "totals",
        "1",
        ParameterKind::Percent,
        "Share of transactions that read all accounts.",
    ),
    Parameter::new(
        "write-all",
        "0",
        ParameterKind::Percent,
        "Share of transactions that write all accounts back unchanged.",
    ),
    Parameter::new(
        "theta",
        "0",
        ParameterKind::Number(0.0, 1.0),
        "Zipfian skew in the choice of accounts; 0 is uniform.",
    ),
    Parameter::new("hot", "0", ParameterKind::Count(0, 100_000_000), "How many accounts are hot."),
    Parameter::new(
        "hot-share",
        "0",
        ParameterKind::Percent,
        "Share of choices that go to the hot accounts.",
    ),
    Parameter::new(
        "locality",
        "0",
        ParameterKind::Percent,
        "Share of transactions that use accounts of the client's own node only.",
    ),
    Parameter::new(
        "disjoint",
        "false",
        ParameterKind::Flag,
        "Whether each client uses accounts of its own, so that none conflict.",
    ),
    staleness::PARAMETER,
    marks::PARAMETER,
    marks::BLIND,
    INTERFACE,
    NESTING_SELDOM_OPEN,
    PATIENCE,
    Parameter::new(
        "apart",
        "false",
        ParameterKind::Flag,
        "Whether each account of a transfer, and each sum, is read in a part of its own, as with \
         `nesting=closed`, and not all are read at first.",
    ),
    Parameter::new(
        "undone",
        "0",
        ParameterKind::Percent,
        "With open children: share of transactions whose transfers are each a closed child around \
         its withdrawal and deposit, which is first undone, and made once more.",
    ),
];

/// The bank.
#[derive(Debug)]
pub struct Bank {
    books: AccountBooks,
    delayed: bool,
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
    fn work<'a>(&'a self, seat: &'a Seat, space: Space, marks: &'a [marks::Use]) -> BankWork<'a> {
        let (books, db, length, delayed) = (&self.books, &seat.db, self.length, self.delayed);
        BankWork { books, space, db, length, marks, delayed, undone: false }
    }

    async fn transfer(
        &self,
        memory: &BankMemory,
        seat: &Seat,
        transfers: &[Transfer],
        marks: &[marks::Use],
    ) -> (Ended, u32) {
        self.books.ledgers.of(seat.client).set_out(transfers.to_vec());
        let (answer, attempts) = match &memory.open {
            Some(open) => {
                let undone = memory.undoes;
                let work = BankWork { undone, ..self.work(seat, memory.space, marks) };
                open.transfer(&memory.writer, work, transfers).await
            }
            None => self.transfer_at_once(memory, seat, transfers, marks).await,
        };
        let ended = ended(answer);
        self.books.ledgers.of(seat.client).settle(&ended);
        (ended, attempts)
    }

    /// Transfers of which nothing commits before all does.
    async fn transfer_at_once(
        &self,
        memory: &BankMemory,
        seat: &Seat,
        transfers: &[Transfer],
        marks: &[marks::Use],
    ) -> (Result<(), Error>, u32) {
        let (space, overdraft) = (memory.space, self.books.overdraft);
        transact(&memory.writer, async |tx| {
            if self.apart {
                for transfer in transfers {
                    self.withdraw_and_deposit(tx, (seat, space), *transfer).await?;
                }
                return marks::perform(tx, &seat.db, marks).await;
            }
            let touched = |it: &Transfer| [Some(it.from), (!self.delayed).then_some(it.to)];
            let touched = transfers.iter().flat_map(touched).flatten();
            let found = self.books.rows.read(tx, space, touched).await?;
            let each = if self.delayed { 1 } else { 2 };
            for (transfer, found) in transfers.iter().zip(found.chunks_exact(each)) {
                if !overdraft && found[0].balance < transfer.amount {
                    return Err(Error::rollback("the account does not hold the amount"));
                }
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
            self.length.wait_for(&seat.db, transfers.len() as u32).await?;
            marks::perform(tx, &seat.db, marks).await
        })
        .await
    }

    /// A transfer in two parts; it waits in the second one.
    async fn withdraw_and_deposit(
        &self,
        tx: &Tx,
        (seat, space): (&Seat, Space),
        transfer: Transfer,
    ) -> Result<(), Error> {
        let Transfer { from, to, amount } = transfer;
        let change = async |tx: &Tx, account: u32, by: i64| {
            let found = self.books.rows.read(tx, space, std::iter::once(account)).await?;
            if by < 0 && !self.books.overdraft && found[0].balance < -by {
                return Err(Error::rollback("the account does not hold the amount"));
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
        let (answer, attempts) = match &memory.open {
            Some(open) => {
                let work = self.work(seat, memory.space, marks);
                open.sum(&memory.summer, work, accounts).await
            }
            None => self.sum_at_once(memory, seat, accounts, marks).await,
        };
        if let Ok(found) = &answer {
            self.judge_balances(seat, found);
            let sum: i64 = found.iter().map(|account| account.balance).sum();
            if !self.books.overdraft && sum > self.books.total() {
                let complain = || format!("accounts {accounts:?} hold {sum}, more than there is");
                self.books.ledgers.of(seat.client).wrong_snapshots.add(complain);
            }
        }
        (ended(answer), attempts)
    }

    async fn sum_at_once(
        &self,
        memory: &BankMemory,
        seat: &Seat,
        accounts: &[u32],
        marks: &[marks::Use],
    ) -> (Result<Vec<Account>, Error>, u32) {
        let space = memory.space;
        transact(&memory.summer, async |tx| {
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
            Ok(found)
        })
        .await
    }

    async fn read_all(&self, memory: &BankMemory, seat: &Seat) -> (Ended, u32) {
        let space = memory.space;
        let (answer, attempts) = transact(&memory.reader, async |tx| {
            let all = 0..self.books.accounts as u32;
            match &memory.open {
                Some(open) => open.read_decided((&self.books.rows, tx, space), all).await,
                None => self.books.rows.read(tx, space, all).await,
            }
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
        (ended(answer), attempts)
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
        let space = memory.space;
        let (answer, attempts) = transact(&seat.db, async |tx| {
            let found = self.books.rows.read(tx, space, 0..self.books.accounts as u32).await?;
            for (account, state) in found.iter().enumerate() {
                self.books.rows.write(tx, space, (account as u32, state.after(0))).await?;
            }
            Ok(())
        })
        .await;
        let ended = ended(answer);
        self.books.ledgers.of(seat.client).settle(&ended);
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
        let summer = self.nesting.handle(seat.node, &reader, "sums");
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

    fn open_children(&self) -> Option<NestingCounts> {
        self.nesting.counts()
    }
}
