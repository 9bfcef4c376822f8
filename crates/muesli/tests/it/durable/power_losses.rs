//! A database opened as its disk was after each change of it, with what was not synced by then
//! lost, or there in part.

use std::collections::BTreeMap;

use muesli_log::disk::memory::MemoryFile;
use muesli_log::{Disk, DiskFile, MemoryDisk};

use super::*;

/// What a key has that no transfer has touched.
const AMOUNT: i64 = 1_000;
/// So many transfers are made.
const TRANSFERS: i64 = 40;
/// So many opened are opened after each change.
const LOSSES: usize = 2;

/// Between which keys a transfer is.
fn keys_of(number: i64) -> (u64, u64) {
    let from = number as u64 * 3 % (KEYS - 1);
    (from, (from + 1 + number as u64 % 4) % (KEYS - 1))
}

/// What is there after so many transfers: the last key counts them.
fn due(transfers: i64) -> Vec<Option<i64>> {
    let mut all: BTreeMap<u64, i64> = BTreeMap::new();
    for number in 1..=transfers {
        let (from, to) = keys_of(number);
        *all.entry(from).or_insert(AMOUNT) -= 1;
        *all.entry(to).or_insert(AMOUNT) += 1;
        all.insert(KEYS - 1, number);
    }
    (0..KEYS).map(|key| all.get(&key).copied()).collect()
}

fn transfer(db: &Db, number: i64) -> Result<(), Error> {
    let counters = counters(db);
    let (from, to) = keys_of(number);
    db.blocking().transact(async move |tx| {
        for (key, more) in [(from, -1), (to, 1)] {
            let before = counters.get(tx, &key).await?.unwrap_or(AMOUNT);
            counters.put(tx, &key, &(before + more)).await?;
        }
        counters.put(tx, &(KEYS - 1), &number).await
    })
}

/// A change of the disk as it was recorded.
struct RecordedChange {
    kind: u8,
    names: [String; 2],
    number: u64,
    bytes: Vec<u8>,
}

/// The changes of a record.
fn changes(mut record: &[u8]) -> Vec<RecordedChange> {
    fn part<'a>(record: &mut &'a [u8], bytes: usize) -> &'a [u8] {
        record.split_off(..bytes).expect("a record ends behind a change")
    }
    fn bytes<'a>(record: &mut &'a [u8]) -> &'a [u8] {
        let length = u32::from_le_bytes(part(record, 4).try_into().unwrap());
        part(record, length as usize)
    }
    let mut all = Vec::new();
    while !record.is_empty() {
        let kind = part(&mut record, 1)[0];
        let names = [(); 2].map(|()| String::from_utf8(bytes(&mut record).to_vec()).unwrap());
        let number = u64::from_le_bytes(part(&mut record, 8).try_into().unwrap());
        all.push(RecordedChange { kind, names, number, bytes: bytes(&mut record).to_vec() });
    }
    all
}

/// Makes a change on a disk in memory, with its files open as they are on the real one.
fn make(disk: &MemoryDisk, open: &mut BTreeMap<String, MemoryFile>, change: &RecordedChange) {
    let [name, other] = &change.names;
    let mut file = || {
        let file = open.entry(name.clone()).or_insert_with(|| disk.open(name).unwrap());
        file.clone()
    };
    match change.kind {
        1 => drop(disk.create(name).unwrap()),
        2 => file().write_at(change.number, &change.bytes).unwrap(),
        3 => file().set_len(change.number).unwrap(),
        4 => file().sync().unwrap(),
        5 => {
            disk.rename(name, other).unwrap();
            open.clear();
        }
        6 => {
            // A checkpoint that was never begun is removed, too.
            let _ = disk.remove(name);
            open.clear();
        }
        7 => disk.sync_directory().unwrap(),
        other => panic!("a change of kind {other}"),
    }
}

/// Runs transfers, takes checkpoints by size and one that stands alone, and closes. The record of
/// the disk, and how long it was as each transfer was answered.
fn recorded(path: &Path, trouble: &Path, protocol: &str) -> (Vec<u8>, Vec<usize>) {
    std::fs::write(trouble, "record").unwrap();
    let durable =
        Durable { checkpoint_bytes: 3_000, trouble: Some(trouble.to_owned()), ..Durable::at(path) };
    let options = Options { durable: Some(durable), ..options(path, protocol, 1) };
    let record = trouble.with_extension("record");
    let length = || std::fs::metadata(&record).unwrap().len() as usize;
    let mut answered = Vec::new();
    let db = Db::open(options).unwrap();
    for number in 1..=TRANSFERS {
        transfer(&db, number).unwrap();
        answered.push(length());
        if number == TRANSFERS / 2 {
            db.compact().unwrap();
        }
    }
    db.close();
    (std::fs::read(&record).unwrap(), answered)
}

/// Opens an left, and says how many transfers are there.
fn transfers_in(folder: &Path, left: &MemoryDisk, protocol: &str) -> i64 {
    let log = folder.join("log");
    let _ = std::fs::remove_dir_all(&log);
    std::fs::create_dir(&log).unwrap();
    for (name, bytes) in left.files() {
        std::fs::write(log.join(name), bytes).unwrap();
    }
    let db = open(folder, protocol, 1);
    let found = read_all(&db);
    let transfers = found[KEYS as usize - 1].unwrap_or(0);
    assert_eq!(found, due(transfers), "{protocol}: a transfer is there in part");
    transfers
}

fn no_loss_of_power_breaks(protocol: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (path, folder) = (dir.path().join("data"), dir.path().join("left"));
    let (record, answered) = recorded(&path, &dir.path().join("trouble"), protocol);
    std::fs::create_dir(&folder).unwrap();
    for small in ["lock", "identity", "map"] {
        std::fs::copy(path.join(small), folder.join(small)).unwrap();
    }
    let (disk, mut open, mut behind) = (MemoryDisk::new(1), BTreeMap::new(), 0);
    let mut opened = 0;
    for change in changes(&record) {
        make(&disk, &mut open, &change);
        behind += 1 + 4 + 4 + 8 + 4 + change.bytes.len();
        behind += change.names.iter().map(String::len).sum::<usize>();
        // Zeros that are written ahead change nothing.
        if change.kind == 2 && change.bytes.iter().all(|&byte| byte == 0) {
            continue;
        }
        let acknowledged = answered.iter().take_while(|length| **length <= behind).count() as i64;
        for _ in 0..LOSSES {
            let there = transfers_in(&folder, &disk.after_power_loss(), protocol);
            assert!(
                there >= acknowledged,
                "{protocol}: {there} of {acknowledged} transfers, {behind} bytes on"
            );
            opened += 1;
        }
    }
    assert_eq!(behind, record.len());
    assert!(opened > 200, "{opened} opened of {protocol}");
    let last = transfers_in(&folder, &disk.after_power_loss(), protocol);
    assert_eq!(last, TRANSFERS);
}

#[test]
fn every_image_of_the_disk_has_all_that_was_answered_and_nothing_in_part() {
    for protocol in ["score", "granola"] {
        no_loss_of_power_breaks(protocol);
    }
}
