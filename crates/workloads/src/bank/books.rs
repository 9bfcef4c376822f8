//! Accounts with what clients know of them: what the bank and its loans have in common.

use muesli::objects::Objects;
use muesli::{Db, Error, Index, Key, SmallBytes, Space, SpaceOptions, Tx};

use super::account::Account;
use super::ledger::{BankLedger, Ledgers};
use crate::calls;
use crate::interface::Interface;
use crate::loading::write_missing;
use crate::parameters::{Parameter, ParameterKind, Values};

/// The space with the accounts.
const SPACE: &str = "accounts";

/// How many accounts there are.
pub(super) const OBJECTS: Parameter =
    calls::objects("1000", (2, 100_000_000), "How many accounts there are.");
/// The name of accounts that are objects.
const KIND: &str = "account";
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
    /// By what means they are read and written.
    interface: Interface,
    /// Their keys, by their numbers.
    pub keys: Box<[SmallBytes]>,
    /// One for each client.
    pub ledgers: Ledgers,
}

impl AccountBooks {
    /// As many accounts as the parameter `objects` says, for so many clients.
    pub fn new(values: &Values, overdraft: bool, clients: u32) -> AccountBooks {
        let (accounts, interface) = (values.count("objects"), Interface::new(values));
        let key = |account: u64| match interface {
            Interface::Rows => SmallBytes::from(&*account.to_string()),
            Interface::Objects => (KIND.to_owned(), account as u32).encoded(),
        };
        AccountBooks {
            accounts,
            initial: values.count("initial") as i64,
            overdraft,
            interface,
            keys: (0..accounts).map(key).collect(),
            ledgers: Ledgers::new(clients, |_| BankLedger::default()),
        }
    }

    /// The space that they need.
    pub fn space() -> (&'static str, SpaceOptions) {
        (SPACE, SpaceOptions { index: Index::Hash, ..SpaceOptions::default() })
    }

    /// Where they are.
    pub fn space_of(db: &Db) -> Result<Space, Error> {
        db.space(SPACE)
    }

    /// What all accounts together hold.
    pub fn total(&self) -> i64 {
        self.initial * self.accounts as i64
    }

    /// An account's key.
    pub fn key(&self, account: u32) -> SmallBytes {
        self.keys[account as usize].clone()
    }

    /// Writes those that are not there yet.
    pub async fn load(&self, db: &Db) -> Result<(), Error> {
        let first = Account { balance: self.initial, version: 0 }.encode();
        let rows = self.keys.iter().map(|key| (key.clone(), first.clone()));
        write_missing(db, AccountBooks::space_of(db)?, rows).await
    }

    /// What accounts hold, in this order.
    pub async fn read(
        &self,
        tx: &Tx,
        space: Space,
        accounts: impl Iterator<Item = u32>,
    ) -> Result<Vec<Account>, Error> {
        match self.interface {
            Interface::Rows => {
                let values = tx.get_many(space, accounts.map(|account| self.key(account))).await?;
                values.iter().map(|value| Account::decode(value.as_ref())).collect()
            }
            Interface::Objects => {
                let accounts: Vec<u32> = accounts.collect();
                let opened = Self::objects(space).open_all(tx, &accounts).await?;
                opened.iter().map(|account| account.value(tx)).collect()
            }
        }
    }

    /// What an account that the transaction has read holds from now on.
    pub async fn write(
        &self,
        tx: &Tx,
        space: Space,
        (number, account): (u32, Account),
    ) -> Result<(), Error> {
        match self.interface {
            Interface::Rows => tx.put(space, self.key(number), account.encode()).await,
            Interface::Objects => {
                Self::objects(space).open(tx, &number).await?.set(tx, account).await
            }
        }
    }

    /// The accounts as objects.
    fn objects(space: Space) -> Objects<u32, Account> {
        Objects::new(space, KIND)
    }
}
