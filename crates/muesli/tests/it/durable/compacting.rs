//! A database that is made as short as it can be, while it is used.

use muesli::{Compacted, VerifiedLoop};

use super::*;

/// Writes the same keys again and again.
fn write(db: &Db, rounds: u64) {
    let counters = counters(db);
    for round in 0..rounds {
        let all = async move |tx: &muesli::Tx| {
            for key in 0..200 {
                counters.put(tx, &key, &(round as i64)).await?;
            }
            Ok::<_, Error>(())
        };
        db.blocking().transact(all).unwrap();
    }
}

fn verified(path: &Path) -> Vec<VerifiedLoop> {
    Db::verify(path, &Options::default()).unwrap()
}

#[test]
fn what_is_compacted_is_a_checkpoint_and_nothing_else() {
    for protocol in ["score", "granola", "gmu"] {
        for loops in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            let db = open(dir.path(), protocol, loops);
            // More than the zeros that are written ahead.
            write(&db, 600);
            let Compacted { before, after } = db.compact().unwrap();
            assert!(after < before, "{protocol}, {loops} loops: {before} bytes, then {after}");
            write(&db, 2);
            db.compact().unwrap();
            db.close();
            for of in verified(dir.path()) {
                assert_eq!((of.segments, of.replays.len()), (1, 1), "{protocol}: {of:?}");
                assert!(of.replays[0].checkpoint.is_some(), "{protocol}: {of:?}");
                assert_eq!(of.faults, Vec::<String>::new(), "{protocol}");
            }
            assert_eq!(read_all(&open(dir.path(), protocol, loops)), [Some(1); KEYS as usize]);
        }
    }
}

#[test]
fn what_is_committed_meanwhile_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), "score", 2);
    write(&db, 3);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for _ in 0..100 {
                add(&db, 3, 1).unwrap();
            }
        });
        for compacted in [db.compact(), db.compact(), db.compact()] {
            compacted.unwrap();
        }
        let both = [scope.spawn(|| db.compact()), scope.spawn(|| db.compact())];
        both.into_iter().for_each(|one| assert!(one.join().unwrap().is_ok()));
        writing.join().unwrap();
    });
    drop(db);
    assert_eq!(read_all(&open(dir.path(), "score", 2))[3], Some(102));
}

#[test]
fn what_cannot_be_compacted_says_why() {
    let db = Db::open(Options::default()).unwrap();
    let error = db.compact().unwrap_err().to_string();
    assert!(error.contains("the database is in memory"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), "score", 1);
    let same = db.clone();
    let on_loop = db.run_on(0, async move || same.compact());
    let error = muesli::blocking::block_on(on_loop).unwrap().unwrap_err().to_string();
    assert!(error.contains("and not on a loop"), "{error}");
    db.close();
    assert_eq!(db.compact(), Err(Error::Closed));
}

/// A disk that fails in the middle ends the database, and loses nothing that was answered.
#[test]
fn a_disk_that_fails_meanwhile_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (path, trouble) = (dir.path().join("data"), dir.path().join("trouble"));
    let durable = Durable { trouble: Some(trouble.clone()), ..Durable::at(&path) };
    let options = Options { durable: Some(durable), ..options(&path, "score", 1) };
    let db = Db::open(options.clone()).unwrap();
    write(&db, 2);
    std::fs::write(&trouble, "fail").unwrap();
    let error = db.compact().unwrap_err();
    assert!(matches!(&error, Error::Storage(why) if why.contains("made to fail")), "{error}");
    db.close();
    std::fs::remove_file(&trouble).unwrap();
    let db = Db::open(options).unwrap();
    assert_eq!(read_all(&db)[0], Some(1));
    db.compact().unwrap();
}
