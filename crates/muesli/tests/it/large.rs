//! Transactions of tens of megabytes: one within the limit commits, one above it is refused by the
//! name of the limit, and whoever else uses the servers goes on.

use std::path::Path;
use std::time::Duration;

use muesli::{Connect, Db, Error, Limit, Limits, Range, SpaceOptions};
use muesli_cluster::ServerOptions;
use muesli_cluster::lifecycle::options::Durability;

use super::cluster::{Servers, start_with};

/// So many rows of 960 bytes are 62.4 MB.
const ROWS: usize = 65_000;
const KEY_BYTES: usize = 12;
const VALUE_BYTES: usize = 948;
const MIB: usize = 1 << 20;

/// Servers with a log each, which keep one repository together.
fn durable(count: u32, folder: &Path) -> Servers {
    start_with(count, |node| ServerOptions {
        group: count as u16,
        durability: Durability::Log(folder.join(node.0.to_string())),
        ..ServerOptions::default()
    })
}

fn connect(servers: &Servers, limits: Limits) -> Db {
    let connect = Connect {
        addresses: servers.addresses.clone(),
        limits,
        // Other tests use the disk, too.
        give_up_after: Duration::from_secs(100),
        transaction_timeout: Duration::from_secs(100),
        ..Connect::default()
    };
    Db::connect_with(connect).unwrap()
}

/// Writes so many rows in one transaction.
fn write(db: &Db, first: &str, rows: usize, value_bytes: usize) -> Result<(), Error> {
    let (space, width) = (db.space("s")?, KEY_BYTES - first.len());
    let first = first.to_owned();
    db.blocking().transact(async move |tx| {
        for row in 0..rows {
            let key = format!("{first}{row:0width$}");
            tx.put(space, key.as_str(), vec![7; value_bytes]).await?;
        }
        Ok(())
    })
}

/// How many rows there are whose keys begin so, and their bytes.
fn held(db: &Db, first: &'static str) -> (usize, usize) {
    let space = db.space("s").unwrap();
    let rows = db.blocking().transact(async move |tx| tx.scan(space, Range::prefix(first)).await);
    let rows = rows.unwrap();
    (rows.len(), rows.iter().map(|(key, value)| key.len() + value.len()).sum())
}

/// A transaction of 62 MB, and one of 104 MiB: by a client with the usual limits, which spares the
/// server the message, and by one with other limits, whose message the server judges.
fn large_transactions_are_judged(count: u32) {
    let folder = tempfile::tempdir().unwrap();
    let servers = durable(count, folder.path());
    let db = connect(&servers, Limits::default());
    db.create_space("s", SpaceOptions::default()).unwrap();
    write(&db, "a", ROWS, VALUE_BYTES).unwrap();
    let all = (ROWS, ROWS * (KEY_BYTES + VALUE_BYTES));
    assert!(all.1 > 62_000_000);
    let other = connect(&servers, Limits::default());
    assert_eq!(held(&other, "a"), all);
    let error = write(&db, "b", 104, MIB).unwrap_err();
    assert!(matches!(error, Error::TooLarge { what: Limit::Transaction, .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("is over the limit of 100663296 bytes (`transaction_bytes_max`)"),
        "{message}"
    );
    let generous = connect(&servers, Limits { transaction_bytes: 110 * MIB, ..Limits::default() });
    let error = write(&generous, "b", 104, MIB).unwrap_err();
    assert_eq!(error, Error::OverServerLimit(Limit::Transaction));
    assert!(error.to_string().contains("`transaction_bytes_max`"), "{error}");
    // Nothing of it is there, and everybody is served: who has written sees what was before.
    for (db, first) in [(&db, "c"), (&other, "d"), (&generous, "e")] {
        write(db, first, 1, 1).unwrap();
        let rows = (held(db, "a"), held(db, "b"), held(db, first));
        assert_eq!(rows, (all, (0, 0), (1, KEY_BYTES + 1)));
    }
    drop((db, other, generous));
    servers.stop();
}

#[test]
fn a_transaction_of_62_megabytes_commits_at_a_durable_server_and_one_of_104_is_refused() {
    large_transactions_are_judged(1);
}

#[test]
fn a_transaction_of_62_megabytes_commits_in_a_durable_group_and_one_of_104_is_refused() {
    large_transactions_are_judged(3);
}

/// Each client writes so many rows of so many bytes in one transaction, all clients at the same
/// time, and reads what it has written.
fn clients_write_at_the_same_time(
    servers: &Servers,
    firsts: [&'static str; 2],
    (rows, value_bytes): (usize, usize),
) {
    let clients: Vec<_> = firsts
        .into_iter()
        .map(|first| {
            let db = connect(servers, Limits::default());
            // Its server may not have heard yet of the space that another one has made.
            while db.space("s").is_err() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            std::thread::spawn(move || {
                let begun = std::time::Instant::now();
                write(&db, first, rows, value_bytes).unwrap();
                let written = begun.elapsed();
                assert_eq!(held(&db, first), (rows, rows * (KEY_BYTES + value_bytes)));
                println!(
                    "{rows} rows of {value_bytes} bytes: {written:?}, then read: {:?}",
                    begun.elapsed()
                );
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn clients_of_a_durable_group_write_62_megabytes_each_at_the_same_time_and_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let servers = durable(3, folder.path());
    let db = connect(&servers, Limits::default());
    db.create_space("s", SpaceOptions::default()).unwrap();
    clients_write_at_the_same_time(&servers, ["a", "b"], (62, 1_000_000));
    clients_write_at_the_same_time(&servers, ["c", "d"], (4, 15_500_000));
    drop(db);
    servers.stop();
}

#[test]
fn values_of_15_megabytes_are_written_twice_at_the_same_time_in_a_durable_group() {
    let folder = tempfile::tempdir().unwrap();
    let servers = durable(3, folder.path());
    let db = connect(&servers, Limits::default());
    db.create_space("s", SpaceOptions::default()).unwrap();
    clients_write_at_the_same_time(&servers, ["a", "b"], (1, 15_000_000));
    drop(db);
    servers.stop();
}
