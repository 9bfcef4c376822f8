//! Accounts with what clients know of them: what the bank and its loans have in common.

use muesli::{Db, Error, Index, SpaceOptions};
use muesli_check::abstract_operations::AbstractOperation;

use super::account::Account;
use super::account_rows::{self, AccountRows};
use super::asked::AskedTransaction;
use super::ledger::{BankLedger, Ledgers};
use crate::calls;
use crate::loading::write_missing;
use crate::nesting::roots::{RecordsRoots, RootRecorder};
use crate::parameters::{Parameter, ParameterKind, Values};

/// How many accounts there are.
pub(super) const OBJECTS: Parameter =
    calls::objects("1000", (2, 100_000_000), "How many accounts there are.");
/// What each of them holds at first.
pub(super) const INITIAL: Parameter = Parameter::new(
    "initial",
    "10000",
    ParameterKind::Count(0, 1_000_000_000),
    "What each account holds at first.",
);

/// Accounts that held the same at first, and the ledgers of all who move money between them.
#[derive(Debug)]
pub(super) struct AccountBooks {
    /// How many accounts there are.
    pub accounts: u64,
    /// What each of them held at first.
    pub initial: i64,
    /// Whether they may be overdrawn.
    pub overdraft: bool,
    /// Where they lie, and how they are read and written.
    pub rows: AccountRows,
    /// One for each client.
    pub ledgers: Ledgers,
    /// What transactions answered, each as a whole.
    pub roots: RootRecorder,
}

impl AccountBooks {
    /// As many accounts as the parameter `objects` says, for so many clients.
    pub fn new(values: &Values, overdraft: bool, clients: u32) -> AccountBooks {
        AccountBooks {
            accounts: values.count("objects"),
            initial: values.count("initial") as i64,
            overdraft,
            rows: AccountRows::new(values),
            ledgers: Ledgers::new(clients, |_| BankLedger::default()),
            roots: RootRecorder::default(),
        }
    }

    /// The space that they need.
    pub fn space() -> (&'static str, SpaceOptions) {
        (account_rows::SPACE, SpaceOptions { index: Index::Hash, ..SpaceOptions::default() })
    }

    /// A client asks for a transaction.
    pub fn ask(&self) -> AskedTransaction<'_> {
        AskedTransaction::new(self.roots.begin())
    }

    /// What all accounts together hold.
    pub fn total(&self) -> i64 {
        self.initial * self.accounts as i64
    }

    /// Writes those that are not there yet.
    pub async fn load(&self, db: &Db) -> Result<(), Error> {
        let first = Account { balance: self.initial, version: 0 }.encode();
        let rows = self.rows.keys().iter().map(|key| (key.clone(), first.clone()));
        write_missing(db, AccountRows::space_of(db)?, rows).await
    }
}

/// Accounts are counters, by their numbers, which transfers change and sums read.
impl RecordsRoots for AccountBooks {
    fn recorder(&self) -> &RootRecorder {
        &self.roots
    }

    fn start(&self) -> Vec<AbstractOperation> {
        let by = self.initial;
        (0..self.accounts).map(|counter| AbstractOperation::Increase { counter, by }).collect()
    }

    fn object(&self, number: u64) -> String {
        format!("account {number}")
    }
}
