//! Whether all that a folder holds is as it was written.

use std::path::PathBuf;

use super::*;

/// The files of a log whose names begin so.
fn files_of(path: &Path, beginning: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let begins = |it: &PathBuf| it.file_name().unwrap().to_str().unwrap().starts_with(beginning);
    let mut files: Vec<_> = entries.filter(begins).collect();
    files.sort();
    files
}

/// A database with two checkpoints, and records behind the second one.
fn written(path: &Path, protocol: &str) {
    let durable = Durable { checkpoint_bytes: 40_000, ..Durable::at(path) };
    let options = Options { durable: Some(durable), ..options(path, protocol, 1) };
    let db = Db::open(options).unwrap();
    let counters = counters(&db);
    let mut rounds = 0..400;
    while files_of(path, "checkpoint").iter().filter(|it| it.extension().is_none()).count() < 2 {
        let round = rounds.next().expect("checkpoints are taken");
        let all = async move |tx: &muesli::Tx| {
            for key in 0..200 {
                counters.put(tx, &key, &round).await?;
            }
            Ok::<_, Error>(())
        };
        db.blocking().transact(all).unwrap();
    }
    for key in 0..KEYS {
        add(&db, key, 1).unwrap();
    }
    db.close();
}

fn faults(path: &Path) -> Vec<String> {
    let loops = Db::verify(path, &Options::default()).unwrap();
    assert_eq!(loops.len(), 1);
    loops[0].faults.clone()
}

/// Flips a bit in the middle of a file.
fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_folder_that_is_whole_has_no_faults_and_each_checkpoint_is_replayed() {
    for protocol in ["score", "granola", "alvin"] {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), protocol);
        let loops = Db::verify(dir.path(), &Options::default()).unwrap();
        let [of] = &loops[..] else { panic!("{loops:?}") };
        assert_eq!((&of.faults[..], of.spaces), (&[][..], 1), "{protocol}");
        let checkpoints = of.replays.iter().filter(|it| it.checkpoint.is_some()).count();
        assert_eq!((checkpoints, of.replays.len()), (2, 2), "{protocol}: {of:?}");
        assert!(of.replays[0].records < of.replays[1].records, "{protocol}: {of:?}");
        assert!(of.replays.iter().all(|it| it.last == of.records.unwrap().1), "{of:?}");
    }
}

#[test]
fn what_is_damaged_is_told_with_file_byte_and_record() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), "score");
    let checkpoints = files_of(dir.path(), "checkpoint");
    let copies = checkpoints.iter().map(std::fs::read).collect::<Result<Vec<_>, _>>().unwrap();
    for (file, copy) in checkpoints.iter().zip(copies) {
        damage(file);
        let found = faults(dir.path());
        let name = file.file_name().unwrap().to_str().unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        let is_named = found[0].starts_with(name) && found[0].contains("are wrong at byte");
        assert!(is_named && found[0].contains("where piece"), "{found:?}");
        std::fs::write(file, copy).unwrap();
    }
    assert_eq!(faults(dir.path()), Vec::<String>::new());
    let segment = files_of(dir.path(), "segment").remove(0);
    damage(&segment);
    let found = faults(dir.path());
    let name = segment.file_name().unwrap().to_str().unwrap();
    assert!(found[0].contains(name) && found[0].contains("is damaged at byte"), "{found:?}");
    assert!(found[0].contains("record"), "{found:?}");
}

#[test]
fn what_is_no_database_or_in_use_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let verify = || Db::verify(dir.path(), &Options::default());
    let error = verify().unwrap_err().to_string();
    assert!(error.contains("there is no database in"), "{error}");
    let db = open(dir.path(), "score", 2);
    let error = verify().unwrap_err().to_string();
    assert!(error.contains("is in use"), "{error}");
    db.close();
    assert_eq!(verify().unwrap().len(), 2, "one for each loop");
    assert_eq!(Db::verify(dir.path().join("loop-1"), &Options::default()).unwrap().len(), 1);
}
