//! Databases as files, and back.

use std::collections::BTreeMap;

use muesli::transfer::{
    Export, ExportConsistency, ExportFormat, Exported, Import, Imported, TransferError,
};
use muesli::{Db, Error, Index, Options, Partitioning, Range, SmallBytes, SpaceOptions};

const FORMATS: [ExportFormat; 2] = [ExportFormat::JsonLines, ExportFormat::Binary];

/// Rows of keys and values that are text, none, and everything between.
fn rows(count: u32) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let row = |number: u32| {
        let mut key = format!("key \"{number}\"\n").into_bytes();
        if number.is_multiple_of(3) {
            key.extend([0xff, 0, number as u8]);
        }
        let value = match number % 4 {
            0 => Vec::new(),
            1 => vec![0xfe; number as usize * 37 % 5_000],
            2 => format!("{{\"number\": {number}, \"ä\": \"\\u0001\"}}").into_bytes(),
            _ => vec![b'x'; number as usize * 37 % 20_000],
        };
        (key, value)
    };
    (0..count).map(row).collect()
}

/// A database with an ordered space, one that is found by hash, and one dealt by ranges.
fn filled(protocol: &str, count: u32) -> Db {
    let hash = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let splits = vec![SmallBytes::new(b"key \"5"), SmallBytes::new(&[0xf0])];
    let partitioning = Partitioning::Range(splits);
    let ranges = SpaceOptions { partitioning, ..SpaceOptions::default() };
    let options =
        Options { repositories: 3, loops: 2, protocol: protocol.to_owned(), ..Options::default() };
    let options = options.space("ordered", SpaceOptions::default());
    let db = Db::open(options.space("hash", hash).space("ranges", ranges)).unwrap();
    for name in ["ordered", "hash", "ranges"] {
        let (space, rows) = (db.space(name).unwrap(), rows(count));
        for (key, value) in rows {
            let put = async move |tx: &muesli::Tx| tx.put(space, &key[..], &value[..]).await;
            db.blocking().transact(put).unwrap();
        }
    }
    db
}

fn exported(db: &Db, export: &Export) -> (Exported, Vec<u8>) {
    let (mut file, mut last) = (Vec::new(), 0);
    let exported = db.blocking().export(export, &mut file, |progress| last = progress.rows);
    let exported = exported.unwrap();
    assert_eq!((exported.rows, exported.bytes), (last, file.len() as u64));
    (exported, file)
}

fn import(db: &Db, import: Import, file: &[u8]) -> Result<Imported, TransferError> {
    db.blocking().import(&import, &mut &*file, |_| {})
}

/// All rows of a space.
fn rows_of(db: &Db, name: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (space, db) = (db.space(name).unwrap(), db.listing());
    let all = async move |tx: &muesli::Tx| tx.scan(space, Range::all()).await;
    let rows = db.read_only().blocking().transact(all).unwrap().into_iter();
    rows.map(|(key, value)| (key.as_slice().to_vec(), value.as_slice().to_vec())).collect()
}

fn empty(protocol: &str) -> Db {
    let protocol = protocol.to_owned();
    Db::open(Options { repositories: 3, protocol, ..Options::default() }).unwrap()
}

#[test]
fn what_is_exported_is_there_when_it_is_imported_from_any_protocol_to_any_other() {
    let protocols = ["score", "granola", "gmu", "two-phase-commit", "alvin", "sharded-pob", "tfa"];
    for (from, to) in protocols.iter().zip(protocols.iter().cycle().skip(1)) {
        let db = filled(from, 60);
        for format in FORMATS {
            for consistency in [ExportConsistency::Snapshot, ExportConsistency::Pieces] {
                let export = Export { format, consistency, ..Export::default() };
                let (counted, file) = exported(&db, &export);
                assert_eq!((counted.spaces, counted.rows), (3, 180), "{from}");
                let other = empty(to);
                let imported = import(&other, Import::default(), &file).unwrap();
                assert_eq!((imported.rows, imported.same), (180, 0), "{to}");
                assert_eq!(imported.made, ["ordered", "hash", "ranges"]);
                for name in ["ordered", "hash", "ranges"] {
                    assert_eq!(rows_of(&other, name), rows(60), "{from} to {to}: {name}");
                    let options = |db: &Db| {
                        let catalog = db.catalog();
                        let id = catalog.space_named(name).unwrap();
                        catalog.space(id).unwrap().options.clone()
                    };
                    assert_eq!(options(&other), options(&db), "{name}");
                }
            }
        }
    }
}

/// More rows than a piece, so that sections end within spaces.
#[test]
fn an_export_is_in_sections_and_an_import_can_be_run_again() {
    let db = filled("score", 900);
    for format in FORMATS {
        let spaces = Some(vec!["hash".to_owned()]);
        let (counted, file) = exported(&db, &Export { format, spaces, ..Export::default() });
        assert_eq!((counted.spaces, counted.rows), (1, 900));
        assert!(counted.bytes > 2 << 20, "{counted:?}");
        let cut = &file[..file.len() / 2];
        let other = empty("score");
        let error = import(&other, Import::default(), cut).unwrap_err();
        let TransferError::EndsEarly { imported, .. } = error else { panic!("{error}") };
        let there = rows_of(&other, "hash");
        assert!(imported > 0 && there.len() as u64 == imported, "{imported} of {}", there.len());
        let imported = import(&other, Import::default(), &file).unwrap();
        assert_eq!((imported.rows, imported.same), (900, there.len() as u64));
        assert_eq!(rows_of(&other, "hash"), rows(900));
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed_and_nothing_damaged_is_imported() {
    let db = filled("score", 12);
    for format in FORMATS {
        let (_, file) = exported(&db, &Export { format, ..Export::default() });
        for length in (0..file.len()).step_by(7) {
            let error = import(&empty("score"), Import::default(), &file[..length]).unwrap_err();
            let text = error.to_string();
            let is_early = matches!(error, TransferError::EndsEarly { .. });
            assert!(is_early || matches!(error, TransferError::Foreign(_)), "{length}: {text}");
        }
        for at in (0..file.len()).step_by(11) {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << (at % 7);
            let other = empty("score");
            let error = import(&other, Import::default(), &damaged);
            assert!(error.is_err(), "{format:?}: byte {at} was not noticed");
            let names = ["ordered", "hash", "ranges"];
            for name in names.into_iter().filter(|name| other.space(name).is_ok()) {
                let mut there = rows_of(&other, name).into_iter();
                assert!(there.all(|(key, value)| rows(12)[&key] == value), "byte {at}");
            }
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line_or_block() {
    let db = filled("score", 5);
    let (_, file) = exported(&db, &Export::default());
    let lines: Vec<_> = std::str::from_utf8(&file).unwrap().lines().collect();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        let text = lines.join("\n") + "\n";
        import(&empty("score"), Import::default(), text.as_bytes()).unwrap_err().to_string()
    };
    let refused = |at: usize, line: &str, what: &str| {
        let error = with(at, line);
        assert!(error.contains(&format!("in line {}", at + 1)), "{error}");
        assert!(error.contains(what), "{error}");
    };
    refused(6, "no json", "it is no such line");
    refused(6, r#"{"s":9,"k":"a","v":"b"}"#, "there is no space of number 9");
    refused(6, r#"{"s":0,"v":"b"}"#, "the row has no key");
    refused(6, r#"{"s":0,"k":"a","k64":"YQ==","v":"b"}"#, "the row has two keys");
    refused(6, r#"{"s":0,"k64":"?","v":"b"}"#, "is not in base 64");
    refused(2, r#"{"space":1,"name":"hash","index":"tree"}"#, "there is no index `tree`");
    refused(2, r#"{"space":0,"name":"hash","index":"hash"}"#, "two spaces of number 0");
    let error = with(6, r#"{"s":0,"k":"other","v":"b"}"#);
    assert!(error.contains(&format!("in line {}", lines.len())), "{error}");
    assert!(error.contains("its checksum differs"), "{error}");
    let error = with(0, r#"{"muesli_export":2}"#);
    assert!(error.contains("it is of version 2, and this program reads version 1"), "{error}");
    let error = import(&db, Import::default(), b"PK\x03\x04").unwrap_err().to_string();
    assert!(error.contains("this is no export"), "{error}");
    let missing = Export { spaces: Some(vec!["none".to_owned()]), ..Export::default() };
    let error = db.blocking().export(&missing, Vec::new(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("there is no space `none`; there are: ordered, hash"), "{error}");
}

#[test]
fn rows_that_are_there_with_other_values_are_refused_unless_asked() {
    let (db, other) = (filled("score", 20), filled("score", 20));
    let space = other.space("hash").unwrap();
    let (key, value) = rows(20).into_iter().nth(7).unwrap();
    let theirs = key.clone();
    let put = async move |tx: &muesli::Tx| tx.put(space, &theirs[..], "otherwise").await;
    other.blocking().transact(put).unwrap();
    let (_, file) = exported(&db, &Export::default());
    let error = import(&other, Import::default(), &file).unwrap_err();
    let TransferError::Exists { space, .. } = &error else { panic!("{error}") };
    assert_eq!(space, "hash");
    assert!(error.to_string().contains("--overwrite"), "{error}");
    let imported = import(&other, Import { overwrite: true }, &file).unwrap();
    assert_eq!((imported.rows, imported.same), (60, 59));
    assert_eq!(rows_of(&other, "hash")[&key], value);
    let hash = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let other = Db::open(Options::default().space("ordered", hash)).unwrap();
    let only = Export { spaces: Some(vec!["ordered".to_owned()]), ..Export::default() };
    let (_, file) = exported(&db, &only);
    assert_eq!(import(&other, Import::default(), &file).unwrap().differ, ["ordered"]);
    let (_, file) = exported(&db, &Export::default());
    let error = import(&Db::open(Options::default()).unwrap(), Import::default(), &file);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("space `ranges` of the export cannot be made"), "{error}");
}

/// An export is of one moment though others write meanwhile: pairs of rows are always the same.
#[test]
fn an_export_of_a_database_in_use_shows_one_moment() {
    for protocol in ["score", "gmu", "bumper"] {
        let options = Options { repositories: 3, loops: 2, ..Options::default() };
        let options = Options { protocol: protocol.to_owned(), ..options };
        let hash = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
        let db = Db::open(options.space("pairs", hash)).unwrap();
        let pairs = db.space("pairs").unwrap();
        let write = |round: u32| {
            let both = async move |tx: &muesli::Tx| {
                for key in ["a", "z"] {
                    tx.put(pairs, key, round.to_string().into_bytes()).await?;
                }
                tx.put(pairs, format!("m{round}").into_bytes(), vec![b'x'; 20_000]).await
            };
            db.blocking().transact(both).unwrap();
        };
        (0..60).for_each(write);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let going = || !done.load(std::sync::atomic::Ordering::Relaxed);
                (60..2_000).take_while(|_| going()).for_each(write);
            });
            for format in FORMATS {
                let (_, file) = exported(&db, &Export { format, ..Export::default() });
                let copy = empty("score");
                import(&copy, Import::default(), &file).unwrap();
                let rows = rows_of(&copy, "pairs");
                let value = |key: &str| &rows[key.as_bytes()];
                assert_eq!(value("a"), value("z"), "{protocol}");
                let last: u32 = std::str::from_utf8(value("a")).unwrap().parse().unwrap();
                assert_eq!(
                    rows.len() as u32,
                    last + 3,
                    "{protocol}: all up to {last}, and no more"
                );
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}

#[test]
fn a_space_found_by_hash_is_read_in_order_where_that_is_asked_for_alone() {
    let db = filled("score", 10);
    let space = db.space("hash").unwrap();
    let scan = async move |tx: &muesli::Tx| tx.scan(space, Range::all()).await;
    let refused = db.blocking().transact(scan).unwrap_err();
    assert!(matches!(&refused, Error::Space(why) if why.contains("has a hash index")), "{refused}");
    assert_eq!(db.listing().blocking().transact(scan).unwrap().len(), 10);
    // What comes after that is in order, too.
    let put = async move |tx: &muesli::Tx| tx.put(space, "a", "b").await;
    db.blocking().transact(put).unwrap();
    let first = db.listing().blocking().transact(scan).unwrap().remove(0);
    assert_eq!(first, ("a".into(), "b".into()));
    assert!(db.blocking().transact(scan).is_err());
}
