//! Embedded databases whose data last.

mod compacting;
mod disk;
mod killed;
mod opening;
mod power_losses;
mod reading;
mod served;
mod verifying;

use std::path::Path;
use std::time::Duration;

use muesli::{Db, Durable, Error, Options, SpaceOptions, SyncPolicy, TypedSpace};

/// Keys that are spread over repositories.
const KEYS: u64 = 10;

/// A database of two repositories in this folder.
fn options(path: &Path, protocol: &str, loops: usize) -> Options {
    let options = Options {
        repositories: 2,
        loops,
        protocol: protocol.to_owned(),
        spin: Duration::ZERO, // Loops outnumber cores.
        ..Options::default()
    };
    options.durable(path)
}

fn open(path: &Path, protocol: &str, loops: usize) -> Db {
    Db::open(options(path, protocol, loops)).unwrap_or_else(|error| panic!("{protocol}: {error}"))
}

fn counters(db: &Db) -> TypedSpace<u64, i64> {
    db.create_space("counters", SpaceOptions::default()).unwrap().typed()
}

/// Adds to a key, in a transaction of its own.
fn add(db: &Db, key: u64, more: i64) -> Result<(), Error> {
    let counters = counters(db);
    db.blocking().transact(async move |tx| {
        let before = counters.get(tx, &key).await?.unwrap_or(0);
        counters.put(tx, &key, &(before + more)).await
    })
}

/// What the keys hold, as one transaction that only reads sees them.
fn read_all(db: &Db) -> Vec<Option<i64>> {
    let counters = counters(db);
    let read = async move |tx: &muesli::Tx| {
        let mut found = Vec::new();
        for key in 0..KEYS {
            found.push(counters.get(tx, &key).await?);
        }
        Ok::<_, Error>(found)
    };
    db.read_only().blocking().transact(read).unwrap()
}
