//! Sizes: what is over a limit is refused by the name of the limit, and everybody lives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muesli::procedures::builtin::{Get, Keyed};
use muesli::{Connect, Db, Error, KeyRange, Limit, Limits, Options, Range, SpaceOptions};
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
    db.blocking().transact(async move |tx| {
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
    db.blocking().transact(async move |tx| {
        tx.get_many(space, (0..rows).map(|row| format!("absent {row}").into_bytes())).await?;
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
    assert!(
        error.to_string().starts_with("`transaction_bytes_max` is 1000 and must be"),
        "{error}"
    );
    let limits = Limits { transaction_bytes: 200 << 20, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let options = ServerOptions { settings, ..ServerOptions::default() };
    let error = muesli_cluster::Server::open(options).err().unwrap().to_string();
    assert!(error.contains("`frame_bytes_max` is 117440512 and must be"), "{error}");
}

/// Pages of three rows or two values.
fn short_pages() -> Limits {
    Limits { page_rows: 3, page_bytes: 200, ..Limits::default() }
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// A range as a transaction sees it that has deleted the keys that end in 5 and written `k07x`.
fn changed_and_scanned(db: &Db, range: Range) -> Rows {
    let space = db.space("s").unwrap();
    let scanned = db.blocking().transact(async move |tx| {
        for key in (5..100).step_by(10) {
            tx.delete(space, format!("k{key:02}").into_bytes()).await?;
        }
        tx.put(space, "k07x", "own").await?;
        let rows = tx.scan(space, range.clone()).await?;
        let rows: Rows = rows
            .iter()
            .map(|(key, value)| (key.as_slice().to_vec(), value.as_slice().to_vec()))
            .collect();
        Err::<(), _>(Error::rollback(text_of(&rows)))
    });
    let Err(Error::Rollback(text)) = scanned else { panic!("{scanned:?}") };
    parsed(&text)
}

fn text_of(rows: &Rows) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let row = |(key, value): &(Vec<u8>, Vec<u8>)| format!("{}={}", text(key), text(value));
    rows.iter().map(row).collect::<Vec<_>>().join(",")
}

fn parsed(text: &str) -> Rows {
    let rows = text.split(',').filter(|row| !row.is_empty());
    let row = |row: &str| {
        let (key, value) = row.split_once('=').unwrap();
        (key.as_bytes().to_vec(), value.as_bytes().to_vec())
    };
    rows.map(row).collect()
}

const ALL_PROTOCOLS: [&str; 9] =
    ["score", "gmu", "bumper", "bumper-tw", "2pc", "rr", "ngm", "granola", "granola-locking"];

fn paged(protocol: &str, repositories: usize, replicas: usize) -> Db {
    let options = Options {
        protocol: protocol.to_owned(),
        limits: short_pages(),
        repositories,
        replicas,
        loops: repositories.min(2),
        ..Options::default()
    };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

#[test]
fn ranges_read_in_pages_are_as_if_read_at_once() {
    for protocol in ALL_PROTOCOLS {
        for (repositories, replicas) in [(1, 1), (3, 1), (3, 2)] {
            let db = paged(protocol, repositories, replicas);
            let space = db.space("s").unwrap();
            let value = |key: usize| "v".repeat(1 + key % 90);
            db.blocking()
                .transact(async move |tx| {
                    for key in 0..100 {
                        tx.put(space, format!("k{key:02}").into_bytes(), value(key).into_bytes())
                            .await?;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            let mut model: BTreeMap<_, _> =
                (0..100).map(|key| (format!("k{key:02}"), value(key))).collect();
            model.retain(|key, _| !key.ends_with('5'));
            model.insert("k07x".to_owned(), "own".to_owned());
            for (lo, hi, limit) in
                [("k", "l", usize::MAX), ("k1", "k83", 10), ("k04", "k20", 16), ("k9", "k95", 9)]
            {
                for reverse in [false, true] {
                    let range = Range::of(lo..hi).limit(limit);
                    let range = if reverse { range.reverse() } else { range };
                    let inside = model.range(lo.to_owned()..hi.to_owned());
                    let mut wanted: Rows =
                        inside.map(|(k, v)| (k.clone().into(), v.clone().into())).collect();
                    if reverse {
                        wanted.reverse();
                    }
                    wanted.truncate(limit);
                    let what = format!("{protocol} {repositories} {lo} {hi} {limit} {reverse}");
                    assert_eq!(changed_and_scanned(&db, range), wanted, "{what}");
                }
            }
        }
    }
}

#[test]
fn many_keys_are_read_in_pages() {
    for protocol in ALL_PROTOCOLS {
        for repositories in [1, 3] {
            let db = paged(protocol, repositories, 1);
            let space = db.space("s").unwrap();
            let value = |key: usize| vec![key as u8; key];
            let read = db.blocking().transact(async move |tx| {
                for key in 0..100 {
                    tx.put(space, format!("{key}").into_bytes(), value(key)).await?;
                }
                Ok::<_, Error>(())
            });
            read.unwrap();
            let read = db.blocking().transact(async move |tx| {
                tx.put(space, "50", "own").await?;
                tx.get_many(space, (0..120).map(|key| format!("{key}").into_bytes())).await
            });
            for (key, read) in read.unwrap().into_iter().enumerate() {
                let wanted = match key {
                    50 => Some(b"own".to_vec()),
                    0..100 => Some(value(key)),
                    _ => None,
                };
                assert_eq!(
                    read.map(|it| it.as_slice().to_vec()),
                    wanted,
                    "{protocol} {repositories} {key}"
                );
            }
        }
    }
}

/// What servers answer is judged by whoever asked, pages too.
#[test]
fn many_keys_and_ranges_are_read_in_pages_of_servers() {
    for (protocol, group) in [("score", 1), ("rr", 1), ("granola", 1), ("score", 3)] {
        let servers = start_with(group, |_| ServerOptions {
            protocol: protocol.to_owned(),
            group: group as u16,
            settings: Settings { limits: short_pages(), ..Settings::default() },
            ..ServerOptions::default()
        });
        let (addresses, protocol) = (servers.addresses.clone(), protocol.to_owned());
        let db = Db::connect_with(Connect { addresses, protocol, ..Connect::default() }).unwrap();
        db.create_space("s", SpaceOptions::default()).unwrap();
        write(&db, 50, 10, 60).unwrap();
        let space = db.space("s").unwrap();
        let keys = || (0..50).map(|key| format!("{key:010}").into_bytes());
        let read = db.blocking().transact(async move |tx| {
            let found = tx.get_many(space, keys()).await?;
            Ok::<_, Error>((
                found.into_iter().flatten().count(),
                tx.scan(space, Range::all()).await?.len(),
            ))
        });
        assert_eq!(read, Ok((50, 50)));
        drop(db);
        servers.stop();
    }
}

/// A writer takes from one key what it gives to another, as fast as it can; readers scan all keys
/// in pages. A key is inserted in front of what was scanned, so that updates meet phantoms.
#[test]
fn a_scan_in_pages_sees_one_snapshot_and_its_range_is_protected() {
    for protocol in ["score", "gmu", "bumper", "2pc", "ngm", "granola"] {
        let db = paged(protocol, 2, 1);
        let numbers = db.space("s").unwrap().typed::<u64, u64>();
        db.blocking()
            .transact(async move |tx| {
                for key in 0..40u64 {
                    numbers.put(tx, &key, &100).await?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        let (stop, wrote) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (writing, stopped, written) = (db.clone(), stop.clone(), wrote.clone());
        let writer = std::thread::spawn(move || {
            let mut moved = 0u64;
            while !stopped.load(Ordering::Relaxed) {
                let (from, to) = (moved % 40, (moved * 7 + 3) % 40);
                let done = writing.blocking().transact(async move |tx| {
                    let taken = numbers.get(tx, &from).await?.unwrap_or(0).min(1);
                    let rest = numbers.get(tx, &from).await?.unwrap_or(0) - taken;
                    numbers.put(tx, &from, &rest).await?;
                    let given = numbers.get(tx, &to).await?.unwrap_or(0) + taken;
                    numbers.put(tx, &to, &given).await
                });
                moved += u64::from(done.is_ok());
                written.fetch_or(done.is_ok(), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let reader = db.read_only();
        let sum = || {
            reader.blocking().transact(async move |tx| {
                let rows = numbers.range(tx, KeyRange::all()).await?;
                Ok(rows.iter().map(|(_, value)| value).sum::<u64>())
            })
        };
        // Where reads are checked at the end, a reader may find no moment without a writer.
        let is_checked = ["2pc", "granola"].contains(&protocol);
        for round in 0.. {
            match sum() {
                Err(Error::Conflict { .. }) if is_checked => {}
                sum => assert_eq!(sum, Ok(4_000), "{protocol}"),
            }
            if round >= 20 && wrote.load(Ordering::Relaxed) {
                break;
            }
            assert!(round < 100_000, "{protocol}: nobody lets the writer in");
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        assert_eq!(sum(), Ok(4_000), "{protocol}");
        phantoms_are_met(&db, protocol);
    }
}

/// Of two transactions that count all rows and add one, under another key, the second has to be
/// run again, and counts the first one's.
fn phantoms_are_met(db: &Db, protocol: &str) {
    let numbers = db.space("s").unwrap().typed::<u64, u64>();
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let db = db.clone();
            std::thread::spawn(move || {
                for round in 0..5 {
                    let add = || {
                        db.blocking().transact(async move |tx| {
                            let count = numbers.range(tx, KeyRange::all()).await?.len() as u64;
                            numbers.put(tx, &(1_000 + thread * 10 + round), &count).await
                        })
                    };
                    while let Err(error) = add() {
                        assert!(matches!(error, Error::Conflict { .. }), "{error}");
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let rows =
        db.blocking().transact(async move |tx| numbers.range(tx, KeyRange::of(1_000..)).await);
    let mut counts: Vec<_> = rows.unwrap().into_iter().map(|(_, count)| count).collect();
    counts.sort_unstable();
    assert_eq!(counts, (40..60).collect::<Vec<_>>(), "{protocol}");
}

#[test]
fn an_answer_over_its_limit_is_refused_by_the_name_of_the_limit() {
    for protocol in ["score", "granola"] {
        let limits =
            Limits { value_bytes: 1_000, key_bytes: 100, answer_bytes: 5_000, ..short_pages() };
        let options = Options {
            protocol: protocol.to_owned(),
            limits,
            repositories: 2,
            ..Options::default()
        };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        write(&db, 30, 3, 500).unwrap();
        let space = db.space("s").unwrap();
        let error =
            db.blocking().transact(async move |tx| tx.scan(space, Range::all()).await.map(drop));
        let error = error.unwrap_err();
        assert!(matches!(error, Error::TooLarge { what: Limit::Answer, .. }), "{error}");
        assert!(error.to_string().contains("`answer_bytes_max`"), "{error}");
        let some =
            db.blocking().transact(async move |tx| tx.scan(space, Range::all().limit(3)).await);
        assert_eq!(some.unwrap().len(), 3, "{protocol}");
    }
}

/// What a procedure gives may hold what it reads many times over.
#[test]
fn a_procedure_that_reads_one_long_value_over_and_over_is_refused_before_it_has_it_all() {
    let long = 1 << 20;
    let refused = |answer_bytes: usize| {
        let limits = Limits { value_bytes: long, answer_bytes, ..Limits::default() };
        let options = Options { protocol: "granola".to_owned(), limits, ..Options::default() };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        let space = db.space("s").unwrap();
        write(&db, 1, 1, long).unwrap();
        // Two hundred gigabytes.
        let keyed = Keyed { space, keys: vec!["0".into(); 200_000] };
        let found = db.read_only().blocking().execute::<Get>(space.place("0"), &keyed);
        let again = Keyed { space, keys: vec!["1".into(); 10] };
        let goes_on = db.read_only().blocking().execute::<Get>(space.place("1"), &again);
        assert_eq!(goes_on.unwrap(), vec![None; 10]);
        found.unwrap_err().to_string()
    };
    let text = refused(Limits::default().answer_bytes);
    assert!(text.contains("1073741824 bytes were read (`answer_bytes_max`)"), "{text}");
    let text = refused(1 << 50);
    assert!(text.contains("limit of 1048576 bytes (`value_bytes_max`)"), "{text}");
}
