//! Where accounts lie, and by what means they are read and written.

use std::sync::Arc;

use muesli::objects::Objects;
use muesli::{Db, Error, Key, SmallBytes, Space, Tx};

use super::account::Account;
use crate::interface::Interface;
use crate::parameters::Values;

/// The space with the accounts.
pub(super) const SPACE: &str = "accounts";

/// The name of accounts that are objects.
const KIND: &str = "account";

/// The accounts as rows, or as objects. Its clones are one.
#[derive(Clone, Debug)]
pub(super) struct AccountRows {
    /// By what means they are read and written.
    interface: Interface,
    /// Their keys, by their numbers.
    keys: Arc<[SmallBytes]>,
}

impl AccountRows {
    /// As many as the parameter `objects` says.
    pub fn new(values: &Values) -> AccountRows {
        let interface = Interface::new(values);
        let key = |account: u64| match interface {
            Interface::Rows => SmallBytes::from(&*account.to_string()),
            Interface::Objects => (KIND.to_owned(), account as u32).encoded(),
        };
        AccountRows { interface, keys: (0..values.count("objects")).map(key).collect() }
    }

    /// The space that they are in.
    pub fn space_of(db: &Db) -> Result<Space, Error> {
        db.space(SPACE)
    }

    /// All keys, by the numbers of their accounts.
    pub fn keys(&self) -> &[SmallBytes] {
        &self.keys
    }

    /// An account's key.
    pub fn key(&self, account: u32) -> SmallBytes {
        self.keys[account as usize].clone()
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

    /// Changes the balances of different accounts; each is read and written once more.
    pub async fn change(
        &self,
        tx: &Tx,
        space: Space,
        changes: &[AccountChange],
    ) -> Result<(), Error> {
        let accounts = || changes.iter().map(|(account, _)| *account);
        let differ = accounts().zip(1..).all(|(one, at)| accounts().skip(at).all(|it| it != one));
        assert!(differ, "an account is changed once: {changes:?}");
        let found = self.read(tx, space, accounts()).await?;
        for ((account, by), found) in changes.iter().zip(found) {
            self.write(tx, space, (*account, found.after(*by))).await?;
        }
        Ok(())
    }

    /// Undoes changes that were made: balances and versions are as if they had not been.
    ///
    /// # Errors
    /// There is no such account; what the database says.
    pub async fn undo(
        &self,
        tx: &Tx,
        space: Space,
        changes: &[AccountChange],
    ) -> Result<(), Error> {
        if let Some((missing, _)) = changes.iter().find(|(it, _)| *it as usize >= self.keys.len()) {
            return Err(Error::rollback(format!("there is no account {missing}")));
        }
        for (account, by) in changes {
            let found = self.read(tx, space, std::iter::once(*account)).await?;
            self.write(tx, space, (*account, found[0].before(*by))).await?;
        }
        Ok(())
    }

    /// The accounts as objects.
    fn objects(space: Space) -> Objects<u32, Account> {
        Objects::new(space, KIND)
    }
}

/// An account, and what its balance is changed by.
pub(super) type AccountChange = (u32, i64);
