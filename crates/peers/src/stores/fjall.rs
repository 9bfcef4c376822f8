//! Accounts in fjall.

use anyhow::Context;
use fjall::{
    KeyspaceCreateOptions, PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace,
};

use super::store::{AccountStore, INITIAL, StoreSetup};

/// How it is set up, for those who read the table.
pub fn setting(is_synced: bool) -> &'static str {
    match is_synced {
        false => {
            "SingleWriterTxDatabase, journal neither flushed nor synced by commits; one writer at \
             a time (serializable)"
        }
        true => "SingleWriterTxDatabase, PersistMode::SyncAll; one writer at a time (serializable)",
    }
}

/// A database with one keyspace.
pub struct FjallAccounts {
    database: SingleWriterTxDatabase,
    keyspace: SingleWriterTxKeyspace,
    persist: Option<PersistMode>,
}

fn amount(bytes: &[u8]) -> anyhow::Result<i64> {
    Ok(i64::from_le_bytes(bytes.try_into().context("not eight bytes")?))
}

impl FjallAccounts {
    /// Makes it and loads the accounts.
    ///
    /// # Errors
    /// fjall fails.
    pub fn open(setup: &StoreSetup) -> anyhow::Result<FjallAccounts> {
        let builder = SingleWriterTxDatabase::builder(&setup.folder);
        let database = builder.manual_journal_persist(true).open()?;
        let keyspace = database.keyspace("accounts", KeyspaceCreateOptions::default)?;
        let mut txn = database.write_tx();
        for account in 0..setup.accounts {
            txn.insert(&keyspace, account.to_be_bytes(), INITIAL.to_le_bytes());
        }
        txn.commit()?;
        let persist = setup.is_synced.then_some(PersistMode::SyncAll);
        Ok(FjallAccounts { database, keyspace, persist })
    }
}

impl AccountStore for FjallAccounts {
    fn transfer(&self, from: u64, to: u64) -> anyhow::Result<()> {
        let mut txn = self.database.write_tx().durability(self.persist);
        let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
        let payer = amount(&txn.get(&self.keyspace, from)?.context("no such account")?)?;
        let payee = amount(&txn.get(&self.keyspace, to)?.context("no such account")?)?;
        txn.insert(&self.keyspace, from, (payer - 1).to_le_bytes());
        txn.insert(&self.keyspace, to, (payee + 1).to_le_bytes());
        Ok(txn.commit()?)
    }

    fn sum(&self) -> anyhow::Result<i64> {
        let mut sum = 0;
        for row in self.database.read_tx().iter(&self.keyspace) {
            sum += amount(&row.value()?)?;
        }
        Ok(sum)
    }
}
