//! Folders that are opened for reading only, by several at once, and not changed by a byte.

use std::collections::BTreeMap;
use std::path::PathBuf;

use muesli::Compacted;
use muesli::transfer::Import;

use super::*;

/// The bytes of all files in a folder and those below, and when they were written.
fn files(path: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_dir() {
            all.extend(files(&entry.path()));
            continue;
        }
        let written = entry.metadata().unwrap().modified().unwrap();
        all.insert(entry.path(), (std::fs::read(entry.path()).unwrap(), written));
    }
    all
}

fn reading(path: &Path, protocol: &str, loops: usize) -> Result<Db, Error> {
    let options = options(path, protocol, loops);
    let durable = Durable { read_only: true, ..Durable::at(path) };
    Db::open(Options { durable: Some(durable), ..options })
}

/// Writes something, and ends without closing: the log ends in what a start would mend.
fn written(path: &Path, protocol: &str, loops: usize) {
    let db = open(path, protocol, loops);
    for key in 0..KEYS {
        add(&db, key, 7).unwrap();
    }
    db.close();
    let mut logs: Vec<_> = files(path).into_keys().collect();
    logs.retain(|file| file.to_str().unwrap().contains("/segment-"));
    // Something that was being written when the power failed.
    let mut torn = std::fs::read(logs.last().unwrap()).unwrap();
    torn.extend_from_slice(&[1; 40]);
    std::fs::write(logs.last().unwrap(), torn).unwrap();
}

#[test]
fn what_is_read_is_all_there_is_and_nothing_changes_under_any_protocol() {
    for protocol in ["score", "gmu", "bumper", "two-phase-commit", "granola", "tfa", "alvin"] {
        for loops in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            written(dir.path(), protocol, loops);
            let before = files(dir.path());
            let (one, other) = (
                reading(dir.path(), protocol, loops).unwrap(),
                reading(dir.path(), protocol, loops).unwrap(),
            );
            let all = vec![Some(7); KEYS as usize];
            assert_eq!((read_all(&one), read_all(&other)), (all.clone(), all), "{protocol}");
            one.close();
            drop(other);
            assert!(files(dir.path()) == before, "{protocol}, {loops} loops: a file has changed");
            assert_eq!(read_all(&open(dir.path(), protocol, loops))[0], Some(7), "{protocol}");
        }
    }
}

#[test]
fn whatever_would_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), "granola", 1);
    let before = files(dir.path());
    let db = reading(dir.path(), "granola", 1).unwrap();
    assert_eq!(add(&db, 1, 1), Err(Error::ReadOnly));
    assert_eq!(add(&db.session().strict(), 1, 1), Err(Error::ReadOnly));
    let made = db.create_space("other", SpaceOptions::default());
    assert_eq!(made.map(drop), Err(Error::ReadOnly));
    let compacted: Result<Compacted, _> = db.compact();
    assert_eq!(compacted, Err(Error::ReadOnly));
    let counters = counters(&db);
    let tx = db.blocking().begin().unwrap();
    let put = muesli::blocking::block_on(counters.put(&tx, &1, &1));
    assert_eq!(put, Err(Error::ReadOnly));
    let imported =
        db.blocking().import(&Import::default(), &mut &b"{\"muesli_export\":1}\n"[..], |_| {});
    assert!(imported.is_err());
    let call = db.call("put", 1).at_raw(counters.place(&1), vec![]).wait();
    assert!(call.is_err(), "{call:?}");
    drop(tx);
    db.close();
    assert!(files(dir.path()) == before);
    let text = Error::ReadOnly.to_string();
    assert!(text.contains("opened for reading only"), "{text}");
}

#[test]
fn readers_and_a_writer_keep_each_other_out_and_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = reading(dir.path(), "score", 1).unwrap_err().to_string();
    assert!(error.contains("there is no database in"), "{error}");
    written(dir.path(), "score", 1);
    let reader = reading(dir.path(), "score", 1).unwrap();
    let error = Db::open(options(dir.path(), "score", 1)).unwrap_err().to_string();
    assert!(error.contains("is in use: another process holds"), "{error}");
    drop(reader);
    let writer = open(dir.path(), "score", 1);
    let error = reading(dir.path(), "score", 1).unwrap_err().to_string();
    assert!(error.contains("is in use: another process holds"), "{error}");
    let error = Options::stored(dir.path()).unwrap_err().to_string();
    assert!(error.contains("is in use: another process holds"), "{error}");
    drop(writer);
    let stored = Options::stored(dir.path()).unwrap();
    let described = (stored.loops, stored.repositories, &*stored.protocol);
    assert_eq!(described, (1, 2, "score"));
    assert_eq!(read_all(&Db::open(stored).unwrap())[0], Some(7));
}
