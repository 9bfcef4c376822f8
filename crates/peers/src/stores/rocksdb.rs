//! Accounts in RocksDB.

use anyhow::Context;
use rocksdb::{
    ErrorKind, IteratorMode, OptimisticTransactionDB, OptimisticTransactionOptions, Options,
    Transaction, WriteOptions,
};

use super::store::{AccountStore, INITIAL, StoreSetup};

/// How it is set up, for those who read the table.
pub fn setting(is_synced: bool) -> &'static str {
    match is_synced {
        false => {
            "OptimisticTransactionDB without its log (disable_wal), reads by get_for_update \
             (serializable)"
        }
        true => {
            "OptimisticTransactionDB, WriteOptions::set_sync, reads by get_for_update \
             (serializable)"
        }
    }
}

type RocksTransaction<'a> = Transaction<'a, OptimisticTransactionDB>;

/// A database with the default column family.
pub struct RocksAccounts {
    database: OptimisticTransactionDB,
    is_synced: bool,
}

fn amount(bytes: &[u8]) -> anyhow::Result<i64> {
    Ok(i64::from_le_bytes(bytes.try_into().context("not eight bytes")?))
}

/// Reads an account such that the commit checks whether it has changed.
fn read(txn: &RocksTransaction<'_>, key: [u8; 8]) -> anyhow::Result<i64> {
    amount(&txn.get_pinned_for_update(key, true)?.context("no such account")?)
}

impl RocksAccounts {
    /// Makes it and loads the accounts.
    ///
    /// # Errors
    /// RocksDB fails.
    pub fn open(setup: &StoreSetup) -> anyhow::Result<RocksAccounts> {
        let mut options = Options::default();
        options.create_if_missing(true);
        let database = OptimisticTransactionDB::open(&options, &setup.folder)?;
        let store = RocksAccounts { database, is_synced: setup.is_synced };
        let write_options = store.write_options();
        let txn = store.begin(&write_options);
        for account in 0..setup.accounts {
            txn.put(account.to_be_bytes(), INITIAL.to_le_bytes())?;
        }
        txn.commit()?;
        drop(txn);
        Ok(store)
    }

    fn write_options(&self) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.set_sync(self.is_synced);
        options.disable_wal(!self.is_synced);
        options
    }

    fn begin(&self, write_options: &WriteOptions) -> RocksTransaction<'_> {
        self.database.transaction_opt(write_options, &OptimisticTransactionOptions::default())
    }
}

impl AccountStore for RocksAccounts {
    fn transfer(&self, from: u64, to: u64) -> anyhow::Result<()> {
        let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
        let write_options = self.write_options();
        loop {
            let txn = self.begin(&write_options);
            let (payer, payee) = (read(&txn, from)?, read(&txn, to)?);
            txn.put(from, (payer - 1).to_le_bytes())?;
            txn.put(to, (payee + 1).to_le_bytes())?;
            match txn.commit() {
                Ok(()) => return Ok(()),
                Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn sum(&self) -> anyhow::Result<i64> {
        let mut sum = 0;
        for row in self.database.iterator(IteratorMode::Start) {
            sum += amount(&row?.1)?;
        }
        Ok(sum)
    }
}
