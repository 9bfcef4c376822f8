//! What a store of accounts is to the measurement.

use std::path::PathBuf;

/// What each account holds at first.
pub const INITIAL: i64 = 1_000;

/// How a store is set up.
#[derive(Clone, Debug)]
pub struct StoreSetup {
    /// An empty folder, where its files go.
    pub folder: PathBuf,
    /// Accounts, numbered from 0 on; each holds [`INITIAL`] at first.
    pub accounts: u64,
    /// Whether a commit is on the disk before it is answered.
    pub is_synced: bool,
}

/// Accounts in an embedded store, which several threads use at the same time.
pub trait AccountStore: Send + Sync {
    /// Moves one from an account to another one: two reads and two writes in one transaction, which
    /// is tried again after a conflict.
    ///
    /// # Errors
    /// The store fails.
    fn transfer(&self, from: u64, to: u64) -> anyhow::Result<()>;

    /// What all accounts hold, read in one transaction.
    ///
    /// # Errors
    /// The store fails.
    fn sum(&self) -> anyhow::Result<i64>;
}
