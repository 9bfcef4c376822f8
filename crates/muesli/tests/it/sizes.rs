//! Sizes: what is over a limit is refused by the name of the limit, and everybody lives.

use muesli::{Connect, Db, Error, Limit, Limits, Options, SpaceOptions};
use muesli_cluster::ServerOptions;
use muesli_core::Settings;

use super::cluster::start_with;

const PROTOCOLS: [&str; 4] = ["score", "2pc", "rr", "granola"];

/// Limits of a thousandth of what is usual.
fn small() -> Limits {
    Limits { key_bytes: 64, value_bytes: 4_000, transaction_bytes: 100_000, ..Limits::default() }
}

/// Writes `rows` keys of `key_bytes` bytes with values of `value_bytes` in one transaction.
fn write(db: &Db, rows: usize, key_bytes: usize, value_bytes: usize) -> Result<(), Error> {
    let space = db.space("s")?;
    db.blocking().transact(move |tx| async move {
        for row in 0..rows {
            let key = format!("{row:0key_bytes$}");
            tx.put(space, key.as_str(), vec![7; value_bytes]).await?;
        }
        Ok(())
    })
}

/// Reads `rows` keys that are not there and writes one, in one transaction.
fn read(db: &Db, rows: usize) -> Result<(), Error> {
    let space = db.space("s")?;
    db.blocking().transact(move |tx| async move {
        tx.get_many(space, (0..rows).map(|row| format!("absent {row}"))).await?;
        tx.put(space, "read", "them").await
    })
}

/// What is over the limits is refused as `refused` says, and what is not is committed.
fn sizes_are_judged(db: &Db, refused: impl Fn(&Error) -> Option<Limit>, what: &str) {
    let limit = |done: Result<(), Error>| {
        let error = done.unwrap_err();
        refused(&error).unwrap_or_else(|| panic!("{what}: {error}"))
    };
    assert_eq!(limit(write(db, 1, 65, 10)), Limit::Key, "{what}");
    assert_eq!(limit(write(db, 1, 10, 4_001)), Limit::Value, "{what}");
    assert_eq!(limit(write(db, 30, 10, 4_000)), Limit::Transaction, "{what}");
    assert_eq!(limit(write(db, 4_000, 10, 0)), Limit::Transaction, "{what}");
    write(db, 1, 64, 4_000).unwrap_or_else(|error| panic!("{what}: {error}"));
    write(db, 20, 10, 4_000).unwrap_or_else(|error| panic!("{what}: {error}"));
    write(db, 3_000, 10, 0).unwrap_or_else(|error| panic!("{what}: {error}"));
}

#[test]
fn the_library_refuses_what_is_over_a_limit_before_it_is_sent() {
    for protocol in PROTOCOLS {
        let options = Options {
            protocol: protocol.to_owned(),
            limits: small(),
            repositories: 2,
            ..Options::default()
        };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        let refused = |error: &Error| match error {
            Error::TooLarge { what, .. } => Some(*what),
            _ => None,
        };
        sizes_are_judged(&db, refused, protocol);
    }
}

#[test]
fn servers_refuse_what_a_client_with_other_limits_sends_and_live() {
    for (protocol, group) in [("score", 1), ("2pc", 1), ("granola", 1), ("score", 3)] {
        let what = format!("{protocol} in groups of {group}");
        let servers = start_with(group, |_| ServerOptions {
            protocol: protocol.to_owned(),
            group: group as u16,
            settings: Settings { limits: small(), ..Settings::default() },
            ..ServerOptions::default()
        });
        let connect = Connect {
            addresses: servers.addresses.clone(),
            protocol: protocol.to_owned(),
            ..Connect::default()
        };
        let db = Db::connect_with(connect).unwrap();
        db.create_space("s", SpaceOptions::default()).unwrap();
        let refused = |error: &Error| match error {
            Error::OverServerLimit(limit) => Some(*limit),
            _ => None,
        };
        sizes_are_judged(&db, refused, &what);
        let reads = read(&db, 5_000);
        assert_eq!(reads, Err(Error::OverServerLimit(Limit::Transaction)), "{what}");
        drop(db);
        servers.stop();
    }
}

#[test]
fn limits_that_do_not_fit_together_are_refused_at_the_start_by_their_rule() {
    let limits = Limits { transaction_bytes: 1_000, ..Limits::default() };
    let error = Db::open(Options { limits, ..Options::default() }).unwrap_err();
    assert!(error.to_string().starts_with("`transaction_bytes_max` is 1000 and must be"), "{error}");
    let limits = Limits { transaction_bytes: 200 << 20, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let options = ServerOptions { settings, ..ServerOptions::default() };
    let error = muesli_cluster::Server::open(options).err().unwrap().to_string();
    assert!(error.contains("`frame_bytes_max` is 117440512 and must be"), "{error}");
}
