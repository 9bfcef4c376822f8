//! Accounts in LMDB.

use anyhow::Context;
use lmdb::{
    Cursor, Database, DatabaseFlags, Environment, EnvironmentFlags, RwTransaction, Transaction,
    WriteFlags,
};

use super::store::{AccountStore, INITIAL, StoreSetup};

/// The most that its file may hold.
const MAP_BYTES: usize = 1 << 30;

/// How it is set up, for those who read the table.
pub fn setting(is_synced: bool) -> &'static str {
    match is_synced {
        false => "NO_SYNC, WRITE_MAP, MAP_ASYNC, INTEGER_KEY; one writer at a time (serializable)",
        true => "each commit synced, INTEGER_KEY; one writer at a time (serializable)",
    }
}

/// An environment with one database.
pub struct LmdbAccounts {
    environment: Environment,
    database: Database,
}

fn amount(bytes: &[u8]) -> anyhow::Result<i64> {
    Ok(i64::from_le_bytes(bytes.try_into().context("not eight bytes")?))
}

impl LmdbAccounts {
    /// Makes it and loads the accounts.
    ///
    /// # Errors
    /// LMDB fails.
    pub fn open(setup: &StoreSetup) -> anyhow::Result<LmdbAccounts> {
        let flags = match setup.is_synced {
            true => EnvironmentFlags::empty(),
            false => {
                EnvironmentFlags::NO_SYNC
                    | EnvironmentFlags::WRITE_MAP
                    | EnvironmentFlags::MAP_ASYNC
            }
        };
        let mut builder = Environment::new();
        let environment = builder.set_flags(flags).set_map_size(MAP_BYTES).open(&setup.folder)?;
        let database = environment.create_db(None, DatabaseFlags::INTEGER_KEY)?;
        let store = LmdbAccounts { environment, database };
        let mut txn = store.environment.begin_rw_txn()?;
        for account in 0..setup.accounts {
            store.put(&mut txn, account, INITIAL)?;
        }
        txn.commit()?;
        Ok(store)
    }

    fn get(&self, txn: &RwTransaction<'_>, account: u64) -> anyhow::Result<i64> {
        amount(txn.get(self.database, &account.to_ne_bytes())?)
    }

    fn put(&self, txn: &mut RwTransaction<'_>, account: u64, amount: i64) -> anyhow::Result<()> {
        let (key, value) = (account.to_ne_bytes(), amount.to_le_bytes());
        Ok(txn.put(self.database, &key, &value, WriteFlags::empty())?)
    }
}

impl AccountStore for LmdbAccounts {
    fn transfer(&self, from: u64, to: u64) -> anyhow::Result<()> {
        let mut txn = self.environment.begin_rw_txn()?;
        let (payer, payee) = (self.get(&txn, from)?, self.get(&txn, to)?);
        self.put(&mut txn, from, payer - 1)?;
        self.put(&mut txn, to, payee + 1)?;
        Ok(txn.commit()?)
    }

    fn sum(&self) -> anyhow::Result<i64> {
        let txn = self.environment.begin_ro_txn()?;
        let mut cursor = txn.open_ro_cursor(self.database)?;
        let mut sum = 0;
        for row in cursor.iter_start() {
            sum += amount(row?.1)?;
        }
        Ok(sum)
    }
}
