//! Accounts in redb.

use anyhow::Context;
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use super::store::{AccountStore, INITIAL, StoreSetup};

const ACCOUNTS: TableDefinition<'_, u64, i64> = TableDefinition::new("accounts");

/// How it is set up, for those who read the table.
pub fn setting(is_synced: bool) -> &'static str {
    match is_synced {
        false => "Durability::None; one writer at a time (serializable)",
        true => "Durability::Immediate; one writer at a time (serializable)",
    }
}

/// A database with one table.
pub struct RedbAccounts {
    database: Database,
    durability: Durability,
}

impl RedbAccounts {
    /// Makes it and loads the accounts.
    ///
    /// # Errors
    /// redb fails.
    pub fn open(setup: &StoreSetup) -> anyhow::Result<RedbAccounts> {
        let database = Database::create(setup.folder.join("accounts.redb"))?;
        let durability = match setup.is_synced {
            true => Durability::Immediate,
            false => Durability::None,
        };
        let store = RedbAccounts { database, durability };
        let txn = store.database.begin_write()?; // On the disk, as the first commit must be.
        {
            let mut table = txn.open_table(ACCOUNTS)?;
            for account in 0..setup.accounts {
                table.insert(account, INITIAL)?;
            }
        }
        txn.commit()?;
        Ok(store)
    }

    fn begin(&self) -> anyhow::Result<WriteTransaction> {
        let mut txn = self.database.begin_write()?;
        txn.set_durability(self.durability)?;
        Ok(txn)
    }
}

impl AccountStore for RedbAccounts {
    fn transfer(&self, from: u64, to: u64) -> anyhow::Result<()> {
        let txn = self.begin()?;
        {
            let mut table = txn.open_table(ACCOUNTS)?;
            let payer = table.get(from)?.context("no such account")?.value();
            let payee = table.get(to)?.context("no such account")?.value();
            table.insert(from, payer - 1)?;
            table.insert(to, payee + 1)?;
        }
        Ok(txn.commit()?)
    }

    fn sum(&self) -> anyhow::Result<i64> {
        let table = self.database.begin_read()?.open_table(ACCOUNTS)?;
        let mut sum = 0;
        for row in table.iter()? {
            sum += row?.1.value();
        }
        Ok(sum)
    }
}
