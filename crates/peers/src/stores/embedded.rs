//! Accounts in Muesli, in this process.

use muesli::blocking::Blocking;
use muesli::{Db, Error, Index, Options, SmallBytes, Space, SpaceOptions, Tx};

use super::store::{AccountStore, INITIAL, StoreSetup};

/// How it is set up, for those who read the table.
pub fn setting(is_synced: bool) -> &'static str {
    match is_synced {
        false => "db.blocking(), protocol score (serializable), one loop, hash index, in memory",
        true => {
            "db.blocking(), protocol score (serializable), one loop, hash index, Options::durable \
             with SyncPolicy::Always"
        }
    }
}

/// A database of accounts.
pub struct EmbeddedAccounts {
    db: Db,
    blocking: Blocking,
    space: Space,
    accounts: u64,
}

fn key(account: u64) -> SmallBytes {
    SmallBytes::new(&account.to_be_bytes())
}

fn value(amount: i64) -> SmallBytes {
    SmallBytes::new(&amount.to_le_bytes())
}

/// What is in a row that was loaded.
fn amount(value: Option<SmallBytes>) -> i64 {
    let value = value.expect("every account is loaded");
    i64::from_le_bytes(value.as_slice().try_into().expect("eight bytes"))
}

impl EmbeddedAccounts {
    /// Opens it and loads the accounts.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(setup: &StoreSetup) -> anyhow::Result<EmbeddedAccounts> {
        let space = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
        let options = Options { loops: 1, repositories: 1, ..Options::default() };
        let options = match setup.is_synced {
            true => options.durable(&setup.folder),
            false => options,
        };
        let db = Db::open(options.space("accounts", space))?;
        let (space, accounts) = (db.space("accounts")?, setup.accounts);
        let blocking = db.blocking();
        blocking.transact(async move |tx: &Tx| {
            for account in 0..accounts {
                tx.put(space, key(account), value(INITIAL)).await?;
            }
            Ok::<_, Error>(())
        })?;
        Ok(EmbeddedAccounts { db, blocking, space, accounts })
    }
}

impl AccountStore for EmbeddedAccounts {
    fn transfer(&self, from: u64, to: u64) -> anyhow::Result<()> {
        let space = self.space;
        self.blocking.transact(async move |tx: &Tx| {
            let payer = amount(tx.get(space, key(from)).await?);
            let payee = amount(tx.get(space, key(to)).await?);
            tx.put(space, key(from), value(payer - 1)).await?;
            tx.put(space, key(to), value(payee + 1)).await
        })?;
        Ok(())
    }

    fn sum(&self) -> anyhow::Result<i64> {
        let (space, accounts) = (self.space, self.accounts);
        Ok(self.blocking.transact(async move |tx: &Tx| {
            let mut sum = 0;
            for account in 0..accounts {
                sum += amount(tx.get(space, key(account)).await?);
            }
            Ok::<_, Error>(sum)
        })?)
    }
}

impl Drop for EmbeddedAccounts {
    fn drop(&mut self) {
        self.db.close();
    }
}
