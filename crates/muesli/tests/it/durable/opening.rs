//! What was committed is there when the database is opened again.

use std::path::Path;

use super::*;

/// Writes keys in a transaction each, all of them in one, and takes some away.
fn write(db: &Db, round: i64) {
    for key in 0..KEYS {
        add(db, key, round).unwrap();
    }
    let counters = counters(db);
    let all = async move |tx: &muesli::Tx| {
        for key in 0..KEYS {
            let value = counters.get(tx, &key).await?.unwrap_or(0);
            counters.put(tx, &key, &(value + 100)).await?;
        }
        counters.delete(tx, &(KEYS - 1)).await
    };
    db.blocking().transact(all).unwrap();
}

/// What is there after so many rounds.
fn expected(rounds: i64) -> Vec<Option<i64>> {
    let sum: i64 = (1..=rounds).map(|round| round + 100).sum();
    let value = |key| (key < KEYS - 1).then_some(sum);
    if rounds == 0 { vec![None; KEYS as usize] } else { (0..KEYS).map(value).collect() }
}

fn comes_back_twice(path: &Path, protocol: &str, loops: usize) {
    for round in 1..=3 {
        let db = open(path, protocol, loops);
        assert_eq!(read_all(&db), expected(round - 1), "{protocol}, {loops} loops");
        write(&db, round);
        assert_eq!(read_all(&db), expected(round), "{protocol}, {loops} loops");
        if round == 2 {
            db.close();
        }
    }
}

/// Those of papers as they are printed keep their mistakes, some of which show after a start.
fn is_sound(protocol: &&str) -> bool {
    !protocol.contains("-printed")
}

#[test]
fn all_that_was_committed_is_there_again_under_every_protocol() {
    let mut failed = Vec::new();
    for protocol in muesli::protocol_names().into_iter().filter(is_sound) {
        for loops in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("data");
            if std::panic::catch_unwind(|| comes_back_twice(&path, protocol, loops)).is_err() {
                failed.push((protocol, loops));
            }
        }
    }
    assert_eq!(failed, []);
}

#[test]
fn a_database_that_is_closed_loses_nothing_however_seldom_it_is_synced() {
    for sync in [SyncPolicy::Every(Duration::from_millis(10)), SyncPolicy::Never] {
        for loops in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            // Every second write is kept back until a sync.
            let trouble = Some(dir.path().join("trouble"));
            let durable = Durable { sync, trouble, ..Durable::at(dir.path()) };
            let options = Options { durable: Some(durable), ..options(dir.path(), "score", loops) };
            for round in 1..=3 {
                let db = Db::open(options.clone()).unwrap();
                assert_eq!(read_all(&db), expected(round - 1), "{sync:?}");
                write(&db, round);
            }
        }
    }
}

/// Files of the log of a database with one loop.
fn files(path: &Path, beginning: &str) -> Vec<String> {
    let names = std::fs::read_dir(path.join("log")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(beginning)).collect()
}

#[test]
fn checkpoints_are_taken_and_the_log_before_them_goes() {
    let dir = tempfile::tempdir().unwrap();
    let (segment_bytes, checkpoint_bytes) = (64 << 10, 256 << 10);
    for sync in [SyncPolicy::Always, SyncPolicy::Never, SyncPolicy::Always] {
        let durable = Durable { sync, segment_bytes, checkpoint_bytes, ..Durable::at(dir.path()) };
        let options = Options { durable: Some(durable), ..options(dir.path(), "score", 1) };
        let db = Db::open(options).unwrap();
        let before = read_all(&db)[0].unwrap_or(0);
        let (first, counters) = (files(dir.path(), "segment-"), counters(&db));
        let fill = async move |tx: &muesli::Tx| {
            for key in 0..1_000 {
                counters.put(tx, &key, &(before + 1)).await?;
            }
            Ok::<_, Error>(())
        };
        // Until the oldest segment has gone.
        while files(dir.path(), "segment-").contains(&first[0]) {
            db.blocking().transact(fill).unwrap();
        }
        assert!(!files(dir.path(), "checkpoint-").is_empty());
        assert_eq!(read_all(&db), vec![Some(before + 1); KEYS as usize]);
    }
}

#[test]
fn what_cannot_be_is_refused_as_an_option() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let durable = Durable { segment_bytes: 0, ..Durable::at(&path) };
    let none = Options { durable: Some(durable), ..options(&path, "score", 1) };
    let hash = SpaceOptions { index: muesli::Index::Hash, ..SpaceOptions::default() };
    let twice = options(&path, "score", 1).space("a", SpaceOptions::default()).space("a", hash);
    for options in [none, twice] {
        let error = Db::open(options).map(drop).unwrap_err();
        assert!(matches!(error, Error::Options(_)), "{error}");
    }
    assert!(!path.exists(), "nothing was made");
}

/// As little room as there can be for what waits for the disk.
#[test]
fn a_database_without_a_backlog_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let durable = Durable { backlog_bytes: 0, ..Durable::at(dir.path()) };
    let options = Options { durable: Some(durable), ..options(dir.path(), "score", 2) };
    let db = Db::open(options).unwrap();
    write(&db, 1);
    assert_eq!(read_all(&db), expected(1));
}

#[test]
fn spaces_are_there_again_and_belong_to_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(options(dir.path(), "score", 2).space("b", SpaceOptions::default())).unwrap();
    let made = db.create_space("a", SpaceOptions::default()).unwrap();
    db.blocking().transact(async move |tx| tx.put(made, "key", "value").await).unwrap();
    drop(db);
    let again = options(dir.path(), "score", 2).space("c", SpaceOptions::default());
    let db = Db::open(again).unwrap();
    let names: Vec<_> = db.catalog().spaces().iter().map(|space| space.name.clone()).collect();
    assert_eq!(names, ["b", "a", "c"]);
    let space = db.space("a").unwrap();
    let found = db.blocking().transact(async move |tx| tx.get(space, "key").await);
    assert_eq!(found, Ok(Some("value".into())));
    db.close();
    let closed = db.create_space("d", SpaceOptions::default());
    assert_eq!(closed.map(drop), Err(Error::Closed));
}

fn refused(options: Options) -> String {
    match Db::open(options) {
        Err(Error::Storage(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_second_opener_is_refused_and_changes_nothing() {
    for loops in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), "score", loops);
        add(&db, 1, 1).unwrap();
        let error = refused(options(dir.path(), "score", loops));
        assert!(error.contains("is in use: another process holds"), "{error}");
        add(&db, 1, 1).unwrap();
        db.close();
        // Closed, it lets go of the folder, though there is a handle.
        let again = open(dir.path(), "score", loops);
        assert_eq!(read_all(&again)[1], Some(2));
        assert_eq!(add(&db, 1, 1), Err(Error::Closed));
    }
}

#[test]
fn a_folder_of_something_else_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), "score", 2));
    let loops = refused(options(dir.path(), "score", 1));
    assert!(loops.contains("are those of 2 loops, not of 1"), "{loops}");
    let protocol = refused(options(dir.path(), "gmu", 2));
    assert!(protocol.contains("protocol `score`, not of `gmu`"), "{protocol}");
    let more = Options { repositories: 3, ..options(dir.path(), "score", 2) };
    let repositories = refused(more);
    assert!(repositories.contains("`repositories` was 2 and is 3"), "{repositories}");
    let no_protocol = Db::open(options(&dir.path().join("new"), "skore", 1)).unwrap_err();
    assert!(no_protocol.to_string().contains("no protocol `skore`"), "{no_protocol}");
    assert!(!dir.path().join("new").exists(), "what cannot be leaves no folder");
}
