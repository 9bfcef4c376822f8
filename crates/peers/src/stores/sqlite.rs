//! Accounts in SQLite.

use std::sync::Mutex;

use rusqlite::Connection;

use super::store::{AccountStore, INITIAL, StoreSetup};

/// How it is set up, for those who read the table.
pub fn setting(is_synced: bool) -> &'static str {
    match is_synced {
        false => {
            ":memory:, synchronous=OFF, one connection behind a mutex, prepared statements \
             (an UPDATE a key), integers as keys and values; serializable"
        }
        true => {
            "WAL, synchronous=FULL, locking_mode=EXCLUSIVE, one connection behind a mutex, \
             prepared statements (an UPDATE a key), integers as keys and values; serializable"
        }
    }
}

/// A database with one table. SQLite has one writer at a time, and a connection that is shared
/// needs no locks of files, as several would.
pub struct SqliteAccounts(Mutex<Connection>);

/// Reads and writes one account: to SQLite that is one statement.
fn add(connection: &Connection, account: i64, amount: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE accounts SET amount = amount + ?2 WHERE id = ?1";
    connection.prepare_cached(sql)?.execute([account, amount]).map(drop)
}

fn transfer(connection: &Connection, from: i64, to: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    add(connection, from, -1)?;
    add(connection, to, 1)?;
    connection.prepare_cached("COMMIT")?.execute([]).map(drop)
}

impl SqliteAccounts {
    /// Makes it and loads the accounts.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn open(setup: &StoreSetup) -> anyhow::Result<SqliteAccounts> {
        let connection = match setup.is_synced {
            true => Connection::open(setup.folder.join("accounts.sqlite"))?,
            false => Connection::open_in_memory()?,
        };
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let synchronous = match setup.is_synced {
            true => {
                connection.pragma_update(None, "journal_mode", "WAL")?;
                "FULL"
            }
            false => "OFF",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.execute_batch(
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL); BEGIN",
        )?;
        let mut insert = connection.prepare("INSERT INTO accounts VALUES (?1, ?2)")?;
        for account in 0..i64::try_from(setup.accounts)? {
            insert.execute([account, INITIAL])?;
        }
        drop(insert);
        connection.execute_batch("COMMIT")?;
        Ok(SqliteAccounts(Mutex::new(connection)))
    }
}

impl AccountStore for SqliteAccounts {
    fn transfer(&self, from: u64, to: u64) -> anyhow::Result<()> {
        let connection = self.0.lock().expect("nobody panics");
        Ok(transfer(&connection, i64::try_from(from)?, i64::try_from(to)?)?)
    }

    fn sum(&self) -> anyhow::Result<i64> {
        let connection = self.0.lock().expect("nobody panics");
        Ok(connection.query_row("SELECT sum(amount) FROM accounts", [], |row| row.get(0))?)
    }
}
