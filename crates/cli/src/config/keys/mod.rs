//! The keys of a server's configuration: one table, for the file, the environment and options.

mod network;
mod placement;
mod server;
mod storage;
mod transactions;

use super::{Config, PREFIX};

/// A key, and what it does.
pub struct ConfigKey {
    pub name: &'static str,
    pub value: &'static str,
    pub default: &'static str,
    pub help: &'static str,
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
}

/// All keys, in the order in which they are listed.
pub fn all() -> impl Iterator<Item = &'static ConfigKey> {
    let parts = [
        server::SERVER,
        placement::PLACEMENT,
        storage::STORAGE,
        transactions::TRANSACTIONS,
        network::NETWORK,
    ];
    parts.into_iter().flatten()
}

impl ConfigKey {
    /// The environment variable.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase())
    }

    /// The option, without its dashes.
    pub fn option(&self) -> String {
        self.name.replace('_', "-")
    }
}
